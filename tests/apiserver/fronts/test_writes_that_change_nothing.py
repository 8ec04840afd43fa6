"""A write that changes nothing creates no revision and no event, through both fronts.

Each test does its writes between two real ones and asserts that a watch sees only those two. The server's
clock is put forward before them, so that a time that is taken again would show.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from nominee.machinery.api.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    EVENTS_EVENT,
    NAMESPACE,
    POD,
    REPLICA_SET,
    Kind,
)
from tests.apiserver.fronts.adapter import Api, Document, Outcome
from tests.apiserver.fronts.both import Both
from tests.apiserver.fronts.documents import config_map, made, made_binding, pod, replica_set
from tests.support.patience import PATIENCE_SECONDS

Unseen = Callable[[Kind[Any], str, str], AbstractContextManager[Document]]


def event(name: str) -> Document:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    seen = "2026-01-01T00:00:00Z"
    return {
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": about,
        "reason": "Seen",
        "type": "Normal",
        "firstTimestamp": seen,
        "lastTimestamp": seen,
        "count": 1,
    }


def new_event(name: str) -> Document:
    return {
        "metadata": {"name": name},
        "regarding": {"kind": "Pod", "name": "p"},
        "eventTime": "2026-01-01T00:00:00.000001Z",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "action": "Look",
        "reason": "Seen",
        "type": "Normal",
    }


@pytest.fixture
def unseen(api: Api, both: Both) -> Unseen:
    """Fail if the body of `with` changes the object: its revision, or an event in a watch."""

    @contextmanager
    def watched(kind: Kind[Any], name: str, space: str) -> Iterator[Document]:
        before = made(api.get(kind, name, space))
        version = before["metadata"]["resourceVersion"]
        both.clock.ahead_seconds += 7
        options = {"fieldSelector": f"metadata.name={name}", "resourceVersion": version}
        with api.watch(kind, space, timeoutSeconds=int(PATIENCE_SECONDS), **options) as stream:
            yield copy.deepcopy(before)
            assert made(api.get(kind, name, space)) == before
            made(api.patch(kind, name, {"metadata": {"annotations": {"after": version}}}, space))
            seen = stream.next()
            assert (seen.type, seen.document["metadata"].get("annotations")) == (
                "MODIFIED",
                {"after": version},
            )

    return watched


WRITES: dict[str, Callable[[Api, Kind[Any], Document, str, str], Outcome]] = {
    "put": lambda api, kind, live, name, space: api.update(kind, live, space, fieldManager="other"),
    "put without a resource version": lambda api, kind, live, name, space: api.update(
        kind,
        {**live, "metadata": {k: v for k, v in live["metadata"].items() if k != "resourceVersion"}},
        space,
    ),
    "merge": lambda api, kind, live, name, space: api.patch(kind, name, {}, space, fieldManager="other"),
    "strategic": lambda api, kind, live, name, space: api.patch(
        kind,
        name,
        {"metadata": {"labels": live["metadata"].get("labels")}},
        space,
        form="strategic",
        fieldManager="other",
    ),
    "json": lambda api, kind, live, name, space: api.patch(
        kind, name, [{"op": "test", "path": "/metadata/name", "value": name}], space, form="json"
    ),
}


@pytest.mark.parametrize("how", WRITES)
def test_the_same_object(api: Api, unseen: Unseen, space: str, how: str) -> None:
    objects: dict[Kind[Any], Document] = {
        CONFIG_MAP: config_map("x", {"k": "1"}),
        POD: pod("x"),
        DEPLOYMENT: replica_set("x"),
        EVENT: {
            **event("x"),
            "metadata": {"name": "x"},
            "involvedObject": {"kind": "Pod", "namespace": space},
        },
        EVENTS_EVENT: {**new_event("y"), "regarding": {"kind": "Pod", "namespace": space}},
    }
    for kind, document in objects.items():
        name = document["metadata"]["name"]
        made(api.create(kind, document, space, fieldManager="maker"))
        with unseen(kind, name, space) as live:
            made(WRITES[how](api, kind, live, name, space))


def test_an_apply_again(api: Api, unseen: Unseen, space: str) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("x", {"k": "1"})}

    def apply() -> None:
        made(api.patch(CONFIG_MAP, "x", config, space, form="apply", fieldManager="me"))

    apply()
    with unseen(CONFIG_MAP, "x", space):
        apply()


def test_a_status_or_nomination_again(api: Api, unseen: Unseen, space: str) -> None:
    made(api.create(POD, pod("x"), space))
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
    change = {"status": {"nominatedNodeName": "n1", "conditions": [waiting]}}

    def nominate(form: str) -> None:
        made(api.patch(POD, "x", change, space, form=form, subresource="status", fieldManager=form))

    nominate("strategic")
    with unseen(POD, "x", space) as live:
        nominate("strategic")
        nominate("merge")
        made(api.update(POD, live, space, subresource="status", fieldManager="other"))
        only = {"status": {"nominatedNodeName": "n1"}}
        made(api.patch(POD, "x", only, space, subresource="status"))


def test_the_same_scale_and_size(api: Api, unseen: Unseen, space: str) -> None:
    made(api.create(REPLICA_SET, replica_set("x"), space))
    with unseen(REPLICA_SET, "x", space):
        made(api.patch(REPLICA_SET, "x", {"spec": {"replicas": 2}}, space, subresource="scale"))
        scale = made(api.get(REPLICA_SET, "x", space, subresource="scale"))
        made(api.update(REPLICA_SET, scale, space, subresource="scale"))
    made(api.create(POD, pod("x"), space))
    same = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "0.1"}}}]}}
    with unseen(POD, "x", space):
        made(api.patch(POD, "x", same, space, form="strategic", subresource="resize"))


def test_a_pod_is_not_bound_again(api: Api, unseen: Unseen, space: str) -> None:
    """Measured on 1.36.2: also for the same node the answer is 409 (facts of the API server, bind-twice)."""
    made(api.create(POD, pod("x"), space))
    assert made_binding(api, "x", space, "n1").code == 200
    with unseen(POD, "x", space):
        for node in ("n1", "n2"):
            again = made_binding(api, "x", space, node)
            assert (again.code, again.message) == (
                409,
                'Operation cannot be fulfilled on pods/binding "x": pod x is already assigned to node "n1"',
            )


def test_a_pod_is_deleted_again(api: Api, unseen: Unseen, space: str) -> None:
    made(api.create(POD, pod("x"), space))
    made_binding(api, "x", space, "n1")
    made(api.delete(POD, "x", space))
    with unseen(POD, "x", space):
        for body in (None, {"gracePeriodSeconds": 30}, {"gracePeriodSeconds": 60}):
            again = made(api.delete(POD, "x", space, body=body))
            assert again["metadata"]["deletionGracePeriodSeconds"] == 30
        made(api.delete_collection(POD, space))
    eviction = {"metadata": {"name": "x", "namespace": space}}
    assert api.create(POD, eviction, space, name="x", subresource="eviction").code == 200
    with unseen(POD, "x", space):
        assert api.create(POD, eviction, space, name="x", subresource="eviction").code == 200


@pytest.mark.parametrize("policy", [None, "Foreground", "Orphan"])
def test_what_finalizers_keep_is_deleted_again(
    api: Api, unseen: Unseen, space: str, policy: str | None
) -> None:
    made(api.create(REPLICA_SET, {**replica_set("x")}, space))
    made(api.patch(REPLICA_SET, "x", {"metadata": {"finalizers": ["example.com/keep"]}}, space))
    body = {"propagationPolicy": policy} if policy else None
    made(api.delete(REPLICA_SET, "x", space, body=body))
    with unseen(REPLICA_SET, "x", space):
        made(api.delete(REPLICA_SET, "x", space, body=body))


def test_a_namespace_is_deleted_again(api: Api, unseen: Unseen, space: str) -> None:
    made(api.delete(NAMESPACE, space))
    with unseen(NAMESPACE, space, ""):
        made(api.delete(NAMESPACE, space))
        made(api.delete(NAMESPACE, space, body={"gracePeriodSeconds": 0}))
