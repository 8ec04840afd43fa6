"""What upstream's sources say of objects and their changes: a test a verb and kind.

`cases.yaml` has the cases of the first kinds; a kind that came later has a file of its own in `cases/`, with
its plain object and the feature gates of all its cases.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from nominee.apiserver.objects import served
from nominee.machinery.api import kinds
from nominee.machinery.features.gates import Gates
from tests.apiserver.rest.asgi import VERSION, Reply, Rest, in_memory

_TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "img"}]}}
_WORKLOAD = {"selector": {"matchLabels": {"app": "x"}}, "template": _TEMPLATE}
_STORAGE = {"accessModes": ["ReadWriteOnce"]}
_PLAIN: dict[str, tuple[str, dict[str, Any]]] = {
    "Pod": ("v1", {"spec": {"containers": [{"name": "c", "image": "img"}]}}),
    "Node": ("v1", {}),
    "Namespace": ("v1", {}),
    "ConfigMap": ("v1", {}),
    "PersistentVolumeClaim": ("v1", {"spec": {**_STORAGE, "resources": {"requests": {"storage": "1Gi"}}}}),
    "PersistentVolume": (
        "v1", {"spec": {**_STORAGE, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}}}
    ),
    "Service": ("v1", {"spec": {"ports": [{"port": 80}]}}),
    "PodDisruptionBudget": (
        "policy/v1", {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
    ),
    "Deployment": ("apps/v1", {"spec": _WORKLOAD}),
    "ReplicaSet": ("apps/v1", {"spec": _WORKLOAD}),
    "Lease": ("coordination.k8s.io/v1", {"spec": {}}),
    "ResourceClaim": (
        "resource.k8s.io/v1",
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}},
    ),
    "StorageClass": ("storage.k8s.io/v1", {"provisioner": "p"}),
    "PriorityClass": ("scheduling.k8s.io/v1", {"value": 1}),
}  # fmt: skip


@cache
def _cases() -> dict[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    folder = Path(__file__).parent
    for case in _load(folder / "cases.yaml"):
        found.setdefault((case["verb"], case["kind"]), []).append(case)
    for path in sorted((folder / "cases").glob("*.yaml")):
        of_kind = _load(path)
        kind = of_kind["kind"]
        if "plain" in of_kind:
            _PLAIN[kind] = (of_kind["apiVersion"], of_kind["plain"])
        for case in of_kind["cases"]:
            gates = {**of_kind.get("gates", {}), **case.get("gates", {})}
            found.setdefault((case["verb"], kind), []).append({**case, "kind": kind, "gates": gates})
    return found


def _load(path: Path) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)


def _document(kind: str, changes: dict[str, Any]) -> dict[str, Any]:
    version, plain = _PLAIN[kind]
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, **copy.deepcopy(plain)}
    _set(document, changes)
    return document


def _set(document: dict[str, Any], changes: dict[str, Any]) -> None:
    """Dotted paths; null takes a member away."""
    for path, value in changes.items():
        *parents, last = path.split(".")
        inner: Any = document
        for part in parents:
            inner = inner[int(part)] if isinstance(inner, list) else inner.setdefault(part, {})
        if isinstance(inner, list):
            inner[int(last)] = value
        elif value is None:
            inner.pop(last, None)
        else:
            inner[last] = value


def _at(document: Any, path: str) -> Any:
    for part in path.split("."):
        if document is None:
            return None
        document = document[int(part)] if isinstance(document, list) else document.get(part)
    return document


def _path(document: dict[str, Any]) -> str:
    kind = kinds.by_kind(document["apiVersion"], document["kind"])
    assert kind is not None
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{base}/namespaces/default/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"


async def _play(rest: Rest, case: dict[str, Any]) -> Reply:
    if case["verb"] == "create":
        document = _document(case["kind"], case["set"])
        return await rest.json("POST", _path(document), document, {"dryRun": "All"})
    document = _document(case["kind"], case.get("have") or {})
    path = _path(document)
    made = await rest.json("POST", path, document)
    assert made.code == 201, made.document
    path = f"{path}/{document['metadata']['name']}"
    if "haveStatus" in case:
        live = {**(await rest.json("GET", path)).document, "status": case["haveStatus"]}
        done = await rest.json("PUT", f"{path}/status", live)
        assert done.code == 200, done.document
    live = (await rest.json("GET", path)).document
    _set(live, case["set"])
    return await rest.json("PUT", path + ("/status" if case["verb"] == "status" else ""), live)


def _messages(reply: Reply) -> list[str]:
    if reply.code < 300:
        return []
    document = reply.document
    causes = (document.get("details") or {}).get("causes") or [{"message": document["message"]}]
    return [
        f"{cause['field']}: {cause['message']}" if "field" in cause else cause["message"] for cause in causes
    ]


def _fits(messages: list[str], want: list[str]) -> bool:
    return len(messages) == len(want) and all(map(str.startswith, messages, want))


@pytest.fixture(autouse=True)
def kinds_by_default() -> Iterator[None]:
    """Serve afterwards the kinds that need no gate."""
    yield
    served.configure(Gates("apiserver", VERSION))


@pytest.mark.parametrize(("verb", "kind"), sorted(_cases()))
async def test_objects_are_judged_as_upstreams_sources_say(verb: str, kind: str) -> None:
    shared: dict[str, Rest] = {}
    failures = []
    for case in _cases()[verb, kind]:
        gates = case.get("gates", {})
        served.configure(Gates("apiserver", VERSION, gates))
        if verb != "create" or str(gates) not in shared:
            shared[str(gates)] = await in_memory(gates=gates)
        reply = await _play(shared[str(gates)], case)
        messages, code = (
            _messages(reply),
            case.get("code", 422 if case["want"] else 201 if verb == "create" else 200),
        )
        want = case["want"]
        warned = [each for each in reply.warnings if not each.startswith("nominee: ")]
        made = {path: _at(reply.document, path) for path in case.get("made", ())}
        right = warned == case.get("warn", warned) and made == case.get("made", made)
        if reply.code != code or not _fits(messages, want) or not right:
            got = [*messages, *warned, made]
            failures.append(f"{case['of']} {case['set']}: {reply.code}\n  got {got}\n  want {want}")
    assert not failures, "\n".join(failures)
