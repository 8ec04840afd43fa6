"""Faults of calls and failpoints: their actions, chains and waiters."""
