"""Rows of the time line: the values that the page shows of an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nominee.lab.timeline.rows import _sum_of, row
from nominee.machinery.api.pb import apps, coordination, core
from tests.lab.invariants.histories import node, pod


def _node() -> core.Node:
    found = node("n1", cpu="4")
    found.status.allocatable["memory"].string = "8Gi"
    found.status.allocatable["example.com/gpu"].string = "2"
    found.metadata.labels["topology.kubernetes.io/zone"] = "a"
    found.metadata.labels["nominee.dev/node-group"] = "small"
    found.status.nodeInfo.kubeletVersion = "v1.37.0"
    found.status.conditions.add(type="Ready", status="True", reason="KubeletReady")
    found.status.conditions.add(type="DiskPressure", status="False")
    found.status.conditions.add(type="MemoryPressure", status="True", reason="Full")
    found.spec.taints.add(key="k", value="v", effect="NoSchedule")
    found.spec.unschedulable = True
    return found


def test_the_row_of_a_node() -> None:
    assert row(_node()) == {
        "cpu": 4000,
        "memory": 8 << 30,
        "pods": 110,
        "devices": {"example.com/gpu": 2},
        "zone": "a",
        "group": "small",
        "ready": "True",
        "conditions": {"MemoryPressure": "True Full"},
        "taints": ["k=v:NoSchedule"],
        "unschedulable": True,
        "version": "v1.37.0",
        "rows": {
            "taints": "k:NoSchedule",
            "Ready": "True KubeletReady",
            "DiskPressure": "False",
            "MemoryPressure": "True Full",
        },
    }


def test_the_row_of_a_pod_has_only_what_is_not_empty() -> None:
    found = pod("a", cpu="100m", priority=7)
    found.metadata.ownerReferences.add(kind="ReplicaSet", name="web", controller=True)
    found.spec.containers[0].resources.requests["example.com/gpu"].string = "1"
    assert row(found) == {
        "uid": "uid-a",
        "cpu": 100,
        "devices": {"example.com/gpu": 1},
        "priority": 7,
        "owner": "ReplicaSet/web",
        "phase": "Pending",
        "rows": {"phase": "Pending"},
    }


def _refused(found: core.Pod) -> None:
    found.status.conditions.add(
        type="PodScheduled", status="False", reason="Unschedulable", message="0/3 nodes"
    )


def _resizing(kind: str, reason: str) -> Callable[[core.Pod], None]:
    def change(found: core.Pod) -> None:
        found.status.conditions.add(type=kind, status="True", reason=reason, message="why")

    return change


def _gated(found: core.Pod) -> None:
    found.spec.schedulingGates.add(name="wait")


@pytest.mark.parametrize(
    ("found", "change", "want"),
    [
        (pod("a", nominated="n1"), lambda _: None, {"nominated": "n1", "prebind": True}),
        (pod("a", nominated="n1"), _refused, {"reason": "Unschedulable", "message": "0/3 nodes"}),
        (pod("a", node="n1"), lambda _: None, {"node": "n1"}),
        (pod("a", deletes_at=5.0), lambda _: None, {"terminating": 5.0}),
        (pod("a"), _gated, {"gated": True}),
        (
            pod("a", cpu="2", allocated="1"),
            _resizing("PodResizePending", "Deferred"),
            {"resize": "Deferred", "desired": {"cpu": 2000, "memory": 0}, "cpu": 2000},
        ),
        (
            pod("a", cpu="2", allocated="1"),
            _resizing("PodResizePending", "Infeasible"),
            {"resize": "Infeasible", "desired": {"cpu": 2000, "memory": 0}, "cpu": 1000, "message": "why"},
        ),
        (
            pod("a", cpu="1", allocated="1"),
            _resizing("PodResizeInProgress", ""),
            {"resize": "InProgress", "cpu": 1000},
        ),
        (pod("a"), _resizing("PodResizeInProgress", "Error"), {"resize": "Error", "reason": "Error"}),
    ],
)
def test_the_states_of_a_pod(
    found: core.Pod, change: Callable[[core.Pod], None], want: dict[str, Any]
) -> None:
    change(found)
    made = row(found)
    assert want.items() <= made.items()
    states = ("prebind", "gated", "terminating", "resize", "desired", "node", "nominated")
    assert {name for name in states if name in made} <= {*want, "nominated"}


def _with_init_container(found: core.Pod) -> None:
    found.spec.initContainers.add(name="i").resources.requests["cpu"].string = "3"


def _with_overhead(found: core.Pod) -> None:
    found.spec.overhead["cpu"].string = "50m"


def _at_pod_level(found: core.Pod) -> None:
    found.spec.resources.requests["cpu"].string = "4"


def _with_a_second_container(found: core.Pod) -> None:
    found.spec.containers.add(name="d").resources.requests["memory"].string = "1Gi"


@pytest.mark.parametrize(
    ("change", "cpu", "memory"),
    [
        (lambda _: None, 2000, None),
        (_with_a_second_container, 2000, 1 << 30),
        (_with_init_container, 3000, None),
        (_with_overhead, 2050, None),
        (_at_pod_level, 4000, None),
    ],
)
def test_requests_are_added_up_once_for_pods_with_the_same_containers_only(
    change: Callable[[core.Pod], None], cpu: int, memory: int | None
) -> None:
    for name in ("first", "second"):
        row(pod("plain", cpu="2"))
        found = pod(name, cpu="2")
        change(found)
        assert (row(found)["cpu"], row(found).get("memory")) == (cpu, memory)
    row(pod("a", cpu="2"))
    before = _sum_of.cache_info()
    assert row(pod("b", cpu="2"))["cpu"] == 2000
    assert _sum_of.cache_info().hits == before.hits + 1


def test_what_cannot_be_counted_is_left_out() -> None:
    found = pod("a", cpu="two")
    assert row(found)["phase"] == "Pending"
    assert "cpu" not in row(found)


def test_bars_of_other_kinds() -> None:
    replica_set = apps.ReplicaSet()
    assert row(replica_set) == {}
    replica_set.spec.replicas = 0
    assert row(replica_set) == {"rows": {"replicas": "0"}}
    lease = coordination.Lease()
    lease.spec.holderIdentity = "scheduler-1"
    assert row(lease) == {"rows": {"holder": "scheduler-1"}}


def test_a_secret_shows_nothing() -> None:
    secret = core.Secret(data={"password": b"hunter2"})
    assert row(secret) == {}
