"""Invariants of all objects: answers, acknowledged writes, reads, metadata, namespaces."""
