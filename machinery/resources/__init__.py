"""Amounts of resources: quantities, the requests and limits of pods, QoS classes and quotas."""
