"""SIGKILL between any two instructions of the kubelet: no allocation is lost, nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nominee.kubelet.instructions import Actuate, KillContainers, StartContainers, StopContainers
from nominee.kubelet.resize.actuation import Call, RestartContainers
from nominee.kubelet.runtime.adoption import adopt
from nominee.machinery.api.pb import core
from nominee.machinery.wire.codec import to_json
from tests.kubelet.executor import (
    Executor,
    KilledError,
    container,
    deleted,
    new_pod,
    node_object,
    resized,
    uid,
)

CPU_MAX = 4000
_COMPARED = ("name", "containerID", "restartCount", "ready", "resources", "allocatedResources")


def steps(here: Executor) -> Iterator[None]:
    """What the clients do, one after the other; each waits until the kubelet has nothing more to do."""
    here.store(
        new_pod(
            "a",
            container("plain", cpu="1", memory="1Gi", limits={"cpu": "1", "memory": "1Gi"}),
            container("restarted", cpu="500m", memory="1Gi", restarts_for=("memory",)),
        )
    )
    here.store(new_pod("b", container("main", cpu="2")))
    here.observe("a", "b")
    yield
    here.store(resized(here.api["a"], "plain", cpu="500m", memory="2Gi"))
    here.observe("a")
    yield
    here.store(resized(here.api["a"], "restarted", memory="2Gi"))
    here.observe("a")
    yield
    here.store(resized(here.api["a"], "plain", cpu="2"))  # deferred: b has the room
    here.observe("a")
    yield
    here.store(resized(here.api["b"], "main", cpu="1"))
    here.observe("b")
    yield
    here.store(deleted(here.api["b"]))
    here.observe("b")
    yield
    here.observe("b")
    yield


def pod_level_steps(here: Executor) -> Iterator[None]:
    """Resizes of pod-level resources, of a sidecar, and of both."""
    pod = new_pod(
        "a",
        container("plain", cpu="500m"),
        container("restarted", restarts_for=("memory",), cpu="500m"),
    )
    sidecar = container("sidecar", limits={"cpu": "500m"}, restarts_for=("cpu",), cpu="500m")
    sidecar.restartPolicy = "Always"
    pod.spec.initContainers.append(sidecar)
    set_pod_level(pod, cpu="2", memory="2Gi")
    here.store(pod)
    here.observe("a")
    yield
    here.store(set_pod_level(resized(here.api["a"], "plain", cpu="1"), cpu="2500m", memory="4Gi"))
    here.observe("a")
    yield
    here.store(set_pod_level(resized(here.api["a"], "sidecar", cpu="1"), cpu="3", memory="4Gi"))
    here.observe("a")
    yield
    here.store(set_pod_level(resized(here.api["a"], "plain", cpu="500m"), cpu="1500m", memory="4Gi"))
    here.observe("a")
    yield


def set_pod_level(pod: core.Pod, **quantities: str) -> core.Pod:
    for name, text in quantities.items():
        pod.spec.resources.requests[name].string = text
        pod.spec.resources.limits[name].string = text
    return pod


def settle(here: Executor) -> None:
    """Let the kubelet work, killed or not, until it has nothing more to do."""
    for _ in range(3):
        try:
            here.work()
            if here.node.queue:
                here.pass_time(180.0)
                here.retry()
        except KilledError:
            here.start_process()
            here.list_pods()


class Checked(Executor):
    """Never gives the containers of a node more than the node has."""

    def save(self) -> None:
        super().save()
        total = sum(
            one.resources.requests.number("cpu")
            for sandbox in self.runtime.sandboxes.values()
            for one in sandbox.containers
            if one.state == "running"
        )
        assert total <= CPU_MAX


def play(steps: Steps, kill_at: int | None) -> Executor:
    here = Checked(node_object(cpu="4", memory="16Gi", pods="10"), kill_at=kill_at)
    here.list_pods()
    for _ in steps(here):
        settle(here)
    return here


def done(here: Executor) -> dict[str, list[Any]]:
    """What must happen exactly once."""
    actuated = [one.call for one in here.performed if isinstance(one, Actuate)]
    return {
        "updates": [call for call in actuated if isinstance(call, Call) and call.call == "container"],
        "restarts": [call.names for call in actuated if isinstance(call, RestartContainers)],
        "starts": [one.uid for one in here.performed if isinstance(one, StartContainers)],
        "stops": [one.uid for one in here.performed if isinstance(one, StopContainers)],
    }


def left(here: Executor) -> dict[str, Any]:
    """What is to be seen at the end, without times: a restarted kubelet tries pending resizes later."""
    status = to_json(here.api["a"].status)
    rows = [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]
    return {
        "pods": sorted(here.api),
        "allocations": here.node.allocations,
        "containers": [{key: row[key] for key in _COMPARED} for row in rows],
        "pod": [status.get("resources"), status.get("allocatedResources")],
        # As recorded: PodResizePending that was written before the kill stays until the next resize.
        "conditions": {
            row["type"]: row["status"] for row in status["conditions"] if row["type"] != "PodResizePending"
        },
    }


Steps = Callable[[Executor], Iterator[None]]
SCENARIOS: dict[str, Steps] = {"containers": steps, "pod level": pod_level_steps}
WHOLE = {name: play(each, None) for name, each in SCENARIOS.items()}
KILLS = [(name, number) for name, whole in WHOLE.items() for number in range(len(whole.performed))]


def test_the_sequence_has_what_is_to_be_killed() -> None:
    whole = WHOLE["containers"]
    assert list(whole.api) == ["a"]
    assert len(done(whole)["updates"]) == 4
    assert done(whole)["restarts"] == [("restarted",)]
    assert whole.node.allocations[uid("a")].of("plain").requests.get("cpu") == "2"
    assert "PodResizeInProgress" not in left(whole)["conditions"]


def test_the_pod_level_sequence_has_what_is_to_be_killed() -> None:
    """A limit of the pod restarts and updates the containers that have none of their own."""
    whole = WHOLE["pod level"]
    assert done(whole)["restarts"] == [("restarted",), ("sidecar",)]
    updates = [(call.container, call.resource) for call in done(whole)["updates"]]
    assert updates == [
        ("sidecar", "memory"), ("plain", "memory"), ("plain", "cpu"),
        ("plain", "cpu"), ("restarted", "cpu"),
        ("restarted", "cpu"), ("plain", "cpu"),
    ]  # fmt: skip
    assert "PodResizeInProgress" not in left(whole)["conditions"]


@pytest.mark.parametrize(("scenario", "kill_at"), KILLS)
def test_a_kill_before_an_instruction_loses_and_repeats_nothing(scenario: str, kill_at: int) -> None:
    here = play(SCENARIOS[scenario], kill_at)
    assert here.kill_at is None, "it was killed"
    assert done(here) == done(WHOLE[scenario])
    assert left(here) == left(WHOLE[scenario])


def running(pod: core.Pod) -> Executor:
    """Return a node on which a pod has started."""
    here = Executor(node_object(cpu="4", memory="16Gi", pods="10"))
    here.list_pods()
    here.store(pod)
    here.observe("a")
    settle(here)
    return here


def restart(here: Executor) -> core.PodStatus:
    """Restart the kubelet; return the status of the pod when it has nothing more to do."""
    here.start_process()
    here.list_pods()
    settle(here)
    return here.api["a"].status


def with_sidecar(policy: str) -> core.Pod:
    pod = new_pod("a", container("main", cpu="1"), restartPolicy=policy)
    pod.spec.initContainers.add(name="side", restartPolicy="Always")
    return pod


@pytest.mark.parametrize(
    ("policy", "exit_code", "phase", "restarts"),
    [("Always", 0, "Running", 1), ("OnFailure", 143, "Running", 1), ("OnFailure", 0, "Succeeded", 0),
     ("Never", 143, "Failed", 0)],
)  # fmt: skip
def test_containers_that_a_former_kubelet_stopped_for_a_forgotten_reason(
    policy: str, exit_code: int, phase: str, restarts: int
) -> None:
    """It preempted the pod, and died before it wrote so: the restartPolicy decides."""
    here = running(with_sidecar(policy))
    here.call(StopContainers(uid("a"), exit_code))
    status = restart(here)
    assert status.phase == phase
    rows = [*status.initContainerStatuses, *status.containerStatuses]
    assert [row.restartCount for row in rows] == [restarts, restarts]
    assert [row.state.HasField("running") for row in rows] == [phase == "Running"] * 2


@pytest.mark.parametrize(
    ("policy", "codes", "restarts"),
    [("OnFailure", {"done": 0}, (0, 0)), ("OnFailure", {"done": 1}, (1, 0)), ("Always", {"done": 0}, (1, 0)),
     ("OnFailure", {"done": 0, "work": 1}, (0, 1)), ("Never", {"done": 1}, (0, 0))],
)  # fmt: skip
def test_each_container_that_has_ended_runs_again_by_its_own_exit_code(
    policy: str, codes: dict[str, int], restarts: tuple[int, int]
) -> None:
    pod = new_pod("a", container("done", cpu="1"), container("work", cpu="1"), restartPolicy=policy)
    here = running(pod)
    for name, code in codes.items():
        here.call(KillContainers(uid("a"), (name,), code, again=False))
    status = restart(here)
    assert tuple(row.restartCount for row in status.containerStatuses) == restarts
    assert status.phase == "Running"


@pytest.mark.parametrize(("policy", "code", "phase"), [("OnFailure", 0, "Succeeded"), ("Never", 1, "Failed")])
def test_a_sidecar_ends_with_the_containers_that_have_ended(policy: str, code: int, phase: str) -> None:
    here = running(with_sidecar(policy))
    here.call(KillContainers(uid("a"), ("main",), code, again=False))
    status = restart(here)
    assert status.phase == phase
    assert status.initContainerStatuses[0].state.HasField("terminated")


def test_a_pod_of_which_only_init_containers_ran_begins_again_without_a_checkpoint() -> None:
    here = Executor(node_object(cpu="4", memory="16Gi", pods="10"))
    pod = new_pod("a", container("main", cpu="1"))
    pod.spec.initContainers.add(name="init")
    pod.spec.nodeName = "node"
    row = pod.status.initContainerStatuses.add(name="init", containerID="containerd://1")
    row.state.terminated.containerID = "containerd://1"
    main = pod.status.containerStatuses.add(name="main")
    main.state.waiting.reason = "ImagePullBackOff"
    assert adopt(pod) is None
    here.store(pod)
    here.list_pods()
    settle(here)
    assert here.api["a"].status.phase == "Running"
    assert here.api["a"].status.containerStatuses[0].state.HasField("running")
