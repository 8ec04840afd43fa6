"""The base of all controllers' shells: I/O, the work queue and the process.

Start with `manager` (the table of controllers and how they run), then `controller` (informers name keys,
workers reconcile them). `disruption_target` ends a pod that a controller evicts.
"""
