"""Garbage: pods whose node is gone, objects whose owners are gone, namespaces that are being deleted.

Start with `ownership`, which decides about one object by its owners; `pod_gc` selects the pods to end,
`namespace_status` has a terminating namespace's conditions. `shell` has the three controllers.

Source: kube-controller-manager 1.36, garbagecollector, podgc and namespace controllers.
"""
