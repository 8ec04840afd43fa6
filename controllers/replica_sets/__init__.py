"""Replica sets: as many pods as spec.replicas.

Start with `replicas`: which pods to create and delete, and the status. `shell` has the controller.

Source: kube-controller-manager 1.36, pkg/controller/replicaset.
"""
