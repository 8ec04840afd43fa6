"""Invariants of pods: binding, termination, allocations, resizes."""
