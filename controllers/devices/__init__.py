"""Resource claims: made from templates for pods, freed when their pods have ended.

`templates.py` and `reservations.py` decide, `claims.py` is the controller. For devices with NoExecute taints
`taints.py` decides, and `eviction.py` is the controller that ends the pods which use them. Source:
kube-controller-manager 1.36, resourceclaim and device taint eviction controllers.
"""
