"""Authentication, impersonation and authorization, the same for both fronts.

Start reading at `access.py`, which the request chain calls. `user.py` and `attributes.py` are the user and
the request; `authentication.py`, `rbac/` and `node/` decide. What a node may do with objects is in
admission/node_restriction.py.
"""
