"""Ranges of Services' addresses: reported as ready, and held while addresses of theirs are in use.

Source: kube-controller-manager 1.36, service-cidr-controller.
"""
