"""Preemption: which pods are evicted so that a more important one can run, and the steps that evict them."""
