"""`nominee verify`: check the invariants on the history of a cluster.

`verification.py` reads the history and runs the checkers; start there. `settings.py` and `evidence.py`
collect what etcd does not have, `etcd_alone.py` starts the etcd of a cluster that is down, `report.py`
prints.
"""
