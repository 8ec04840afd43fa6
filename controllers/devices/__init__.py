"""Resource claims: made from templates for pods, freed when their pods have ended.

`templates.py` and `reservations.py` decide, `claims.py` is the controller. Source: kube-controller-manager
1.36, resourceclaim controller.
"""
