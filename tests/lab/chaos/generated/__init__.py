"""Scenarios that are generated from seeds."""
