"""Scenarios that are drawn from a seed, and their findings, shrunk to the smallest scenarios.

Start with `subjects.py`, the subjects of the steps.
"""
