"""The skew matrix: scenarios played at many versions, feature gates and upgrade paths.

Start with `model.py` (what a matrix says). `expansion.py` and `pairwise.py` choose the cells,
`composition.py` makes a scenario of each, `cell_run.py` makes a job of it, `run.py` runs the jobs, and
`page.py`, `kep_page.py`, `junit.py` and `markdown.py` write the reports. docs/skew.md describes the format.
"""
