"""ComponentStatuses: what kubectl shows of the control plane's health."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from nominee.apiserver.fronts.rest.front import FrontOptions
from nominee.apiserver.fronts.rest.health.components import Checked, Components
from nominee.apiserver.registry.registry import Registry
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates
from nominee.machinery.process.serving_port.health import Health
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import envelope
from tests.apiserver.registry.memory_storage import MemoryCache, MemoryStorage
from tests.apiserver.rest.asgi import VERSION, Rest, rest_front

_PATH = "/api/v1/componentstatuses"
_REFUSED = "127.0.0.1:10259/healthz does not answer: connection refused"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_DEPRECATED = ["v1 ComponentStatus is deprecated in v1.19+"]


class _Source:
    """A cluster whose scheduler does not answer."""

    async def check(self, name: str) -> Checked:
        if name == "scheduler":
            return Checked(healthy=False, message=_REFUSED)
        return Checked(healthy=True, message="ok")


@pytest.fixture
def rest() -> Rest:
    storage, clock = MemoryStorage(), FakeClock()
    registry = Registry(
        storage,
        MemoryCache(storage),
        None,
        gates=Gates("apiserver", VERSION),
        clock=clock,
        rng=random.Random(1),
    )
    options = FrontOptions(VERSION, "127.0.0.1:1", components=_Source())
    return Rest(rest_front(registry, clock, options), registry)


def _status(name: str, status: str, message: str) -> dict[str, Any]:
    condition = {"type": "Healthy", "status": status, "message": message}
    return {"metadata": {"name": name}, "conditions": [condition]}


async def test_a_list(rest: Rest) -> None:
    reply = await rest.json("GET", _PATH)
    assert (reply.code, reply.warnings) == (200, _DEPRECATED)
    assert reply.document == {
        "kind": "ComponentStatusList",
        "apiVersion": "v1",
        "metadata": {},
        "items": [
            _status("controller-manager", "True", "ok"),
            _status("scheduler", "False", _REFUSED),
            _status("etcd-0", "True", "ok"),
        ],
    }
    reply = await rest.json("GET", _PATH, query={"fieldSelector": "metadata.name=etcd-0"})
    assert [each["metadata"]["name"] for each in reply.document["items"]] == ["etcd-0"]
    reply = await rest.json("GET", _PATH, query={"labelSelector": "a=b"})
    assert reply.document["items"] == []


async def test_one(rest: Rest) -> None:
    reply = await rest.json("GET", f"{_PATH}/etcd-0")
    assert (reply.code, reply.warnings) == (200, _DEPRECATED)
    one = {"kind": "ComponentStatus", "apiVersion": "v1", **_status("etcd-0", "True", "ok")}
    assert reply.document == one
    reply = await rest.json("GET", f"{_PATH}/none")
    assert (reply.code, reply.document["message"]) == (500, "Component not found: none")
    assert "reason" not in reply.document


async def test_protobuf(rest: Rest) -> None:
    accept = "application/vnd.kubernetes.protobuf"
    reply = await rest.json("GET", _PATH, accept=accept)
    _, kind, raw = envelope.unwrap(reply.body)
    found = core.ComponentStatusList.FromString(raw)
    assert (kind, found.items[0].metadata.name) == ("ComponentStatusList", "controller-manager")
    assert {each.metadata.resourceVersion for each in found.items} == {""}


async def test_a_table(rest: Rest) -> None:
    reply = await rest.json("GET", _PATH, accept=_TABLE)
    columns = [
        (each["name"], each["format"], each["description"]) for each in reply.document["columnDefinitions"]
    ]
    assert columns[1:] == [
        ("Status", "", "Status of the component conditions"),
        ("Message", "", "Message of the component conditions"),
        ("Error", "", "Error of the component conditions"),
    ]
    assert [row["cells"] for row in reply.document["rows"]] == [
        ["controller-manager", "Healthy", "ok", ""],
        ["scheduler", "Unhealthy", _REFUSED, ""],
        ["etcd-0", "Healthy", "ok", ""],
    ]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", _PATH, 405),
        ("DELETE", f"{_PATH}/etcd-0", 405),
        ("PUT", f"{_PATH}/etcd-0", 405),
        ("GET", f"{_PATH}?watch=true", 405),
        ("GET", f"{_PATH}/etcd-0/status", 404),
        ("GET", "/api/v1/namespaces/default/componentstatuses", 404),
    ],
)
async def test_it_is_read_only(rest: Rest, method: str, path: str, code: int) -> None:
    path, _, query = path.partition("?")
    reply = await rest.json(method, path, {}, {"watch": "true"} if query else None)
    assert reply.code == code, reply.body


async def test_the_checks(tmp_path: Path) -> None:
    health = Health()
    components = Components(tmp_path, health)
    assert not (await components.check("etcd-0")).healthy
    health.add("etcd", lambda: None)
    assert await components.check("etcd-0") == Checked(healthy=True, message="ok")
    found = await components.check("scheduler")
    assert found == Checked(healthy=False, message="no process scheduler runs")
