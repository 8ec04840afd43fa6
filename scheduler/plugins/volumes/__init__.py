"""Filters on a pod's volumes: zones, access modes, limits, binding."""
