"""Invariants of preemption: nominations and victims."""
