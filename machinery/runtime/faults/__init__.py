"""Failpoints, faults of calls, and what they do."""
