"""Ranges of Services' addresses: reported as ready, and held while addresses of theirs are in use.

`protection` decides whether a range may be deleted; `shell` has the controller.

Source: kube-controller-manager 1.36, service-cidr-controller.
"""
