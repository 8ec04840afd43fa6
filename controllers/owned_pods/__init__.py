"""Pods of a controller: how ReplicaSets, DaemonSets and Jobs create, delete and count theirs.

Start with `shell.pod_owner`, the base of their controllers. `expectations` holds the creations and deletions
that the watch has not shown yet; `readiness`, `deletion_order` and `template` are rules for all of them.

Source: kube-controller-manager 1.36, pkg/controller (controller_utils).
"""
