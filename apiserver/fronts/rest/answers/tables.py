"""Objects as Tables, for kubectl to print.

The columns of each kind are beside its other rules, in `nominee.apiserver.kinds`. Source: kube-apiserver
1.36, endpoints/handlers/response.go and pkg/printers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import Any

import anyio.lowlevel

from nominee.apiserver.fronts.rest.answers import documents as answers
from nominee.apiserver.fronts.rest.http import text
from nominee.apiserver.fronts.rest.http.media import Media
from nominee.apiserver.kinds.autoscaling import scales
from nominee.apiserver.kinds.conversion import as_stored
from nominee.apiserver.kinds.core import component_statuses
from nominee.apiserver.kinds.table import rules_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import ListPage
from nominee.apiserver.printing.columns import Column, Columns, Row
from nominee.apiserver.schema import descriptions
from nominee.machinery.api import errors
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.wire import codec

_META = "meta.k8s.io"
_UNSTORED: Mapping[AnyKind, Columns[Any]] = {
    scales.SCALE: scales.COLUMNS,
    component_statuses.COMPONENT_STATUS: component_statuses.COLUMNS,
}
"""The columns of kinds that are answered and not stored."""


def check(include_object: str) -> None:
    """Check a query's includeObject.

    Raises: StatusError 400.
    """
    if include_object not in ("", "Metadata", "Object", "None"):
        raise errors.bad_request(f'unrecognized includeObject value: "{include_object}"')


def of_page(
    page: ListPage, media: Media, include_object: str, now: float, *, kind: AnyKind | None = None
) -> dict[str, Any]:
    """Return the Table of a list, or of one object."""
    made = _head(page, media, kind or page.items[0].kind)
    return {**made, "rows": [_row(found, media, include_object, now) for found in page.items]}


async def in_pieces(
    page: ListPage, media: Media, include_object: str, now: float, kind: AnyKind
) -> AsyncIterator[bytes]:
    """Yield the JSON of `of_page`; other tasks run between the pieces."""
    before = f'{text.dump(_head(page, media, kind))[:-1]},"rows":['
    for start in range(0, len(page.items), answers.PIECE):
        some = page.items[start : start + answers.PIECE]
        rows = ",".join(text.dump(_row(found, media, include_object, now)) for found in some)
        yield (before + rows).encode()
        before = ","
        await anyio.lowlevel.checkpoint()
    yield b"]}\n" if before == "," else f"{before}]}}\n".encode()


def _head(page: ListPage, media: Media, kind: AnyKind) -> dict[str, Any]:
    return {
        "kind": "Table",
        "apiVersion": f"{_META}/{media.version}",
        "metadata": answers.list_meta(page),
        "columnDefinitions": definitions(columns_of(kind)),
    }


def of_event(
    found: CachedObject, media: Media, include_object: str, now: float, *, columns: bool
) -> dict[str, Any]:
    """Return the Table of a watch event: one row, none for a bookmark; columns only if requested."""
    bookmark = not found.name
    return {
        "kind": "Table",
        "apiVersion": f"{_META}/{media.version}",
        "metadata": {"resourceVersion": str(found.revision)},
        "columnDefinitions": definitions(columns_of(found.kind)) if columns else None,
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
    else:
        made["object"] = None
    return made


def columns_of(kind: AnyKind) -> Columns[Any]:
    """Return the columns of a kind that is served, or of one that is not stored."""
    own = _UNSTORED.get(kind)
    return rules_of(kind).columns if own is None else own


def row_of(found: CachedObject, now: float) -> Row:
    """Return an object's cells; `now` in seconds since the epoch."""
    message = found.message if found.kind in _UNSTORED else as_stored(found.kind, found.message)
    return columns_of(found.kind).row(message, now)


@cache
def definitions(columns: Columns[Any]) -> list[dict[str, Any]]:
    """Return the columnDefinitions of a Table; the list is shared."""
    return [_definition(column) for column in columns.columns]


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": descriptions.of(column.described),
        "priority": int(column.wide),
    }
