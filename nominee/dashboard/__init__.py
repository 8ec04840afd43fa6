"""`nominee dashboard`: a page with a time axis, for a cluster that runs, one that is down, or a history file.

`command.py` starts it, `board.py` is what it shows, `following.py` keeps that of a running cluster up to
date, `app.py` serves it to the page in `lab/timeline/bundle`, behind `guard.py`.
"""
