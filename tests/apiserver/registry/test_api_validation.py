"""The sample of golden validation cases for the kinds that are served: create, update, status, defaults.

Only what the registry decides: transport, paths and field validation belong to a REST front. It reads the
sample that lies in the repository, since not every rule of the whole set is claimed here.
"""

from __future__ import annotations

import copy
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from apiserver.registry import Registry, bootstrap
from apiserver.registry.strategies import STRATEGIES
from machinery import kinds
from machinery.clock import FakeClock
from machinery.errors import StatusError
from machinery.kinds import Kind
from machinery.versions import Gates, Version
from machinery.wire import codec
from machinery.wire.scalars import DecodeError
from tests.apiserver.registry.memory_storage import MemoryCache, MemoryStorage

GOLDEN = Path(__file__).parents[2] / "golden" / "api_validation.jsonl"
FAMILIES = frozenset({"create", "update", "status", "valid"})
_PATH = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)/(?P<rest>.+)")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_UNSTABLE = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


def target(path: str) -> tuple[Kind[Any] | None, str, str, str]:
    """(kind, namespace, name, subresource) of a request's path."""
    match = _PATH.fullmatch(path)
    assert match
    group, parts, namespace = match["group"] or "", match["rest"].split("/"), ""
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in ("status", "finalize"):
        namespace, parts = parts[1], parts[2:]
    parts += [""] * (3 - len(parts))
    return kinds.by_resource(group, match["version"], parts[0]), namespace, parts[1], parts[2]


def cases() -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    # Kinds that are only stored have no rules to be judged by.
    return [
        case
        for case in lines
        if case["family"] in FAMILIES and target(case["request"]["path"])[0] in STRATEGIES
    ]


def expand(value: Any) -> Any:
    """`<x*N>` as N times x."""
    if isinstance(value, str):
        return re.sub(r"<x\*(\d+)>", lambda match: "x" * int(match[1]), value)
    if isinstance(value, dict):
        return {expand(key): expand(inner) for key, inner in value.items()}
    return [expand(inner) for inner in value] if isinstance(value, list) else value


def apply_change(document: Any, path: str | list[str], value: Any) -> None:
    *parents, last = path.split(".") if isinstance(path, str) else path
    for part in parents:
        document = document[int(part)] if isinstance(document, list) else document.setdefault(part, {})
    if isinstance(document, list):
        if value == "<delete>":
            del document[int(last)]
        else:
            document[int(last) : int(last) + 1] = [value]
    elif value == "<delete>":
        document.pop(last, None)
    else:
        document[last] = value


def comparable(document: dict[str, Any]) -> dict[str, Any]:
    made = copy.deepcopy(document)
    metadata = made.get("metadata", {})
    for name in _UNSTABLE:
        metadata.pop(name, None)
    if "generateName" in metadata:
        metadata.pop("name", None)
    text = json.dumps(made)
    return dict(json.loads(_TIME.sub("<now>", text)))


class Server:
    """A registry at 1.36 on an empty dictionary."""

    def __init__(self) -> None:
        storage = MemoryStorage()
        self.registry = Registry(
            storage,
            MemoryCache(storage),
            None,
            gates=Gates("apiserver", Version(1, 36)),
            clock=FakeClock(),
            rng=random.Random(1),
        )

    async def create(self, document: dict[str, Any]) -> None:
        kind = kinds.by_kind(document["apiVersion"], document["kind"])
        assert kind is not None
        obj = codec.from_json(kind.message, document)
        namespace = (obj.metadata.namespace or "default") if kind.namespaced else ""
        await self.registry.create(kind, namespace, "", "", obj)

    async def change(
        self, kind: Kind[Any], place: tuple[str, str, str], changes: list[tuple[str | list[str], Any]]
    ) -> Any:
        namespace, name, subresource = place
        current = await self.registry.get(kind, namespace, name)
        document = codec.to_json(current.message)
        for path, value in changes:
            apply_change(document, path, expand(value))
        obj = codec.from_json(kind.message, document)
        return (await self.registry.update(kind, namespace, name, subresource, obj)).message

    async def request(self, case: dict[str, Any]) -> Any:
        """Play the case; the object in the answer."""
        await bootstrap(self.registry)
        for document in case.get("setup") or []:
            await self.create(document)
        request = case["request"]
        kind, namespace, name, subresource = target(request["path"])
        assert kind is not None
        if case.get("setupStatus"):
            await self.change(kind, (namespace, name, "status"), [("status", case["setupStatus"])])
        if "set" in request:
            return await self.change(kind, (namespace, name, subresource), request["set"])
        obj = codec.from_json(kind.message, expand(request["body"]))
        if request["method"] == "POST":
            return (await self.registry.create(kind, namespace, "", "", obj)).message
        return (await self.registry.update(kind, namespace, name, subresource, obj)).message


def without_diff(text: str) -> str:
    """Upstream appends a diff of its internal structures; what precedes it counts."""
    return text.partition("\n@@")[0]


def told(error: StatusError) -> dict[str, Any]:
    causes = sorted((c.field, c.reason, without_diff(c.message)) for c in error.causes)
    return {"code": error.code, "reason": error.reason, "causes": causes}


@pytest.mark.parametrize("case", cases(), ids=lambda case: str(case["name"]))
async def test_a_request_is_judged_as_by_the_real_server(case: dict[str, Any]) -> None:
    expect = case["expect"]
    try:
        answer = await Server().request(case)
    except DecodeError:
        assert expect["code"] == 400
        return
    except StatusError as error:
        wanted = {
            "code": expect["code"],
            "reason": expect.get("reason", ""),
            "causes": sorted(
                (c.get("field", ""), c["reason"], without_diff(c["message"]))
                for c in expect.get("causes") or []
            ),
        }
        outcome = told(error)
        if len(outcome["causes"]) < 2:
            # With more the order in the text is that of Go's maps.
            wanted["message"] = without_diff(expect["message"])
            outcome["message"] = without_diff(error.message)
        assert outcome == wanted
        return
    assert expect["code"] < 300
    if "object" in expect:
        assert comparable(codec.to_json(answer)) == comparable(expect["object"])
