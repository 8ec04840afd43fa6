"""Node life cycle: health from leases, taints from conditions, eviction of what does not tolerate them.

`health` and `taints` decide (pure); `lifecycle` and `eviction` are the shells.
Source: kube-controller-manager 1.36, pkg/controller/nodelifecycle and pkg/controller/tainteviction.
"""
