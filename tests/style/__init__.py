"""Checks of the project's own text, which `make check` runs: words, sizes and docstrings.

`banned_words.toml` names the words and what to write instead, `ceilings.toml` the packages that are not clean
yet. Start reading at `report.py`.
"""
