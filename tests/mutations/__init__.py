"""Bugs as patches of the program, to check and to measure what the lab finds. Tests only.

`catalogue.py` has the known ones, `unseen` those that were written without the lab; start there. `patch.py`
applies one in this process, `launch.py` runs a program with one: `python -m tests.mutations.launch MUTATION
-- MODULE ARGS`. `hunts.py` has an exploration for each known one, `standard` runs the commands of `make
chaos` with all of them.
"""
