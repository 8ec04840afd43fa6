"""Daemon sets: one pod on each fitting node, and its updates.

Start with `placement`: the pods to create and delete, node by node. `rolling_update` replaces
pods of an older template; `history` keeps its revisions; `pods` makes a pod for a node. Which nodes fit is in
`machinery/scheduling/daemons.py`, since the autoscaler asks too.

Source: kube-controller-manager 1.36, pkg/controller/daemon.
"""
