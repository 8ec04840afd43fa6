"""Kubernetes objects: kinds, messages, metadata, names, selectors and API errors. Start with `kinds`."""
