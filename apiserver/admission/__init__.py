"""Admission: what is checked and filled in between a request and its kind's strategy.

`chain` runs the plugins in upstream's order; each plugin has a file, named as upstream names it. Start
reading at `interface`.
"""
