"""Health, taints, metadata and eviction of nodes, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from nominee.controllers.nodes.eviction import seconds_to_live
from nominee.controllers.nodes.health import observe, ready_status, unknown_status, unready_pod
from nominee.controllers.nodes.metadata import TTL_ANNOTATION, patch, ttl_seconds
from nominee.controllers.nodes.registration import registrations
from nominee.controllers.nodes.taints import plan_no_execute, plan_no_schedule, taints_patch
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import Moment, to_time
from tests.controllers.builders import EPOCH, condition, lease, node, pod, stamp

NOW = to_time(float(EPOCH + 100))
REGISTERED = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
MINE = {"key": "mine", "effect": "NoSchedule"}


def _names(taints: Sequence[core.Taint] | None) -> list[str] | None:
    return None if taints is None else [f"{t.key.rpartition('/')[2]}:{t.effect}" for t in taints]


@pytest.mark.parametrize(
    ("conditions", "taints", "unschedulable", "no_schedule", "no_execute"),
    [
        ([condition("Ready")], [], False, None, None),
        ([condition("Ready")], [REGISTERED], False, [], None),
        ([condition("Ready")], [MINE, REGISTERED], False, ["mine:NoSchedule"], None),
        ([condition("Ready", "False")], [REGISTERED], False, None,
         ["not-ready:NoSchedule", "not-ready:NoExecute"]),
        ([condition("Ready", "Unknown")], [MINE], False, ["mine:NoSchedule", "unreachable:NoSchedule"],
         ["mine:NoSchedule", "unreachable:NoExecute"]),
        ([condition("Ready"), condition("MemoryPressure")], [], True,
         ["memory-pressure:NoSchedule", "unschedulable:NoSchedule"], None),
        ([condition("Ready"), condition("DiskPressure", "False"), condition("PIDPressure")], [], False,
         ["pid-pressure:NoSchedule"], None),
        ([], [REGISTERED], False, [], None),
    ],
)  # fmt: skip
def test_taints_follow_conditions(
    conditions: Sequence[Mapping[str, str]],
    taints: Sequence[Mapping[str, str]],
    unschedulable: bool,
    no_schedule: list[str] | None,
    no_execute: list[str] | None,
) -> None:
    made = node(conditions=conditions, taints=taints, unschedulable=unschedulable)
    assert _names(plan_no_schedule(made, NOW)) == no_schedule
    assert _names(plan_no_execute(made, ready_status(made), NOW)) == no_execute


def test_taints_have_the_time_they_were_added() -> None:
    planned = plan_no_execute(node(taints=[REGISTERED]), "Unknown", NOW)
    assert planned is not None
    assert [t.HasField("timeAdded") for t in planned] == [False, True]
    assert planned[1].timeAdded == NOW


def _toleration(key: str = "", **more: Any) -> dict[str, Any]:
    return {"operator": "Exists", "effect": "NoExecute", **({"key": key} if key else {}), **more}


A = core.Taint(key="a", effect="NoExecute")
B = core.Taint(key="b", effect="NoExecute")
SCHEDULE = core.Taint(key="c", effect="NoSchedule")


@pytest.mark.parametrize(
    ("tolerations", "taints", "seconds"),
    [
        ([], [], None),
        ([], [SCHEDULE], None),
        ([], [A], 0.0),
        ([_toleration("a")], [A], None),
        ([_toleration("a")], [A, B], 0.0),
        ([_toleration("a", tolerationSeconds=30)], [A], 30.0),
        ([_toleration("a", tolerationSeconds=30), _toleration("b", tolerationSeconds=5)], [A, B], 5.0),
        ([_toleration("a", tolerationSeconds=30), _toleration("a")], [A], 30.0),
        ([_toleration("a"), _toleration("a", tolerationSeconds=30)], [A], None),
        ([_toleration("a", tolerationSeconds=30), _toleration("a", tolerationSeconds=5)], [A], 30.0),
        ([_toleration("a", tolerationSeconds=-1)], [A], 0.0),
        ([_toleration()], [A, B], None),
    ],
)
def test_how_long_a_pod_may_stay(
    tolerations: list[dict[str, Any]], taints: list[core.Taint], seconds: float | None
) -> None:
    assert seconds_to_live(pod(tolerations=tolerations), taints) == seconds


def _at(seconds: float) -> Moment:
    return Moment(EPOCH + seconds, seconds)


def test_a_node_is_healthy_while_its_lease_or_status_changes() -> None:
    beat = [condition("Ready", lastHeartbeatTime=stamp(0))]
    health = observe(None, node(conditions=beat), lease("n1", 0), _at(10.0))
    assert health.changed_at == 10.0
    assert observe(health, node(conditions=beat), lease("n1", 0), _at(20.0)).changed_at == 10.0
    assert observe(health, node(conditions=beat), None, _at(20.0)).changed_at == 10.0
    renewed = observe(health, node(conditions=beat), lease("n1", 5), _at(20.0))
    assert renewed.changed_at == 20.0
    # A lease that goes back in time is no sign of life.
    assert observe(renewed, node(conditions=beat), lease("n1", 1), _at(30.0)).changed_at == 20.0
    later = [condition("Ready", lastHeartbeatTime=stamp(30))]
    assert observe(health, node(conditions=later), lease("n1", 0), _at(25.0)).changed_at == 25.0


@pytest.mark.parametrize(
    ("conditions", "renewed", "changed_at"),
    [
        pytest.param([], None, 60.0, id="since it was created"),
        pytest.param([], 0, 100.0, id="its kubelet lives, and has no status yet"),
        pytest.param([condition("Ready", "Unknown")], None, 100.0, id="its status is as if it had just come"),
    ],
)
def test_a_node_without_a_status_is_as_old_as_it_is_to_a_controller_that_starts(
    conditions: list[dict[str, str]], renewed: int | None, changed_at: float
) -> None:
    made = node(conditions=conditions)
    made.metadata.creationTimestamp.CopyFrom(to_time(float(EPOCH + 60)))
    found = observe(None, made, None if renewed is None else lease("n1", renewed), _at(100.0))
    assert found.changed_at == changed_at


def test_a_silent_node_is_unknown_once() -> None:
    ready = condition("Ready", reason="KubeletReady", message="fine", lastHeartbeatTime=stamp(7))
    silent = unknown_status(node(conditions=[ready, condition("DiskPressure", "Unknown")]), NOW)
    assert silent is not None
    rows = {row.type: row for row in silent.status.conditions}
    assert (rows["Ready"].status, rows["Ready"].reason) == ("Unknown", "NodeStatusUnknown")
    assert rows["Ready"].lastHeartbeatTime.seconds == EPOCH + 7
    assert rows["Ready"].lastTransitionTime == NOW
    assert rows["PIDPressure"].reason == "NodeStatusNeverUpdated"
    assert rows["DiskPressure"].reason == ""  # it was unknown before
    assert unknown_status(silent, to_time(float(EPOCH + 200))) is None


def test_a_ready_pod_becomes_unready_once() -> None:
    unready = unready_pod(pod(ready=True), NOW)
    assert unready is not None
    row = unready.status.conditions[0]
    assert (row.type, row.status, row.lastTransitionTime) == ("Ready", "False", NOW)
    assert unready_pod(unready, NOW) is None
    assert unready_pod(pod(), NOW) is None


@pytest.mark.parametrize(
    ("nodes", "seconds"),
    [(1, 0), (100, 0), (101, 15), (500, 15), (501, 30), (1000, 30), (2000, 60), (2001, 300)],
)
def test_the_ttl_grows_with_the_number_of_nodes(nodes: int, seconds: int) -> None:
    assert ttl_seconds(nodes) == seconds


def test_metadata_is_patched_until_it_is_right() -> None:
    made = node(labels={"kubernetes.io/os": "linux"})
    change = patch(made, 1)
    assert change == {
        "metadata": {"annotations": {TTL_ANNOTATION: "0"}, "labels": {"beta.kubernetes.io/os": "linux"}}
    }
    made.metadata.annotations[TTL_ANNOTATION] = "0"
    made.metadata.labels["beta.kubernetes.io/os"] = "linux"
    assert patch(made, 1) == {}
    assert patch(made, 101) == {"metadata": {"annotations": {TTL_ANNOTATION: "15"}}}


def test_nodes_are_registered_and_removed_once() -> None:
    rows = list(registrations({"1": "a", "2": "b"}, {"2": "b", "3": "c"}))
    assert [(uid, name, event.reason, event.note) for uid, name, event in rows] == [
        ("3", "c", "RegisteredNode", "Node c event: Registered Node c in Controller"),
        ("1", "a", "RemovingNode", "Node a event: Removing Node a from Controller"),
    ]


def test_taints_are_patched_unless_another_writer_changed_the_node() -> None:
    of = node()
    of.metadata.resourceVersion = "7"
    assert taints_patch(of, []) == {"metadata": {"resourceVersion": "7"}, "spec": {"taints": None}}
    assert taints_patch(of, [core.Taint(key="k", effect="NoExecute")])["spec"] == {
        "taints": [{"key": "k", "effect": "NoExecute"}]
    }
