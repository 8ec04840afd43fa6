"""`nominee chaos`: run a scenario again and again with something broken in it, and report what does not hold.

Start with `case.py` (what is broken in a run) and `exploration.py` (which run is next). `tolerance.py` has
what counts in a disturbed run, `verdict.py` judges it. docs/chaos.md describes the command.
"""
