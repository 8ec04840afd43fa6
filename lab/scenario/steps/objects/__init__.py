"""Verbs on objects: apply, patch, delete, and kubectl's on nodes."""
