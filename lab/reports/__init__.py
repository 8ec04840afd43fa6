"""The common parts of reports: JUnit XML, Markdown, the frame and the tables of an HTML page.

Each module is one format: `junit.py`, `markdown.py`, `html.py`. What a report says is written in the package
that it reports on.
"""
