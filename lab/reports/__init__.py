"""What reports have in common: JUnit XML, Markdown, the frame and the tables of an HTML page, JSON.

Each module is one format. What a report says is written beside what it reports on: `report.py` of scenarios,
explorations, the skew matrix and studies.
"""
