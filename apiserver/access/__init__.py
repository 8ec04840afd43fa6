"""Authentication, impersonation and authorization, the same for both fronts.

Start reading at `access.py`, which the request chain calls; `authentication.py`, `rbac/` and `node/`
decide. The user and the request's attributes are in `apiserver/objects/user.py` and
`apiserver/objects/attributes.py`. What a node may do with objects is in admission/permissions/node_restriction.py.
"""
