"""The skew matrix: scenarios played at many versions, feature gates and upgrade paths.

Start with `matrix/model.py` (what a matrix says). `matrix/expansion.py` and `matrix/pairwise.py` choose the cells,
`matrix/composition.py` makes a scenario of each, `cells/cell_run.py` makes a job of it, `run.py` runs the jobs, and
`pages/page.py`, `pages/kep_page.py`, `pages/junit.py` and `pages/markdown.py` write the reports. docs/skew.md describes the format.
"""
