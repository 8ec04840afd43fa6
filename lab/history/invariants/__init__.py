"""The invariants of every cluster: one checker for each. No I/O, no clock.

`checking/checker.py` has the protocol and the values; start there. `table.py` lists the checkers, `check.py` runs them
over a history. docs/invariants.md describes each invariant and its exceptions.
"""
