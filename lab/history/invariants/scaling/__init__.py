"""Invariants of node groups and of the nodes that an autoscaler removes."""
