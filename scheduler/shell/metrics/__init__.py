"""Metrics of the scheduler: tables, durations and their timers."""
