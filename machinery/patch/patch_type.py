"""Kinds of patches, by their media types."""

from __future__ import annotations

from enum import Enum


class PatchType(Enum):
    """The kind of a patch; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"
