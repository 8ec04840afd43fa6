"""The scheduling framework: no I/O, no clock, no randomness of its own; the autoscaler imports it too.

Start with `interface.py` (what a plugin is), then `types.py` (pods and nodes), `cache.py` and `snapshot.py`
(the state of the cluster), `runtime.py` (how a profile's plugins are run), `algorithm.py` (how a node is
found).
"""
