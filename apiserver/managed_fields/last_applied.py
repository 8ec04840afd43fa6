"""The annotation of client-side apply, whose fields `kubectl apply --server-side` takes over.

A field whose value the annotation contains belongs to kubectl whichever manager owns it now: no conflict.

Source: apimachinery 1.36, util/managedfields/internal/lastapplied*.go.
"""

from __future__ import annotations

import json
from typing import Any, Final

from nominee.apiserver.managed_fields.fields import paths
from nominee.apiserver.managed_fields.fields.field_set import EMPTY, FieldSet
from nominee.apiserver.managed_fields.fields.schema import Type
from nominee.apiserver.managed_fields.fields.typed import TypedError, field_set, validate
from nominee.apiserver.managed_fields.merge.comparing import compare
from nominee.apiserver.validation.objects.metadata import ANNOTATIONS_BYTES_MAX

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"


def text_of(obj: Any) -> str:
    return str(obj.metadata.annotations.get(ANNOTATION, ""))


def unchanged_fields(declared: Type, live: Any) -> FieldSet:
    """Return the fields of the live document that have the annotation's value."""
    text = (live.get("metadata", {}).get("annotations") or {}).get(ANNOTATION)
    if not text:
        return EMPTY
    try:
        last = json.loads(text)
        if not isinstance(last, dict) or last.get("apiVersion") != live["apiVersion"]:
            return EMPTY
        validate(last, declared)
        change = compare(last, live, declared)
    except (TypedError, ValueError, RecursionError):
        return EMPTY
    return field_set(last, declared) - change.modified - change.added - change.removed


def write(obj: Any, config: Any) -> None:
    """Update the annotation to the applied configuration; it is removed when it would be too large."""
    metadata = dict(config.get("metadata") or {})
    if "annotations" in metadata:
        annotations = metadata["annotations"] or {}
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != ANNOTATION}
    made = {**config, "metadata": metadata}
    text = json.dumps(made, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    annotations = obj.metadata.annotations
    annotations[ANNOTATION] = f"{paths.escape_html(text)}\n"
    if (
        sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
        > ANNOTATIONS_BYTES_MAX
    ):
        del annotations[ANNOTATION]
