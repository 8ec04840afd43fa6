"""Measures: named values that a run of a scenario collects, for reports and studies.

`base.py` has what a kind of measures must have, `table.py` the list; `collector.py` collects the values.
"""
