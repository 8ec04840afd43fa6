"""The kinds of conditions, one file each: fields, checks, description, evaluation, row of the page.

Start with `observing.base` (what a kind must have) and `table` (the list of kinds). docs/changing.md says
how to add one.
"""
