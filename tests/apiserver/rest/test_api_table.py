"""Recorded Tables: columns and cells of each kind."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from apiserver.cached_object import CachedObject
from apiserver.rest.columns import columns_of, row_of
from apiserver.rest.row import duration
from machinery import kinds
from machinery.kinds import Kind
from machinery.wire import codec, envelope
from tests.apiserver.rest.asgi import golden

LINES = list(golden("api_table"))
_AGE = re.compile(r"(?<=\()[^()]+(?= ago\)$)")


def _kind(line: dict[str, Any]) -> Kind[Any] | None:
    named = line.get("kind") or line["object"]["kind"]
    return next((kind for kind in kinds.KINDS if kind.kind == named), None)


@pytest.mark.parametrize(
    "line",
    [line for line in LINES if line.get("columns") and _kind(line)],
    ids=lambda line: str(line["kind"]),
)
def test_columns(line: dict[str, Any]) -> None:
    kind = _kind(line)
    assert kind is not None

    def told(columns: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return [(c["name"], c["type"], c["format"], c["priority"]) for c in columns]

    got = columns_of(kind)
    assert told(got) == told(line["columnDefinitions"])
    if kind in (kinds.NODE, kinds.PRIORITY_CLASS):
        # Their texts are the fields' own, which the schemas have.
        assert [c["description"] for c in got] == [c["description"] for c in line["columnDefinitions"]]


@pytest.mark.parametrize(
    "line",
    [line for line in LINES if "cells" in line and _kind(line)],
    ids=lambda line: f"{line['object']['kind']}-{line.get('note')}",
)
def test_cells(line: dict[str, Any]) -> None:
    kind = _kind(line)
    assert kind is not None
    text = json.dumps(line["object"])
    for masked in ("<set>", "<now>"):
        text = text.replace(masked, "2026-01-01T00:00:00Z")
    obj = codec.from_json(kind.message, json.loads(text))
    if not obj.metadata.creationTimestamp.seconds:
        obj.metadata.creationTimestamp.seconds = 1_000_000
    found = CachedObject(kind, "", obj.metadata.name, 1, stored=envelope.encode(obj))
    now = obj.metadata.creationTimestamp.seconds + 5.0
    row = row_of(found, now)
    names = [column["name"] for column in columns_of(kind)]
    wanted = list(line["cells"])
    for position, name in enumerate(names):
        if wanted[position] == "<age>":
            assert re.fullmatch(r"[0-9dhmsy]+|<unknown>|<invalid>", row.cells[position])
            wanted[position] = row.cells[position]
        elif name == "Restarts":
            wanted[position] = _AGE.sub("", wanted[position])
            row.cells[position] = _AGE.sub("", row.cells[position])
    assert row.cells == wanted
    assert row.conditions == (line.get("rowConditions") or [])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (3600, "60m"),
        (3 * 3600 + 60, "3h1m"),
        (30 * 3600, "30h"),
        (50 * 3600, "2d2h"),
        (20 * 86400, "20d"),
        (800 * 86400, "2y70d"),
        (3000 * 86400, "8y"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
