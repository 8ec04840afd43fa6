"""Requests and limits: of a container, of a pod, and the pod's share of its node. Pure."""
