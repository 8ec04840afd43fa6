"""Role-based access control.

`rules.py` matches a policy rule, `role_index.py` indexes roles and bindings by subject, `authorizer.py`
decides from the watch cache's objects. `bootstrap.py` writes the roles of `bootstrap_policy.txt` into a new
cluster. admission/permissions/escalation.py keeps users from granting permissions that they do not have.
"""
