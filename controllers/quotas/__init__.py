"""ResourceQuotas: the usage of a namespace, counted from its objects.

`usage` counts and writes the status; `shell` has the controller, which decides when to count again.

Source: kube-controller-manager 1.36, resourcequota-controller.
"""
