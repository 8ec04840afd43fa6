"""The scheduling framework: no I/O, no clock, no randomness of its own; the autoscaler imports it too.

Start with `interface.py` (what a plugin is), then `types.py` (pods and nodes), `cache.py` and `snapshot.py`
(what the scheduler knows), `runtime.py` (how a profile's plugins are run), `algorithm.py` (one pod's way
through them).
"""
