"""The scheduling framework: no I/O, no clock, no randomness of its own; the autoscaler imports it too.

Start with `interface.py` (what a plugin is), then `types.py` (pods and nodes), `cluster/cache.py` and `cluster/snapshot.py`
(the state of the cluster), `runtime/framework.py` (how a profile's plugins are run), `scheduling/algorithm.py` (how a node is
found).
"""
