"""Invariants of workloads: replicas, ordinals, Jobs' counts, disruption budgets."""
