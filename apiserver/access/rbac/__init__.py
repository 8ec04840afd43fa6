"""Role-based access control: rules and bindings of the RBAC kinds, compiled (`rules.py`, `role_index.py`).

`authorizer.py` answers from the watch cache's objects; admission/escalation.py keeps users from granting what
they do not have; `bootstrap_policy.txt` and `bootstrap.py` are what a cluster begins with.
"""
