"""Which devices a pod's claims get on a node: pure, start at `allocator.py`.

`model.py` has the values, `pools.py` what a node can reach, `constraints.py`, `capacity.py`, `counters.py`
and `taints.py` what forbids a device, `results.py` what is written down. Source:
k8s.io/dynamic-resource-allocation/structured 1.36.
"""
