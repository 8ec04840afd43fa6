"""Patches of JSON documents: merge patches (RFC 7386) and strategic merge patches.

`strategic_merge_patch` and `diff_strategic` take the full name of the message that the document is of
(`k8s.io.api.core.v1.Pod`). All are pure: arguments stay as they are, results may share parts with them.
"""

from __future__ import annotations

from typing import Any

from nominee.machinery.patch.strategic_diff import diff_strategic
from nominee.machinery.patch.strategic_merge import strategic_merge_patch
from nominee.machinery.patch.strategic_schema import PatchError

__all__ = ["PatchError", "diff_strategic", "merge_patch", "strategic_merge_patch"]


def merge_patch(document: Any, patch: Any) -> Any:
    """RFC 7386: objects merge, null deletes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result
