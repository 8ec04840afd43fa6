"""Verbs that disturb: failpoints, faults of calls, clocks, checkpoints."""
