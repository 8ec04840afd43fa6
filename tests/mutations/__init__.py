"""Known bugs as patches of the program, to check that the lab finds them. Tests only.

`catalogue.py` lists them; start there. `patch.py` applies one in this process, `launch.py` runs a program
with one: `python -m tests.mutations.launch MUTATION -- MODULE ARGS`.
"""
