"""`nominee history --html`: a page with a lane for each object, its states as bars, its revisions as points.

`lanes.py` makes the lanes from entries; `page.py` renders them.
"""
