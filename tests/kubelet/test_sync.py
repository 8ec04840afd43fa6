"""Syncs of a pod: which instructions follow which, and what their results lead to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from nominee.kubelet import events, instructions
from nominee.kubelet.features import Features
from nominee.kubelet.instructions import Actuate, PodInstruction, RecordContainerEvents, SyncLater
from nominee.kubelet.node.state import NodeSettings
from nominee.kubelet.node.summary import memory_in_use
from nominee.kubelet.options import Delays
from nominee.kubelet.pod_sync.sync import UnexpectedResultError
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.pods.states import PodState
from nominee.kubelet.resize.actuation import Call, RestartContainers
from nominee.kubelet.runtime import sandbox as runtime
from nominee.machinery.api import objects
from nominee.machinery.api.pb import core
from tests.kubelet.executor import (
    Executor,
    calls,
    container,
    deleted,
    new_pod,
    node_object,
    resized,
    uid,
)


@dataclass
class Node(Executor):
    """A node whose instructions of some types fail, or are refused, while a test says so."""

    failing: tuple[type[PodInstruction], ...] = ()
    refused_call: int | None = None
    made: list[Actuate] = field(default_factory=list)

    def perform(self, instruction: PodInstruction) -> events.Result:
        sandbox = self.runtime.sandboxes.get(instruction.uid)
        if isinstance(instruction, self.failing):
            return events.InstructionFailed(uid=instruction.uid, sandbox=sandbox, at=self.moment())
        if isinstance(instruction, Actuate):
            self.made.append(instruction)
            if len(self.made) == self.refused_call:
                return events.CallRefused(uid=instruction.uid, error="no", sandbox=sandbox, at=self.moment())
        return super().perform(instruction)


def node(*pods: core.Pod, features: Features | None = None, **delays: float) -> Node:
    """A node that has seen these pods and worked on them."""
    settings = NodeSettings(host_ip="172.16.0.1", delays=Delays(**delays))
    here = Node(node_object(cpu="4", memory="8Gi", pods="10"), settings, features or Features())
    here.list_pods()
    show(here, *pods)
    return here


def show(here: Node, *pods: core.Pod) -> None:
    """Let the kubelet see pods, and work."""
    for pod in pods:
        here.store(pod)
    here.observe(*(pod.metadata.name for pod in pods))
    here.work()


def record(here: Node, name: str = "a") -> PodRecord:
    return here.node.pods[uid(name)]


def since(here: Node) -> list[str]:
    """The instructions since the last call."""
    found = calls(here.performed)
    here.performed.clear()
    return found


def event_reasons(here: Node) -> list[str]:
    found = [
        one.reason for each in here.noted if isinstance(each, RecordContainerEvents) for one in each.events
    ]
    here.noted.clear()
    return found


def conditions(here: Node, name: str = "a") -> dict[str, str]:
    return {row.type: row.reason or row.status for row in here.api[name].status.conditions}


# Start


def test_a_pod_is_saved_started_probed_and_reported() -> None:
    here = node(new_pod("a"))
    assert since(here) == [
        "SaveCheckpoint", "CreateSandbox", "StartContainers", "ProbeContainers", "PatchStatus",
    ]  # fmt: skip
    assert event_reasons(here) == ["Pulled", "Created", "Started"]
    assert here.api["a"].status.phase == "Running"
    assert record(here).state is PodState.RUNNING


def test_what_takes_time_is_reported_meanwhile() -> None:
    here = node(new_pod("a"), start=2.0, ready=3.0)
    assert since(here) == ["SaveCheckpoint", "CreateSandbox", "PatchStatus"]
    assert here.api["a"].status.phase == "Pending"
    here.pass_time(2.0)
    here.work()
    assert since(here) == ["StartContainers", "PatchStatus"]
    assert conditions(here)["Ready"] == "ContainersNotReady"
    here.pass_time(3.0)
    here.work()
    assert since(here) == ["ProbeContainers", "PatchStatus"]
    assert conditions(here)["Ready"] == "True"


def test_a_rejected_pod_is_never_started() -> None:
    here = node(new_pod("a", container("main", cpu="5")))
    assert since(here) == ["PatchStatus"]
    assert (here.api["a"].status.phase, here.api["a"].status.reason) == ("Failed", "OutOfcpu")
    assert record(here).state is PodState.TERMINATED


def test_a_sync_that_finds_nothing_to_do_writes_nothing() -> None:
    here = node(new_pod("a"))
    since(here)
    here.sync(uid("a"))
    assert since(here) == []


@pytest.mark.parametrize(
    "failing",
    [
        instructions.SaveCheckpoint,
        instructions.CreateSandbox,
        instructions.StartContainers,
        instructions.ProbeContainers,
        instructions.PatchStatus,
    ],
)
def test_what_fails_is_done_again_after_a_second(failing: type[PodInstruction]) -> None:
    here = Node(node_object(cpu="4", memory="8Gi", pods="10"), failing=(failing,))
    here.list_pods()
    show(here, new_pod("a"))
    assert failing.__name__ not in since(here)
    assert SyncLater(uid("a"), 1.0) in here.noted
    here.failing = ()
    here.pass_time(1.0)
    here.work()
    assert here.api["a"].status.phase == "Running"
    assert conditions(here)["Ready"] == "True"


def test_a_result_without_an_instruction_is_an_error() -> None:
    here = node(new_pod("a"))
    with pytest.raises(UnexpectedResultError, match="pod default/a: no instruction for PodDeleted"):
        here.handle(events.PodDeleted(uid=uid("a"), at=here.moment()))


# The end of containers


def annotated(name: str, duration: str, code: str = "0", **spec: Any) -> core.Pod:
    pod = new_pod(name, **spec)
    pod.metadata.annotations["nominee.dev/run-duration"] = duration
    pod.metadata.annotations["nominee.dev/exit-code"] = code
    return pod


def test_containers_that_exit_for_good_end_the_pod() -> None:
    here = node(annotated("a", "5s", restartPolicy="Never"))
    since(here)
    here.pass_time(5.0)
    here.work()
    assert since(here) == ["ExitContainers", "PatchStatus"]
    assert here.api["a"].status.phase == "Succeeded"
    assert record(here).log is not None
    assert record(here).log[-1] == "terminated (containers exited for good)"  # type: ignore[index]


def test_containers_that_crash_back_off_and_start_again() -> None:
    here = node(annotated("a", "5s", "1"))
    since(here)
    here.pass_time(5.0)
    here.work()
    assert since(here)[:2] == ["CrashContainers", "StartCrashedContainers"], "the first restart is at once"
    here.pass_time(5.0)
    here.work()
    assert since(here) == ["CrashContainers", "PatchStatus"]
    assert event_reasons(here)[-1] == "BackOff"
    here.pass_time(10.0)
    here.work()
    assert since(here)[:1] == ["StartCrashedContainers"]
    assert here.api["a"].status.containerStatuses[0].restartCount == 2


@pytest.mark.parametrize(("duration", "restarts"), [("1h", 1), ("5s", 2)])
def test_a_container_whose_image_changes_starts_again_at_once(duration: str, restarts: int) -> None:
    here = node(annotated("a", duration, "1"))
    for _ in range(2):
        here.pass_time(5.0)  # one that crashes twice then waits in its back-off
        here.work()
    event_reasons(here)
    pod = objects.copy_of(here.api["a"])
    pod.spec.containers[0].image = "other"
    show(here, pod)
    (row,) = here.api["a"].status.containerStatuses
    assert (row.image, row.restartCount, row.state.HasField("running")) == ("other", restarts, True)
    assert ("Killing" in event_reasons(here)) == (duration == "1h")
    show(here, objects.copy_of(here.api["a"]))
    assert here.api["a"].status.containerStatuses[0].restartCount == restarts


def test_a_kubelet_that_finds_all_containers_exited_ends_the_pod() -> None:
    """Killed between the exit of the containers and the status that says so."""
    here = node(annotated("a", "5s", "3", restartPolicy="Never"))
    here.runtime.perform(instructions.ExitContainers(uid("a"), 3), here.now)
    here.save()
    here.start_process()
    here.list_pods()
    here.work()
    assert here.api["a"].status.phase == "Failed"
    assert here.api["a"].status.containerStatuses[0].state.terminated.exitCode == 3


# Termination


def test_a_deleted_pod_gets_its_grace_period() -> None:
    here = node(new_pod("a"), stop=5.0)
    since(here)
    event_reasons(here)
    show(here, deleted(here.api["a"], 30))
    assert since(here) == ["SignalContainers"]
    assert event_reasons(here) == ["Killing"]
    here.pass_time(5.0)
    here.work()
    assert since(here) == ["StopContainers", "PatchStatus", "DeletePod", "SaveCheckpoint"]
    assert here.api == {}
    assert here.runtime.sandboxes == {}


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [("Always", 0, "Succeeded"), ("OnFailure", 143, "Failed"), ("Never", 143, "Failed")],
)
def test_a_task_that_is_stopped_has_not_succeeded(policy: str, code: int, phase: str) -> None:
    """A Job would take it for done (SIGTERM: 128 + 15)."""
    pod = new_pod("a", restartPolicy=policy)
    pod.metadata.finalizers.append("batch.kubernetes.io/job-tracking")
    here = node(pod)
    show(here, deleted(here.api["a"], 0))
    status = here.api["a"].status
    assert (status.containerStatuses[0].state.terminated.exitCode, status.phase) == (code, phase)


def test_a_shorter_grace_period_shortens_the_wait() -> None:
    here = node(new_pod("a"), stop=20.0)
    show(here, deleted(here.api["a"], 30))
    since(here)
    show(here, deleted(here.api["a"], 3))
    here.pass_time(3.0)
    here.work()
    assert since(here)[0] == "StopContainers"


def test_a_finalizer_delays_the_removal_and_not_the_end() -> None:
    pod = new_pod("a")
    pod.metadata.finalizers.append("example.com/wait")
    here = node(pod)
    since(here)
    show(here, deleted(here.api["a"], 0))
    assert since(here) == ["SignalContainers", "StopContainers", "PatchStatus"]


def test_a_pod_that_is_gone_takes_no_room_from_one_that_comes_after_it() -> None:
    here = node(new_pod("a", container("main", cpu="3")))
    del here.api["a"]
    here.store(new_pod("b", container("main", cpu="3")))
    here.observe("a", "b")
    here.work()
    assert here.api["b"].status.phase == "Running"
    assert [*here.node.pods] == ["uid-b"]


def test_a_pod_that_another_client_has_ended_is_stopped() -> None:
    """Source: kubelet 1.36, podWorkers.UpdatePod: a pod in a terminal phase is torn down."""
    here = node(new_pod("a"))
    since(here)
    failed = core.Pod()
    failed.CopyFrom(here.api["a"])
    failed.status.phase = "Failed"
    show(here, failed)
    assert since(here) == ["SignalContainers", "StopContainers"], "its status stays the client's"
    assert record(here).state is PodState.TERMINATED


def test_a_preempted_pod_frees_its_room_at_once_and_is_failed_once_it_has_stopped() -> None:
    here = node(new_pod("a", container("main", cpu="3")), stop=2.0)
    show(here, new_pod("k", container("main", cpu="2"), priority=2_000_000_000))
    assert record(here, "k").state is PodState.RUNNING
    assert here.api["a"].status.phase == "Running"
    here.pass_time(2.0)
    here.work()
    assert (here.api["a"].status.phase, here.api["a"].status.reason) == ("Failed", "Preempting")
    assert conditions(here)["DisruptionTarget"] == "TerminationByKubelet"


def test_a_deadline_ends_the_pod() -> None:
    here = node(new_pod("a", activeDeadlineSeconds=5))
    since(here)
    here.pass_time(5.0)
    here.work()
    assert since(here) == ["SignalContainers", "StopContainers", "PatchStatus"]
    assert here.api["a"].status.reason == "DeadlineExceeded"


def test_a_deadline_counts_by_the_wall_clock() -> None:
    here = node(new_pod("a", activeDeadlineSeconds=100))
    here.ahead = 99.0
    here.pass_time(1.0)
    here.work()
    assert here.api["a"].status.reason == "DeadlineExceeded"


# Resize


def test_a_resize_is_saved_and_then_actuated_call_by_call() -> None:
    here = node(new_pod("a", container("main", cpu="1", limits={"cpu": "1", "memory": "1Gi"}, memory="1Gi")))
    since(here)
    show(here, resized(here.api["a"], "main", cpu="2", memory="2Gi"))
    done = since(here)
    assert done[0] == "SaveCheckpoint"
    assert set(done[1:-1]) == {"Actuate"}
    assert done[-1] == "PatchStatus"
    kinds = [one.call.call for one in here.made if isinstance(one.call, Call)]
    assert kinds == [
        "podSandbox", "podCgroup", "container",  # memory
        "podSandbox", "podCgroup", "podSandbox", "podCgroup", "container",  # cpu
    ]  # fmt: skip
    assert [one.first for one in here.made] == [True] + [False] * 7
    assert [one.last for one in here.made] == [False] * 7 + [True]
    assert "PodResizeInProgress" not in conditions(here)


def test_a_refused_call_leaves_what_is_done_and_is_made_again_after_ten_seconds() -> None:
    here = node(new_pod("a", container("one", cpu="1"), container("two", cpu="1")))
    here.refused_call = 4
    pod = resized(resized(here.api["a"], "one", cpu="1500m"), "two", cpu="1500m")
    show(here, pod)
    assert [one.call.container for one in here.made if isinstance(one.call, Call)] == ["", "", "one", "two"]
    assert conditions(here)["PodResizeInProgress"] == "Error"
    actuated = here.runtime.sandboxes[uid("a")].in_force()
    assert [actuated.of(name).requests.get("cpu") for name in ("one", "two")] == ["1500m", "1"]
    here.made.clear()
    here.refused_call = None
    here.pass_time(9.0)
    here.work()
    assert here.made == []
    here.pass_time(1.0)
    here.work()
    assert [one.call.container for one in here.made if isinstance(one.call, Call)] == ["", "", "two"]
    assert "PodResizeInProgress" not in conditions(here)


def test_a_container_restarts_after_the_other_calls() -> None:
    here = node(new_pod("a", container("main", cpu="1", memory="1Gi", restarts_for=("memory",))))
    event_reasons(here)
    show(here, resized(here.api["a"], "main", memory="2Gi"))
    assert isinstance(here.made[-1].call, RestartContainers)
    assert event_reasons(here) == ["Killing", "Pulled", "Created", "Started"]
    assert here.api["a"].status.containerStatuses[0].restartCount == 1


def test_a_newer_allocation_replaces_the_calls_of_an_older_one() -> None:
    here = node(new_pod("a", container("one", cpu="1"), container("two", cpu="1")))
    here.store(resized(resized(here.api["a"], "one", cpu="1500m"), "two", cpu="1500m"))
    here.observe("a")
    instruction = here.begin(uid("a"))
    while not (
        isinstance(instruction, Actuate) and isinstance(instruction.call, Call) and instruction.call.container
    ):
        assert instruction is not None
        instruction = here.handle(here.perform(instruction))
    result = here.perform(instruction)
    here.store(resized(here.api["a"], "two", cpu="2"))
    here.observe("a")
    instruction = here.handle(result)
    assert isinstance(instruction, instructions.SaveCheckpoint), "the new allocation first"
    while instruction is not None:
        instruction = here.handle(here.perform(instruction))
    updates = [one.call for one in here.made if isinstance(one.call, Call) and one.call.container]
    assert [(one.container, one.allocated.requests.get("cpu")) for one in updates if one.allocated] == [
        ("one", "1500m"), ("two", "2"),
    ]  # fmt: skip


def test_an_actuation_waits_its_time_and_a_new_allocation_waits_again() -> None:
    here = node(new_pod("a"), actuation=5.0)
    show(here, resized(here.api["a"], "main", cpu="2"))
    assert conditions(here)["PodResizeInProgress"] == "True"
    here.pass_time(4.0)
    show(here, resized(here.api["a"], "main", cpu="3"))
    here.pass_time(4.0)
    here.work()
    assert here.made == []
    here.pass_time(1.0)
    here.work()
    assert here.runtime.sandboxes[uid("a")].in_force().of("main").requests.get("cpu") == "3"


def test_memory_limits_below_usage_are_not_actuated() -> None:
    limits = {"memory": "2Gi"}
    here = node(new_pod("a", container("main", memory="2Gi", limits=limits)))
    here.node.settings = replace(here.settings, memory_usage=lambda pod, sandbox, name: 1536 << 20)
    show(here, resized(here.api["a"], "main", memory="1Gi"))
    assert here.made == []
    error = next(row for row in here.api["a"].status.conditions if row.type == "PodResizeInProgress")
    assert error.message.startswith("cannot decrease memory limits: ")


def test_without_the_gate_nothing_is_saved_for_a_pod() -> None:
    here = node(new_pod("a"), features=Features(resize=False))
    assert "SaveCheckpoint" not in since(here)
    show(here, deleted(here.api["a"]))
    assert since(here)[-1] == "SaveCheckpoint", "its containers are gone from the disk, too"


def test_readiness_is_kept_by_containers_of_a_restarted_kubelet() -> None:
    here = node(new_pod("a"))
    here.start_process()
    here.list_pods()
    since(here)
    here.work()
    assert since(here) == []
    assert record(here).sandbox == runtime.become_ready(here.runtime.sandboxes[uid("a")])


# Resize conditions


def patches(here: Node) -> int:
    return since(here).count("PatchStatus")


def test_a_retry_that_changes_nothing_writes_nothing() -> None:
    """kubelet 1.36, isPodStatusByKubeletEqual: when a condition was evaluated is no change of it."""
    here = node(new_pod("a", container("main", cpu="1")))
    show(here, resized(here.api["a"], "main", cpu="100"))
    pending = objects.get_condition(here.api["a"].status.conditions, "PodResizePending")
    assert pending is not None
    assert pending.reason == "Deferred"
    assert patches(here) > 0
    here.pass_time(180.0)
    here.retry()
    assert patches(here) == 0
    here.node_object.status.allocatable["cpu"].string = "50"
    here.pass_time(180.0)
    here.retry()
    assert patches(here) == 1, "another message"
    again = objects.get_condition(here.api["a"].status.conditions, "PodResizePending")
    assert again is not None
    assert "capacity: 50000" in again.message
    assert again.lastProbeTime.seconds == pending.lastProbeTime.seconds + 360
    assert again.lastTransitionTime == pending.lastTransitionTime


def test_an_actuation_that_fails_again_in_the_same_way_writes_nothing() -> None:
    pod = new_pod("a", container("main", limits={"memory": "2Gi"}, memory="2Gi"))
    pod.metadata.annotations["nominee.dev/memory-usage"] = "1Gi"
    here = node(pod)
    here.node.settings = replace(here.node.settings, memory_usage=memory_in_use)
    show(here, resized(here.api["a"], "main", memory="512Mi"))
    progress = objects.get_condition(here.api["a"].status.conditions, "PodResizeInProgress")
    assert progress is not None
    assert progress.reason == "Error"
    assert patches(here) > 0
    for _ in range(3):
        here.pass_time(10.0)
        here.work()
    assert patches(here) == 0
