"""Who asks, and what they may do: authentication, impersonation, authorization; the same for both fronts.

Begin with `access.py` (a request's way), then `user.py` and `attributes.py` (what it is about),
`authentication.py`, `rbac/` and `node/`. What a node may do with objects is in admission/node_restriction.py.
"""
