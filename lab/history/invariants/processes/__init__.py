"""Invariants of processes: leases, terms of leaders, retries, unexpected errors."""
