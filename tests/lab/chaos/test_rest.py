"""Which pods a cluster at rest may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from unittest.mock import AsyncMock, Mock, create_autospec

import pytest
from google.protobuf.message import Message

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.excepted import without_now, without_views
from nominee.lab.chaos.cases.rest import attempts_at_rest, busy, rewritten, unrest, work_of
from nominee.lab.chaos.disturbed_run import (
    ended_by_themselves,
    left_down,
    quiet,
    violations_at_rest,
)
from nominee.lab.history.invariants.table import OF_NOW, OF_REPORTS
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.fields.options import InvariantException
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.result import Violation
from nominee.localcluster.cluster import ClusterError, ProcessState
from nominee.localcluster.supervisor.model.states import ChildState
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import coordination, core
from nominee.machinery.runtime.clock import to_time
from tests.lab.invariants.histories import History

NOW = 1_000.0
_UNTRIED = "has not been scheduled, and has no condition PodScheduled"
_NO_KUBELETS: Mapping[str, ChildState] = MappingProxyType({})


@pytest.mark.parametrize(
    ("last_exit", "expected"),
    [
        ("exit code 1", "scheduler ended by itself with exit code 1"),
        ("exit code 0", ""),
        ("signal 9", ""),
        ("", ""),
    ],
)
def test_a_process_that_ended_by_itself(last_exit: str, expected: str) -> None:
    state = ProcessState(
        name="scheduler", component="scheduler", state="ready", restarts=1, last_exit=last_exit
    )
    assert ended_by_themselves([state]) == expected


@pytest.mark.parametrize(
    ("state", "expected"), [("crashed", "scheduler is left down after signal 9"), ("ready", ""), ("down", "")]
)
def test_a_process_that_is_left_down(state: str, expected: str) -> None:
    process = ProcessState(name="scheduler", component="scheduler", state=state, last_exit="signal 9")
    assert left_down([process]) == expected


@pytest.mark.parametrize(("loss", "is_late"), [("hang", True), ("lose-response", False)])
def test_what_is_compared_with_now_is_judged_at_rest_if_a_call_hangs(loss: str, is_late: bool) -> None:
    own = InvariantException(name="leaders-write", reason="on purpose")
    scenario = Scenario(name="s", except_invariants=(own,))
    found = without_now(scenario, Case.parse(f"kubelet-0:apiserver.Patch.pods={loss}"))
    later = OF_NOW | OF_REPORTS if is_late else set()
    assert {each.name for each in found.except_invariants} == {own.name} | later


@pytest.mark.parametrize(
    ("case", "excepted"),
    [
        (
            "scheduler-1:nodes=silent@2",
            {"admitted-pods-stay-admitted", "bindings-are-sound", "pods-move-forward"},
        ),
        ("kubelet-0:pods=silent@2", {"admitted-pods-stay-admitted"}),
        ("autoscaler:pods=silent@2", {"nodes-are-drained", "removed-nodes-were-unneeded"}),
        ("scheduler:nodes=stale@2", set()),
    ],
)
def test_the_view_of_a_component_is_not_judged_if_its_watch_is_silent(case: str, excepted: set[str]) -> None:
    own = InvariantException(name="leaders-write", reason="on purpose")
    scenario = Scenario(name="s", except_invariants=(own,))
    found = without_views(scenario, Case.parse(case))
    assert {each.name for each in found.except_invariants} == {own.name} | excepted


@pytest.mark.parametrize(
    ("loss", "invariant", "is_asked_again"),
    [
        ("hang", "checkpoints-match-status", True),
        ("hang", "allocated-within-allocatable", True),
        ("hang", "deleted-pods-end", True),
        ("hang", "one-node-per-pod", False),
        ("lose-response", "checkpoints-match-status", False),
    ],
)
async def test_a_violation_of_now_must_outlast_a_call_that_hangs(
    loss: str, invariant: str, is_asked_again: bool
) -> None:
    violation = Violation(invariant=invariant, message="the status differs")
    cluster = create_autospec(ScenarioCluster, instance=True)
    cluster.clock = AsyncMock()
    cluster.violations.side_effect = [[violation], []]
    case = Case.parse(f"kubelet-0:apiserver.Patch.pods={loss}")
    found = await violations_at_rest(Scenario(name="s"), case, cluster)
    assert list(found) == ([] if is_asked_again else [violation])
    assert cluster.clock.sleep.await_count == is_asked_again


def node(name: str = "n1", ready: str = "True") -> core.Node:
    """Return a node with the condition Ready."""
    found = core.Node()
    found.metadata.name = name
    found.status.conditions.add(type="Ready", status=ready)
    return found


def pod(*conditions: str, on: str = "", deleted: float | None = None, phase: str = "") -> core.Pod:
    """Return a pod with these conditions (`Ready=True`)."""
    found = core.Pod()
    found.metadata.name, found.metadata.namespace = "p", "default"
    found.spec.nodeName = on
    found.status.phase = phase
    for text in conditions:
        kind, status = text.split("=")
        found.status.conditions.add(type=kind, status=status)
    if deleted is not None:
        found.metadata.deletionTimestamp.CopyFrom(to_time(deleted))
    return found


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod(on="n1"), "is bound to n1 and is not ready"),
        (pod("Ready=True", on="n1"), ""),
        (pod(on="n1", phase="Succeeded"), ""),
        (pod(on="silent"), ""),
        (pod(), "has not been scheduled, and has no condition PodScheduled"),
        (pod("PodScheduled=False"), ""),
        (pod("Ready=True", on="n1", deleted=NOW + 5), ""),
        (pod("Ready=True", on="n1", deleted=NOW - 5), "is terminating beyond its grace period"),
        (pod(on="silent", deleted=NOW - 5), ""),
        (pod(on="gone"), ""),
        (pod(on="gone", deleted=NOW - 5), ""),
        (pod(deleted=NOW - 5), "is terminating beyond its grace period"),
    ],
)
def test_unrest(found: core.Pod, expected: str) -> None:
    nodes = [node(), node("silent", "Unknown")]
    reasons = [each.text for each in unrest([found], nodes, (), NOW)]
    assert reasons == ([f"pod default/p {expected}"] if expected else [])


@pytest.mark.parametrize(
    ("kubelet", "stopped", "is_late"),
    [
        (ChildState.READY, 70.0, False),
        (ChildState.READY, 80.0, True),
        (ChildState.DOWN, 130.0, False),
        (ChildState.DOWN, 140.0, True),
    ],
)
async def test_a_pod_that_ends_has_its_grace_period_again_and_the_time_of_a_silent_node(
    *, kubelet: ChildState, stopped: float, is_late: bool
) -> None:
    found = _stopping(45)
    state = {"kubelet-0": kubelet}
    cluster = _changing(lambda time: [found] if time < stopped else [], state)
    reason = await quiet(cluster, 30.0)
    assert reason == ("pod default/p is terminating beyond its grace period" if is_late else "")


async def test_a_pod_has_not_the_time_of_another_one_that_ends_slowly() -> None:
    stuck = pod()
    stuck.metadata.name = "stuck"
    cluster = _changing(lambda time: [_stopping(300), *([stuck] if time < 60.0 else [])])
    assert await quiet(cluster, 30.0) == f"pod default/stuck {_UNTRIED}"
    assert cluster.clock.monotonic() < 31.0


@pytest.mark.parametrize(("ready_at", "is_late"), [(74.0, False), (80.0, True)])
async def test_a_pod_that_follows_one_that_ended_slowly_has_time(ready_at: float, *, is_late: bool) -> None:
    """It may be its replacement. All must have ended after the longest grace period."""
    cluster = _changing(lambda time: [_stopping(45)] if time < 60.0 else [pod()] if time < ready_at else [])
    assert await quiet(cluster, 30.0) == (f"pod default/p {_UNTRIED}" if is_late else "")


@pytest.mark.parametrize(("on", "is_late"), [("n1", True), ("n2", False)])
async def test_a_silent_node_gives_time_to_its_pods_only(on: str, *, is_late: bool) -> None:
    states = {"kubelet-0": ChildState.READY, "kubelet-1": ChildState.DOWN}
    cluster = _changing(lambda time: [pod(on=on)] if time < 60.0 else [], states)
    cluster.http_json = AsyncMock(side_effect=_kubelet_0_with_n1)
    assert await quiet(cluster, 30.0) == (
        f"pod default/p is bound to {on} and is not ready" if is_late else ""
    )


async def test_a_process_that_starts_has_not_the_time_of_a_pod() -> None:
    cluster = _changing(lambda _: [_stopping(300)])
    started = ProcessState(name="scheduler", component="scheduler", state=ChildState.STARTING)
    ready = replace(started, state=ChildState.READY)

    async def processes() -> list[ProcessState]:
        return [ready if cluster.clock.monotonic() < 10.0 else started]

    cluster.processes = processes
    assert await quiet(cluster, 30.0) == "scheduler is starting"
    assert cluster.clock.monotonic() < 31.0


def _stopping(grace: int) -> core.Pod:
    """Return a pod on n1 whose grace period ends now."""
    found = pod(on="n1", deleted=NOW)
    found.metadata.deletionGracePeriodSeconds = grace
    return found


async def _kubelet_0_with_n1(process: str, path: str) -> dict[str, dict[str, list[str]]]:
    if (process, path) != ("kubelet-0", "/debug/state"):
        raise ClusterError("it does not run")
    return {"nodes": {"n1": []}}


def _changing(
    pods: Callable[[float], list[core.Pod]], kubelets: Mapping[str, ChildState] = _NO_KUBELETS
) -> Mock:
    """Return a cluster with two nodes, and with the pods of each second; no process answers."""
    time = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal time
        time += seconds

    def listed(kind: object) -> Mock:
        return Mock(items=pods(time) if kind is kinds.POD else [node(), node("n2")])

    cluster: Mock = create_autospec(ScenarioCluster, instance=True)
    processes = [
        ProcessState(name=name, component="kubelet", state=state) for name, state in kubelets.items()
    ]
    scheduler = ProcessState(name="scheduler", component="scheduler", state=ChildState.READY)
    cluster.processes = AsyncMock(return_value=[*processes, scheduler])
    cluster.client = Mock(
        list=AsyncMock(side_effect=listed), get=AsyncMock(return_value=coordination.Lease())
    )
    cluster.clock = Mock(monotonic=lambda: time, now=lambda: NOW + time, sleep=sleep)
    cluster.http_json = AsyncMock(side_effect=ClusterError("no answer"))
    return cluster


@pytest.mark.parametrize(
    ("states", "is_at_rest"),
    [
        (["OtherScheduler"], True),
        (["OtherScheduler", "OtherScheduler"], True),
        (["OtherScheduler", "Active"], False),
        (["Active"], False),
        ([], False),  # none answers
    ],
)
async def test_a_pod_whose_scheduler_does_not_exist_waits_for_ever(
    states: list[str], *, is_at_rest: bool
) -> None:
    names = [f"scheduler-{number}" for number in range(len(states) or 1)]
    explained = dict(zip(names, states, strict=False))
    time = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal time
        time += seconds

    async def answer(process: str, path: str) -> dict[str, str]:
        if "/debug/explain" not in path or process not in explained:
            raise ClusterError("no answer")
        return {"state": explained[process]}

    cluster = create_autospec(ScenarioCluster, instance=True)
    processes = [ProcessState(name=each, component="scheduler", state="ready") for each in names]
    cluster.processes = AsyncMock(return_value=processes)
    foreign = pod()
    foreign.spec.schedulerName = "another"
    items: dict[object, list[Message]] = {kinds.POD: [foreign], kinds.NODE: [node()]}
    cluster.client = Mock(
        list=AsyncMock(side_effect=lambda kind: Mock(items=items[kind])),
        get=AsyncMock(return_value=coordination.Lease()),  # none leads
    )
    cluster.clock = Mock(monotonic=lambda: time, now=lambda: NOW + time, sleep=sleep)
    cluster.http_json = AsyncMock(side_effect=answer)
    assert bool(await quiet(cluster, 30.0)) is not is_at_rest


def test_a_pod_without_a_node_is_at_rest_where_no_scheduler_runs() -> None:
    assert unrest([pod()], [], (), NOW)
    assert unrest([pod()], [], (), NOW, scheduled=False) == []
    assert unrest([pod(on="n1")], [node()], (), NOW, scheduled=False)


def test_a_pod_that_has_stopped_waits_for_its_finalizers() -> None:
    running, ended = pod(on="n1", deleted=NOW - 5), pod(on="n1", deleted=NOW - 5, phase="Succeeded")
    for each in (running, ended):
        each.metadata.finalizers.append("example.com/keep")
    assert unrest([running], [node()], (), NOW)
    assert unrest([ended], [node()], (), NOW) == []
    ended.metadata.finalizers[0] = "batch.kubernetes.io/job-tracking"
    assert unrest([ended], [node()], (), NOW)


def test_a_failed_pod_waits_until_its_index_gets_another() -> None:
    ended = pod(on="n1", deleted=NOW - 5, phase="Failed")
    ended.metadata.finalizers.append("batch.kubernetes.io/job-tracking")
    assert unrest([ended], [node()], (), NOW)
    ended.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] = "0"
    assert unrest([ended], [node()], (), NOW) == []
    ended.status.phase = "Succeeded"
    assert unrest([ended], [node()], (), NOW)


def test_a_gated_pod_is_at_rest() -> None:
    gated = pod()
    gated.spec.schedulingGates.add(name="example.com/wait")
    assert unrest([gated], [], (), NOW) == []


def test_a_pod_that_waits_for_a_readiness_gate_is_at_rest_once_its_containers_are_ready() -> None:
    nodes, waiting = [node()], pod("ContainersReady=True", "Ready=False", on="n1")
    assert unrest([waiting], nodes, (), NOW)
    waiting.spec.readinessGates.add(conditionType="example.com/go")
    assert unrest([waiting], nodes, (), NOW) == []
    waiting.status.conditions.add(type="example.com/go", status="True")
    assert unrest([waiting], nodes, (), NOW)


def test_a_pod_in_the_queue_of_unschedulable_pods_is_at_rest_without_its_condition() -> None:
    assert unrest([pod()], [], {"default/p"}, NOW) == []
    assert unrest([pod()], [], {"default/other"}, NOW)


def test_a_pod_in_the_queue_that_that_is_deleted_waits_for_the_pod_garbage_collector() -> None:
    assert unrest([pod(deleted=NOW - 5)], [], {"default/p"}, NOW)


def test_a_pod_whose_volume_is_created_is_at_rest_while_it_is_bound() -> None:
    assert unrest([pod()], [], (), NOW, on_the_way={"default/p"})
    waiting = pod()
    waiting.spec.volumes.add(name="data").volumeSource.persistentVolumeClaim.claimName = "data"
    assert unrest([waiting], [], (), NOW, on_the_way={"default/p"}) == []
    assert unrest([waiting], [], (), NOW)


def test_a_pod_that_is_nominated_for_a_plugin_that_waits_is_at_rest_while_it_is_bound() -> None:
    waiting = pod()
    waiting.status.nominatedNodeName = "n1"
    assert unrest([waiting], [], (), NOW, on_the_way={"default/p"}) == []
    assert unrest([waiting], [], (), NOW)


def test_an_object_that_is_written_again_and_again_at_rest() -> None:
    lease = coordination.Lease()
    lease.metadata.name, lease.metadata.namespace = "kube-scheduler", "kube-system"
    usual = [node(), lease, lease] * 5
    assert rewritten(History().put(*usual).revisions, 12.0) == []
    found = rewritten(History().put(*usual, node()).revisions, 12.0)
    assert found == ["Node n1 is written 6 times within 12 s, though nothing happens"]
    former, again = pod(), pod()
    former.metadata.uid, again.metadata.uid = "1", "2"
    assert rewritten(History().put(*[former] * 4).delete(former).put(*[again] * 4).revisions, 12.0) == []
    loop = History()
    for number in range(6):
        each = pod()
        each.metadata.uid = str(number)
        loop.put(each).delete(each)
    assert rewritten(loop.revisions, 12.0) == [
        "Pod default/p is created 6 times within 12 s, though nothing happens"
    ]


def test_a_process_that_works_at_rest() -> None:
    before, after = {"scheduler": 100, "kubelet-0": 50}, {"scheduler": 220, "kubelet-0": 62, "kubelet-1": 12}
    work = work_of(before, after, 12.0)
    assert work == {"scheduler": 10.0, "kubelet": 2.0}
    assert busy({"scheduler": 60.0, "kubelet": 2.0}, work) == []
    assert busy({"scheduler": 61.0, "kubelet": 2.0}, work) == [
        "the processes of scheduler work 61 times a second, though nothing happens"
    ]
    assert busy({"scheduler": 200.0}, None) == []
    assert busy({"scheduler": 201.0}, None)


def test_a_pod_that_is_tried_at_rest() -> None:
    before = {"default/p": 3, "default/q": 9}
    assert attempts_at_rest(before, {"default/p": 5, "default/r": 7}, 12.0) == []
    assert attempts_at_rest(before, {"default/p": 6}, 12.0) == [
        "pod default/p is tried 3 times within 12 s, though nothing happens"
    ]
