"""Authorization of kubelets.

`identity.py` reads the nodes of a user, `graph.py` finds what their pods refer to, `authorizer.py` is the
Node authorizer over both. What a kubelet may write is further restricted by admission/permissions/node_restriction.py.
"""
