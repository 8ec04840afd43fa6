"""A pod's status: what each version writes, and the fields of other clients."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.kubelet.features import features, status_features
from nominee.kubelet.pods.record import Outcome
from nominee.kubelet.resize.conditions import ResizeCondition
from nominee.kubelet.resources.pod_resources import PodResources, desired_resources
from nominee.kubelet.resources.requirements import Requirements, ResourceList
from nominee.kubelet.runtime import sandbox as runtime
from nominee.kubelet.status.pod_status import View, build
from nominee.machinery.api import objects
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version

NOW = 1_700_000_000.0
ALPHA_RESIZE = {"InPlacePodVerticalScaling": True}


def a_pod() -> core.Pod:
    pod = core.Pod()
    pod.metadata.uid, pod.metadata.name, pod.metadata.generation = "uid", "a", 3
    container = pod.spec.containers.add(name="main", image="pause:3")
    container.resources.requests["cpu"].string = "2"
    pod.status.conditions.add(type="PodScheduled", status="True")
    pod.status.conditions.add(type="example.com/own", status="True")
    pod.status.nominatedNodeName = "elsewhere"
    return pod


def view(pod: core.Pod, **changes: Any) -> View:
    sandbox = runtime.become_ready(
        runtime.start(runtime.prepare(pod, now=NOW), desired_resources(pod), ip="10.0.0.2", now=NOW)
    )
    small = PodResources((("main", Requirements(ResourceList.of({"cpu": "1"}))),))
    values: dict[str, Any] = {
        "pod": pod,
        "host_ip": "172.16.0.1",
        "now": NOW,
        "sandbox": sandbox,
        "allocated": small,
        "pending": ResizeCondition(reason="Deferred", message="no room", observed_generation=3, since=NOW),
    }
    return View(**(values | changes))


@pytest.mark.parametrize(
    ("version", "overrides", "conditions", "resize", "generation"),
    [
        (Version(1, 32), {}, False, "", 0),
        (Version(1, 32), ALPHA_RESIZE, False, "Deferred", 0),
        (Version(1, 33), {}, True, "", 0),
        (Version(1, 34), {}, True, "", 3),
        (Version(1, 37), {}, True, "", 3),
    ],
)
def test_each_version_shows_a_resize_in_its_own_fields(
    version: Version, overrides: dict[str, bool], conditions: bool, resize: str, generation: int
) -> None:
    known = status_features(version, Gates("kubelet", version, overrides))
    status = build(view(a_pod()), known)
    held = objects.get_condition(status.conditions, "PodResizePending")
    assert (held is not None) is conditions
    assert status.resize == resize
    assert status.observedGeneration == generation
    if held is not None:
        assert held.observedGeneration == generation
    row = status.containerStatuses[0]
    assert row.HasField("resources") is known.resize
    assert bool(row.allocatedResources) is known.resize


def test_fields_of_other_clients_stay() -> None:
    known = status_features(Version(1, 37), Gates("kubelet"))
    status = build(view(a_pod()), known)
    assert objects.condition_is(status.conditions, "example.com/own")
    assert status.nominatedNodeName == "elsewhere"
    assert [row.type for row in status.conditions] == [
        "PodResizePending", "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady",
        "PodScheduled", "example.com/own",
    ]  # fmt: skip


def test_the_same_view_writes_the_same_status_again() -> None:
    known = status_features(Version(1, 37), Gates("kubelet"))
    pod = a_pod()
    first = build(view(pod), known)
    pod.status.CopyFrom(first)
    assert build(view(pod, now=NOW + 100), known) == first


def test_readiness_gates_hold_ready_back() -> None:
    known = status_features(Version(1, 37), Gates("kubelet"))
    pod = a_pod()
    pod.spec.readinessGates.add(conditionType="example.com/late")
    status = build(view(pod), known)
    ready = objects.get_condition(status.conditions, "Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "ReadinessGatesNotReady")
    assert objects.condition_is(status.conditions, "ContainersReady")


def test_a_terminal_pod_has_no_resize() -> None:
    known = status_features(Version(1, 37), Gates("kubelet"))
    outcome = Outcome(reason="Preempting", message="gone", preempted=True)
    status = build(view(a_pod(), outcome=outcome, terminal=True), known)
    assert (status.phase, status.reason) == ("Failed", "Preempting")
    assert objects.get_condition(status.conditions, "PodResizePending") is None
    disrupted = objects.get_condition(status.conditions, "DisruptionTarget")
    assert disrupted is not None
    assert disrupted.reason == "TerminationByKubelet"


def test_a_pod_that_is_ended_is_failed_when_its_containers_have_stopped() -> None:
    known = status_features(Version(1, 36), Gates("kubelet", Version(1, 36)))
    outcome = Outcome(reason="DeadlineExceeded", message="too long")
    pod = a_pod()
    pod.status.CopyFrom(build(view(pod, pending=None), known))
    running = view(pod, outcome=outcome, pending=None)
    assert running.sandbox is not None
    assert build(running, known) == pod.status
    stopped = runtime.stop(running.sandbox, now=NOW)
    status = build(view(pod, outcome=outcome, sandbox=stopped, terminal=True), known)
    assert (status.phase, status.reason, status.message) == ("Failed", "DeadlineExceeded", "too long")


@pytest.mark.parametrize(("minor", "refuses"), [(33, True), (35, True), (36, False), (37, False)])
def test_a_resize_beyond_the_node_is_infeasible_before_1_36(minor: int, refuses: bool) -> None:
    version = Version(1, minor)
    assert features(version, Gates("kubelet", version)).infeasible_above_allocatable is refuses


def test_declared_features_follow_the_gates() -> None:
    assert status_features(Version(1, 34), Gates("kubelet", Version(1, 34))).declared_features == ()
    declared = status_features(
        Version(1, 37), Gates("kubelet"), cpu_manager_policy="static"
    ).declared_features
    assert "InPlacePodLevelResourcesVerticalScaling" in declared


@pytest.mark.parametrize(
    ("minor", "policy", "declares"), [(35, "none", True), (35, "static", False), (36, "none", False)]
)
def test_the_cpu_of_guaranteed_pods_is_a_declared_feature_until_1_35(
    minor: int, policy: str, declares: bool
) -> None:
    """Source: kubernetes/kubernetes#136759."""
    version = Version(1, minor)
    gates = Gates("kubelet", version, {"NodeDeclaredFeatures": True})
    declared = status_features(version, gates, cpu_manager_policy=policy).declared_features
    assert ("GuaranteedQoSPodCPUResize" in declared) is declares


def test_a_deferred_pod_shows_that_its_node_forbids_preemption() -> None:
    gate = {"SchedulerPreemptionForPodResize": True}
    known = status_features(Version(1, 37), Gates("kubelet", Version(1, 37), gate))
    pod = a_pod()
    pod.spec.nodeName = "node-1"
    pod.status.CopyFrom(build(view(pod, preemption_disabled=True), known))
    row = objects.get_condition(pod.status.conditions, "PodResizePreemptionDisabled")
    assert row is not None
    assert row.reason == "PreemptionDisabledByNodePolicy"
    assert row.message == (
        "Preemption for in-place pod resize is disabled on node 'node-1' by preemption policy."
    )
    for changed in (view(pod), view(pod, preemption_disabled=True, pending=None)):
        status = build(changed, known)
        assert objects.get_condition(status.conditions, "PodResizePreemptionDisabled") is None
    off = status_features(Version(1, 37), Gates("kubelet"))
    fresh = build(view(a_pod(), preemption_disabled=True), off)
    assert objects.get_condition(fresh.conditions, "PodResizePreemptionDisabled") is None


def conditions(pod: core.Pod, **changes: Any) -> dict[str, tuple[str, str]]:
    """Type -> status and reason."""
    known = status_features(Version(1, 36), Gates("kubelet", Version(1, 36)))
    status = build(view(pod, pending=None, **changes), known)
    return {row.type: (row.status, row.reason) for row in status.conditions}


def test_a_pod_created_with_a_node_name_is_scheduled() -> None:
    pod = a_pod()
    pod.status.ClearField("conditions")
    assert conditions(pod)["PodScheduled"] == ("True", "")


def test_a_pod_whose_containers_are_still_to_start_has_no_address() -> None:
    known = status_features(Version(1, 36), Gates("kubelet", Version(1, 36)))
    status = build(view(a_pod(), sandbox=runtime.prepare(a_pod(), ip="10.0.0.2", now=NOW)), known)
    assert (status.podIP, status.hostIP) == ("", "172.16.0.1")
    assert not objects.condition_is(status.conditions, "PodReadyToStartContainers")


@pytest.mark.parametrize("admitted", [False, True])
@pytest.mark.parametrize("init", [False, True])
def test_a_container_that_might_have_started_counts_as_failed_when_its_pod_ends(
    init: bool, admitted: bool
) -> None:
    pod, known = a_pod(), status_features(Version(1, 36), Gates("kubelet", Version(1, 36)))
    if init:
        pod.spec.initContainers.add(name="first")
        pod.spec.initContainers.add(name="second")
    waiting = runtime.prepare(pod, now=NOW) if admitted else None
    status = build(view(pod, sandbox=waiting, pending=None, terminal=True), known)
    rows = (*status.initContainerStatuses, *status.containerStatuses)
    assert (rows[0].state.terminated.reason, rows[0].state.terminated.exitCode) == (
        "ContainerStatusUnknown",
        137,
    )
    assert [row.state.waiting.reason for row in rows[1:]] == ["PodInitializing"] * (len(rows) - 1)
    assert status.phase == "Failed"
    assert conditions(pod, sandbox=waiting, terminal=True)["Ready"] == ("False", "ContainersNotReady")
    if admitted:
        late = Outcome(reason="DeadlineExceeded", message="")
        assert conditions(pod, sandbox=waiting, terminal=True, outcome=late)["Ready"] == (
            "False",
            "PodFailed",
        )


@pytest.mark.parametrize(("init", "reason"), [(False, "ContainerCreating"), (True, "PodInitializing")])
def test_what_a_container_waits_for(init: bool, reason: str) -> None:
    pod, known = a_pod(), status_features(Version(1, 36), Gates("kubelet", Version(1, 36)))
    if init:
        pod.spec.initContainers.add(name="first")
    status = build(view(pod, sandbox=runtime.prepare(pod, now=NOW)), known)
    rows = (*status.initContainerStatuses, *status.containerStatuses)
    assert {row.state.waiting.reason for row in rows} == {reason}


def test_a_completed_pod_has_reason_PodCompleted_in_all_its_conditions() -> None:
    pod = a_pod()
    started = view(pod).sandbox
    assert started is not None
    assert conditions(pod, sandbox=runtime.stop(started, now=NOW), terminal=True) == {
        "PodReadyToStartContainers": ("False", ""),
        "Initialized": ("True", "PodCompleted"),
        "Ready": ("False", "PodCompleted"),
        "ContainersReady": ("False", "PodCompleted"),
        "PodScheduled": ("True", ""),
        "example.com/own": ("True", ""),
    }


def test_a_rejected_pod_keeps_fields_of_other_clients() -> None:
    outcome = Outcome(reason="OutOfcpu", message="Pod was rejected: no room")
    assert conditions(a_pod(), sandbox=None, outcome=outcome, terminal=True) == {
        "example.com/own": ("True", "")
    }
