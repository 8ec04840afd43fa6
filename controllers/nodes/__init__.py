"""Node life cycle: health from leases, taints from conditions, eviction of pods that do not tolerate them.

Start with `health`, which decides when a kubelet is silent; `taints` plans a node's taints, `eviction` when
pods leave it, `metadata` its labels and annotations, `registration` the events about new nodes. `shell` has
the life cycle controller and the taint eviction controller.

Source: kube-controller-manager 1.36, pkg/controller/nodelifecycle and pkg/controller/tainteviction.
"""
