"""Daemon sets: one pod on each fitting node, and its updates.

Start with `placement`: the pods to create and delete, node by node. `nodes` decides which nodes fit;
`rolling_update` replaces pods of an older template; `history` keeps the revisions of the template.

Source: kube-controller-manager 1.36, pkg/controller/daemon.
"""
