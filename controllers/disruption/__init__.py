"""PodDisruptionBudgets: how many of their pods are healthy, and so how many may be evicted.

`budget` computes the status and the events; `shell` has the controller, and the one that takes back a
DisruptionTarget condition after which no deletion came.

Source: kube-controller-manager 1.36, pkg/controller/disruption.
"""
