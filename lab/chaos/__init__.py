"""`nominee chaos`: run a scenario again and again with a fault in it, and report the broken expectations.

Start with `cases/case.py` (what is broken in a run) and `cases/exploration.py` (which run is next). `cases/tolerance.py` has
what counts in a disturbed run, `cases/verdict.py` judges it. docs/chaos.md describes the command.
"""
