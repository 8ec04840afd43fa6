"""`nominee chaos`: run a scenario again and again with a fault in it, and report the broken expectations.

Start with `case.py` (what is broken in a run) and `exploration.py` (which run is next). `tolerance.py` has
what counts in a disturbed run, `verdict.py` judges it. docs/chaos.md describes the command.
"""
