"""Allocate the devices of a pod's claims on a node: pure, start at `allocator.py`.

`model.py` has the values, `pools.py` the pools that a node can reach, `constraints.py`, `capacity.py`,
`counters.py` and `taints.py` what excludes a device, `results.py` the allocation that is written. Source:
k8s.io/dynamic-resource-allocation/structured 1.36.
"""
