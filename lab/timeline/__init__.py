"""The time line of a history: a page that folds small rows, so that it can show each moment.

`rows.py` makes a row of an object, `marks.py` the marks of logs and Events, `document.py` the document of
both, which the dashboard serves and `page.py` writes into one file.
"""
