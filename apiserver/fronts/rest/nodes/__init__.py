"""Requests that the API server passes on to kubelets."""
