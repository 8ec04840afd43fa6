"""The rules about kubelets: heartbeats, resizes and removals."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.lab.chaos.rest.kubelets import heartbeats, removals, reports, resizes
from nominee.machinery.runtime.clock import rfc3339_micro
from tests.lab.chaos.rest.clusters import NOW, Change, Manifests, correct, pod, put, state

DEBUG = {("kubelet-0", "/debug/state"): {"copies": [], "nodes": {"n1": []}}}
DELETED = "1970-01-12T13:46:30Z"


def _manifests() -> Manifests:
    """Return the correct cluster with a pod whose container runs."""
    found = correct()
    found["runs"] = runs = pod("runs", labels={})
    running: dict[str, Any] = {"name": "c", "state": {"running": {}}}
    running |= {"ready": True, "resources": {"requests": {"cpu": "1000m"}}}
    runs["status"]["containerStatuses"] = [running]
    return found


def _found(change: Change, *, served: bool = True) -> list[str]:
    manifests = _manifests()
    change(manifests)
    seen = state(manifests, debug=DEBUG if served else {})
    return [str(each) for rule in (heartbeats, reports, resizes, removals) for each in rule(seen)]


def _nothing(_: Manifests) -> None:
    pass


def _condition(type_: str, reason: str) -> Change:
    def change(manifests: Manifests) -> None:
        conditions = manifests["runs"]["status"]["conditions"]
        conditions.append({"type": type_, "status": "True", "reason": reason})
        manifests["runs"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"

    return change


BIGGER = put("runs/spec/containers/0/resources/requests/cpu", "2")
NOT_READY = put("node/status/conditions", [{"type": "Ready", "status": "Unknown"}])
OLD = put("heartbeat/spec/renewTime", rfc3339_micro(NOW - 41))


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (NOT_READY, "node n1 is not ready, and its kubelet runs"),
        (
            put("runs/status/containerStatuses/0/ready", value=False),
            "pod default/runs shows Ready=True, and not all its containers are ready",
        ),
        (
            put("runs/status/conditions", [{"type": "ContainersReady", "status": "False"}]),
            "pod default/runs shows ContainersReady=False, and all its containers are ready",
        ),
        (
            put("runs/status/phase", "Pending"),
            "pod default/runs is Pending, and all its containers run",
        ),
        (
            lambda all_: (
                put("runs/metadata/generation", 2)(all_),
                put("runs/status/observedGeneration", 1)(all_),
            ),
            "pod default/runs has a status of generation 1 only",
        ),
        (
            lambda all_: (
                put("node/status/addresses", [{"type": "InternalIP", "address": "10.1.0.1"}])(all_),
                put("runs/status/hostIP", "10.1.0.2")(all_),
            ),
            "pod default/runs shows the hostIP 10.1.0.2, which its node does not have",
        ),
        (OLD, "node n1 has a lease that has run out, and its kubelet runs"),
        (lambda all_: all_.pop("heartbeat"), "node n1 has no lease, and its kubelet runs"),
        (
            BIGGER,
            "pod default/runs asks for another cpu in container c than it has, without PodResizePending",
        ),
        (_condition("PodResizeInProgress", ""), "pod default/runs is still being resized"),
        (
            put("deployment/metadata/deletionTimestamp", DELETED),
            "deployment default/web terminates, and no finalizer keeps it",
        ),
    ],
)
def test_a_finding(change: Change, finding: str) -> None:
    assert _found(change) == [finding]


@pytest.mark.parametrize("change", [_nothing, _condition("PodResizePending", "Deferred")])
def test_no_finding(change: Change) -> None:
    assert _found(change) == []


@pytest.mark.parametrize("change", [NOT_READY, OLD, BIGGER])
def test_a_node_whose_kubelet_is_away_is_not_asked(change: Change) -> None:
    assert _found(change, served=False) == []


def test_a_finalizer_keeps_an_object() -> None:
    def change(manifests: Manifests) -> None:
        manifests["deployment"]["metadata"].update(deletionTimestamp=DELETED, finalizers=["x/y"])

    assert _found(change) == []
