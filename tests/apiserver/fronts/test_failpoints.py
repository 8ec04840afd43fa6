"""A failpoint of the request chain acts on requests of both fronts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from nominee.machinery.api.kinds import CONFIG_MAP, NODE, POD, REPLICA_SET
from nominee.machinery.runtime import failpoints
from tests.apiserver.fronts.adapter import Api, Outcome
from tests.apiserver.fronts.documents import config_map, made, pod, refused, replica_set

BEFORE, AFTER, SEND = "apiserver.write.before", "apiserver.write.after", "apiserver.watch.send"
WRITES: dict[str, Callable[[Api, str], Outcome]] = {
    "create": lambda api, space: api.create(CONFIG_MAP, config_map("new"), space),
    "update": lambda api, space: api.update(CONFIG_MAP, config_map("old", {"k": "2"}), space),
    "patch": lambda api, space: api.patch(CONFIG_MAP, "old", {"data": {"k": "2"}}, space),
    "delete": lambda api, space: api.delete(CONFIG_MAP, "old", space),
    "delete collection": lambda api, space: api.delete_collection(CONFIG_MAP, space),
    "scale": lambda api, space: api.patch(
        REPLICA_SET, "r", {"spec": {"replicas": 3}}, space, subresource="scale"
    ),
}


@contextmanager
def armed(name: str, action: str) -> Iterator[None]:
    failpoints.arm(name, action)
    try:
        yield
    finally:
        failpoints.arm(name, "off")


def stored(api: Api, space: str) -> tuple[object, ...]:
    """Return what the writes change."""
    maps = api.list(CONFIG_MAP, space).document["items"]
    replicas = api.get(REPLICA_SET, "r", space).document["spec"]["replicas"]
    return [(each["metadata"]["name"], each.get("data")) for each in maps], replicas


@pytest.mark.parametrize("write", WRITES)
def test_a_write_stops_before_and_after(api: Api, space: str, write: str) -> None:
    made(api.create(CONFIG_MAP, config_map("old"), space))
    made(api.create(REPLICA_SET, replica_set("r"), space))
    untouched = stored(api, space)
    with armed(BEFORE, 'error("stopped")'):
        answer = refused(WRITES[write](api, space), 500, "InternalError")
        assert answer.message == "Internal error occurred: stopped"
        assert stored(api, space) == untouched, "a read does not pass the step"
    with armed(AFTER, "error(503)"):
        assert WRITES[write](api, space).code == 503
    assert stored(api, space) != untouched


def test_a_binding_stops_before(api: Api, space: str) -> None:
    made(api.create(NODE, {"metadata": {"name": f"n-{space}"}}))
    made(api.create(POD, pod("p"), space))
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": f"n-{space}"}}
    with armed(BEFORE, "error(503)"):
        assert api.create(POD, binding, space, name="p", subresource="binding").code == 503
    assert "nodeName" not in api.get(POD, "p", space).document["spec"]


def test_a_watch_stops_before_its_events_are_sent(api: Api, space: str) -> None:
    version = api.list(CONFIG_MAP, space).document["metadata"]["resourceVersion"]
    with armed(SEND, "error(500)"), api.watch(CONFIG_MAP, space, resourceVersion=version) as stream:
        made(api.create(CONFIG_MAP, config_map("a"), space))
        ended = stream.next()
    assert (ended.type, ended.document["message"]) == (
        "ERROR",
        f"failpoint {SEND}: Internal Server Error",
    )
