"""Dry runs: which victims make room on a node."""
