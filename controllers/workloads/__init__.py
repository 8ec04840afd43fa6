"""Workloads: replica sets and disruption budgets.

`replicas` and `budget` decide (pure); `replica_set` and `disruption` are the shells.
"""
