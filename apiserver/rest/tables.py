"""Objects as Tables: what kubectl prints.

The columns of each kind are in `apiserver.rest.columns`. Source: kube-apiserver 1.36,
endpoints/handlers/response.go and pkg/printers.
"""

from __future__ import annotations

from typing import Any

from apiserver.cached_object import CachedObject
from apiserver.requests import ListPage
from apiserver.rest import answers
from apiserver.rest.columns import Row, columns_of, row_of
from apiserver.rest.media import Media
from machinery import errors
from machinery.kinds import Kind
from machinery.wire import codec

_META = "meta.k8s.io"


def of_page(
    page: ListPage, media: Media, include_object: str, now: float, *, kind: Kind[Any] | None = None
) -> dict[str, Any]:
    """A Table of a list, or of one object."""
    kind = kind or page.items[0].kind
    metadata: dict[str, Any] = {"resourceVersion": page.resource_version}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return {
        "kind": "Table",
        "apiVersion": f"{_META}/{media.version}",
        "metadata": metadata,
        "columnDefinitions": columns_of(kind),
        "rows": [_row(found, media, include_object, now) for found in page.items],
    }


def of_event(
    found: CachedObject, media: Media, include_object: str, now: float, *, columns: bool
) -> dict[str, Any]:
    """A Table of one row, or of none where the event is a bookmark; columns only where asked for."""
    bookmark = not found.name
    return {
        "kind": "Table",
        "apiVersion": f"{_META}/{media.version}",
        "metadata": {"resourceVersion": str(found.revision)},
        "columnDefinitions": columns_of(found.kind) if columns else None,
        "rows": [_row(found, media, include_object, now, empty=bookmark)],
    }


def _row(
    found: CachedObject, media: Media, include_object: str, now: float, *, empty: bool = False
) -> dict[str, Any]:
    row = Row([]) if empty else row_of(found, now)
    made: dict[str, Any] = {"cells": row.cells}
    if row.conditions:
        made["conditions"] = row.conditions
    if include_object == "Object":
        made["object"] = answers.document(found)
    elif include_object in ("", "Metadata"):
        partial = codec.to_json(answers.partial(found))
        made["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"{_META}/{media.version}",
            **partial,
        }
    elif include_object != "None":
        problem = f'unrecognized includeObject value: "{include_object}"'
        raise errors.bad_request(problem)
    return made
