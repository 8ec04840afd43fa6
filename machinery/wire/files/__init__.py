"""Manifests as files of YAML and JSON."""
