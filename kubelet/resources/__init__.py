"""Requests and limits: of a container, of a pod, and what a pod counts for on its node. Pure."""
