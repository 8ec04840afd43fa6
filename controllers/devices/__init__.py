"""Resource claims: made from templates for pods, freed when their pods have ended, evicted by device taints.

Start with `templates` (which claims a pod needs) and `reservations` (which consumers a claim keeps); `taints`
decides when a pod must go whose device has a NoExecute taint. `shell` has both controllers.

Source: kube-controller-manager 1.36, resourceclaim and device taint eviction controllers.
"""
