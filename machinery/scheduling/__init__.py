"""Scheduling rules that several components share: taints, node affinity, priority, volume matching."""
