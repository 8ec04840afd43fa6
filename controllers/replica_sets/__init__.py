"""Replica sets: as many pods as spec.replicas.

Start with `replicas`: which pods to adopt, create and delete, and the status. `expectations` holds what the
watch has not shown yet. `shell` has the controller.

Source: kube-controller-manager 1.36, pkg/controller/replicaset.
"""
