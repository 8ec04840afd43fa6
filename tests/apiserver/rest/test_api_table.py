"""Recorded Tables: columns and cells of each kind."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from nominee.apiserver.registry.registry import Registry
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import codec, envelope
from tests.apiserver.registry.memory_storage import MemoryCache, MemoryStorage
from tests.apiserver.rest.asgi import VERSION, Reply, front_over
from tests.support.recordings import read

LINES = read("api_table.jsonl")
_AGE = re.compile(r"(?<=\()[^()]+(?= ago\)$)")


def _kind(line: dict[str, Any]) -> Kind[Any]:
    named = line.get("kind") or line["object"]["kind"]
    return next(kind for kind in kinds.KINDS if kind.kind == named)


async def _table(kind: Kind[Any], obj: Any, now: float) -> Reply:
    """What a GET of an object answers that lies in storage so."""
    storage, clock = MemoryStorage(), FakeClock(now)
    namespace = (obj.metadata.namespace or "default") if kind.namespaced else ""
    await storage.create(kind.key(namespace, obj.metadata.name), envelope.encode(obj))
    registry = Registry(
        storage,
        MemoryCache(storage),
        None,
        gates=Gates("apiserver", VERSION),
        clock=clock,
        rng=random.Random(1),
    )
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    where = f"/namespaces/{namespace}" if namespace else ""
    path = f"{base}{where}/{kind.plural}/{obj.metadata.name}"
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    return await front_over(registry, clock).json("GET", path, accept=accept)


@pytest.mark.parametrize(
    "line", [line for line in LINES if line.get("columns")], ids=lambda line: str(line["kind"])
)
async def test_columns(line: dict[str, Any]) -> None:
    kind = _kind(line)
    obj = kind.message()
    obj.metadata.name = "x"
    got = (await _table(kind, obj, 5.0)).document["columnDefinitions"]

    fields = ("name", "type", "format", "description", "priority")
    assert [{name: column[name] for name in fields} for column in got] == line["columnDefinitions"]


def test_each_line_has_columns_or_cells() -> None:
    assert all(bool(line.get("columns")) != ("cells" in line) for line in LINES)


@pytest.mark.parametrize(
    "line",
    [line for line in LINES if "cells" in line],
    ids=lambda line: f"{line['object']['kind']}-{line.get('note')}",
)
async def test_cells(line: dict[str, Any]) -> None:
    kind = _kind(line)
    text = json.dumps(line["object"])
    for masked in ("<set>", "<now>"):
        text = text.replace(masked, "2026-01-01T00:00:00Z")
    obj = codec.from_json(kind.message, json.loads(text))
    if not obj.metadata.creationTimestamp.seconds:
        obj.metadata.creationTimestamp.seconds = 1_000_000
    table = (await _table(kind, obj, obj.metadata.creationTimestamp.seconds + 5.0)).document
    (row,) = table["rows"]
    cells, wanted = row["cells"], list(line["cells"])
    for position, column in enumerate(table["columnDefinitions"]):
        if wanted[position] == "<age>":
            assert re.fullmatch(r"[0-9dhmsy]+|<unknown>|<invalid>", cells[position])
            wanted[position] = cells[position]
        elif column["name"] == "Restarts":
            wanted[position] = _AGE.sub("", wanted[position])
            cells[position] = _AGE.sub("", cells[position])
    assert cells == wanted
    assert row.get("conditions", []) == (line.get("rowConditions") or [])
    if "rowObjectKind" in line:
        assert row["object"]["kind"] == line["rowObjectKind"]
        assert sorted(table["metadata"]) == sorted(line["tableMetadataKeys"])
