"""Metadata of templates: labels and annotations, and nothing else is looked at (kube-apiserver 1.36)."""

from __future__ import annotations

from apiserver.validation import metadata
from machinery.errors import Cause
from machinery.pb import meta


def template_metadata(path: str, found: meta.ObjectMeta) -> list[Cause]:
    """Of templates whose metadata is a struct of its own (claims)."""
    errors = metadata.validate_annotations(f"{path}.annotations", found.annotations)
    return errors + metadata.validate_labels(f"{path}.labels", found.labels)
