"""Scenarios that are drawn from a seed, and their findings, shrunk to the smallest scenarios.

Start with `generating.py`; the subjects of the steps are in `scenarios/generated.yml`.
"""
