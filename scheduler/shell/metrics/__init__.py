"""The scheduler's metrics: tables, durations and what measures them."""
