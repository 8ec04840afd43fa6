"""Resizes of sidecars and init containers, and containers that restart. Source: KEP-1287."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nominee.kubelet.features import Features
from nominee.kubelet.instructions import Actuate, Evaluated, RecordEvent
from nominee.kubelet.resize.actuation import Call, RestartContainers
from nominee.machinery.api.pb import core
from tests.kubelet.executor import Executor, container, new_pod, node_object, resized, uid


def init_container(
    named: str, *, sidecar: bool, restarts_for: tuple[str, ...] = (), **requests: str
) -> core.Container:
    made = container(named, limits={}, restarts_for=restarts_for, **requests)
    if sidecar:
        made.restartPolicy = "Always"
    return made


def kubelet(*init: core.Container, features: Features | None = None) -> Executor:
    """Return a kubelet that runs a: these init containers, and main."""
    here = Executor(node_object(cpu="4", memory="8Gi", pods="10"), features=features or Features())
    here.list_pods()
    pod = new_pod("a", container("main", cpu="1", memory="1Gi"))
    pod.spec.initContainers.extend(init)
    show(here, pod)
    return here


def show(here: Executor, pod: core.Pod) -> None:
    here.store(pod)
    here.observe("a")
    here.work()


def updated(here: Executor) -> list[str]:
    """Return the containers that were updated in place, in order."""
    calls = [one.call for one in here.performed if isinstance(one, Actuate)]
    return [call.container for call in calls if isinstance(call, Call) and call.container]


def restarted(here: Executor) -> list[tuple[str, ...]]:
    calls = [one.call for one in here.performed if isinstance(one, Actuate)]
    return [call.names for call in calls if isinstance(call, RestartContainers)]


def reasons(here: Executor) -> list[str]:
    return [one.reason for one in here.noted if isinstance(one, RecordEvent)]


def in_force(here: Executor, named: str, resource: str) -> str | None:
    return here.runtime.sandboxes[uid("a")].in_force().of(named).requests.get(resource)


def test_a_sidecar_is_resized_in_place() -> None:
    """ "Sidecars": as any other container."""
    here = kubelet(init_container("sidecar", sidecar=True, cpu="500m"))
    show(here, resized(here.api["a"], "sidecar", cpu="1"))
    assert updated(here) == ["sidecar"]
    assert in_force(here, "sidecar", "cpu") == "1"
    row = here.api["a"].status.initContainerStatuses[0]
    assert (row.allocatedResources["cpu"].string, row.resources.requests["cpu"].string) == ("1", "1")
    assert (row.restartCount, reasons(here)) == (0, ["ResizeStarted", "ResizeCompleted"])


def test_a_sidecar_counts_for_the_room_of_its_pod() -> None:
    here = kubelet(init_container("sidecar", sidecar=True, cpu="1"))
    show(here, resized(here.api["a"], "sidecar", cpu="3500m"))
    evaluated = [one for one in here.noted if isinstance(one, Evaluated)][-1]
    assert evaluated.message == (
        "Node didn't have enough resource: cpu, requested: 4500, used: 0, capacity: 4000"
    )


def test_a_sidecar_restarts_alone_where_its_policy_says_so() -> None:
    """ "Container Resize Policy"."""
    here = kubelet(init_container("sidecar", sidecar=True, restarts_for=("cpu",), cpu="500m"))
    show(here, resized(here.api["a"], "sidecar", cpu="1"))
    assert (updated(here), restarted(here)) == ([], [("sidecar",)])
    rows = here.api["a"].status
    assert [row.restartCount for row in (*rows.initContainerStatuses, *rows.containerStatuses)] == [1, 0]
    assert in_force(here, "sidecar", "cpu") == "1"


@pytest.mark.parametrize(("resource", "restarts"), [("memory", 1), ("cpu", 0)])
def test_a_container_restarts_only_for_the_resource_of_its_policy(resource: str, restarts: int) -> None:
    """ "Container Resize Policy"."""
    here = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    here.list_pods()
    show(here, new_pod("a", container("main", restarts_for=("memory",), cpu="1", memory="1Gi")))
    show(here, resized(here.api["a"], "main", **{resource: "2" if resource == "cpu" else "2Gi"}))
    assert here.api["a"].status.containerStatuses[0].restartCount == restarts
    assert reasons(here)[-1] == "ResizeCompleted"


def test_an_init_container_that_has_ended_is_allocated_and_needs_no_call() -> None:
    """InPlacePodVerticalScalingInitContainers: it takes the values when it runs again."""
    here = kubelet(init_container("setup", sidecar=False, cpu="2"))
    show(here, resized(here.api["a"], "setup", cpu="3"))
    assert here.node.allocations[uid("a")].of("setup").requests.get("cpu") == "3"
    assert updated(here) == []
    assert reasons(here) == ["ResizeStarted", "ResizeCompleted"]
    assert here.api["a"].status.initContainerStatuses[0].allocatedResources["cpu"].string == "3"


def test_without_the_gate_an_init_container_is_not_resized() -> None:
    features = replace(Features(), resize_init_containers=False)
    here = kubelet(init_container("setup", sidecar=False, cpu="2"), features=features)
    show(here, resized(here.api["a"], "setup", cpu="3"))
    assert here.node.allocations[uid("a")].get("setup") is None
    assert reasons(here) == []


def crash_looping(*, restarts_for: tuple[str, ...] = ()) -> Executor:
    """Return a kubelet whose pod a has crashed twice and waits for 10 s."""
    here = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    here.list_pods()
    pod = new_pod("a", container("main", cpu="1", memory="1Gi", restarts_for=restarts_for))
    pod.metadata.annotations.update({"nominee.dev/run-duration": "5s", "nominee.dev/exit-code": "1"})
    show(here, pod)
    for _ in range(2):
        here.pass_time(5.0)
        here.work()
    assert main(here).state.waiting.reason == "CrashLoopBackOff"
    return here


def main(here: Executor) -> core.ContainerStatus:
    return here.api["a"].status.containerStatuses[0]


def test_a_container_in_its_back_off_shows_its_resources() -> None:
    """The scheduler counts a pod by what its container statuses say, also while it crashes."""
    row = main(crash_looping())
    assert row.allocatedResources["cpu"].string == "1"
    assert {name: one.string for name, one in row.resources.requests.items()} == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize("restarts_for", [(), ("cpu",)])
def test_a_resize_ends_the_back_off(restarts_for: tuple[str, ...]) -> None:
    """kubelet 1.36, GetBackoffKey: the container's resources are part of the back-off's key."""
    here = crash_looping(restarts_for=restarts_for)
    show(here, resized(here.api["a"], "main", cpu="2"))
    row = main(here)
    assert (row.state.HasField("running"), row.restartCount) == (True, 2)
    assert row.resources.requests["cpu"].string == "2"
    assert reasons(here)[-2:] == ["ResizeStarted", "ResizeCompleted"]
    here.pass_time(5.0)
    here.work()
    assert "back-off 10s" in main(here).state.waiting.message, "the back-off begins again"


def test_a_resize_that_does_not_fit_leaves_the_back_off() -> None:
    here = crash_looping()
    show(here, resized(here.api["a"], "main", cpu="8"))
    assert reasons(here)[-1] == "ResizeDeferred"
    assert (main(here).state.waiting.reason, main(here).restartCount) == ("CrashLoopBackOff", 1)
    here.pass_time(9.0)
    here.work()
    assert main(here).state.waiting.reason == "CrashLoopBackOff"
    here.pass_time(1.0)
    here.work()
    assert main(here).state.HasField("running")


def test_a_resize_of_one_container_leaves_the_back_off_of_another() -> None:
    here = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    here.list_pods()
    pod = new_pod("a", container("main", cpu="1"), container("other", cpu="1"))
    pod.metadata.annotations.update({"nominee.dev/run-duration": "5s", "nominee.dev/exit-code": "1"})
    show(here, pod)
    for _ in range(2):
        here.pass_time(5.0)
        here.work()
    here.pass_time(2.0)
    show(here, resized(here.api["a"], "main", cpu="2"))
    states = [row.restartCount for row in here.api["a"].status.containerStatuses]
    assert states == [2, 1]
    here.pass_time(8.0)
    here.work()
    assert here.api["a"].status.containerStatuses[1].restartCount == 2


@pytest.mark.parametrize("restarts_for", [(), ("cpu",)])
def test_a_crash_after_a_resize_is_the_first_one(restarts_for: tuple[str, ...]) -> None:
    here = crash_looping(restarts_for=restarts_for)
    here.pass_time(10.0)
    here.work()
    restarts = main(here).restartCount
    show(here, resized(here.api["a"], "main", cpu="2"))
    here.pass_time(5.0)
    here.work()
    row = main(here)
    assert row.state.HasField("running"), "the first restart is at once"
    assert row.restartCount == restarts + 1 + bool(restarts_for)


def restarting(**annotations: str) -> Executor:
    """Return a kubelet whose pod a restarts for a resize of its cpu, and is ready."""
    here = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    here.list_pods()
    pod = new_pod("a", container("main", cpu="1", restarts_for=("cpu",)))
    for key, value in annotations.items():
        pod.metadata.annotations[f"nominee.dev/{key.replace('_', '-')}"] = value
    show(here, pod)
    return here


def test_a_container_that_restarts_for_a_resize_is_ready_again_after_its_delay() -> None:
    here = restarting(ready_delay="5s")
    here.pass_time(5.0)
    here.work()
    assert main(here).ready
    show(here, resized(here.api["a"], "main", cpu="2"))
    assert (main(here).restartCount, main(here).ready) == (1, False)
    assert reasons(here)[-1] == "ResizeCompleted", "a resize does not wait for readiness"
    here.pass_time(4.0)
    here.work()
    assert not main(here).ready
    here.pass_time(1.0)
    here.work()
    assert main(here).ready


def test_without_a_delay_it_stays_ready() -> None:
    here = restarting()
    show(here, resized(here.api["a"], "main", cpu="2"))
    assert (main(here).restartCount, main(here).ready) == (1, True)


def test_a_run_begins_again_with_the_restart_for_a_resize() -> None:
    here = restarting(run_duration="5s", exit_code="1")
    here.pass_time(4.0)
    show(here, resized(here.api["a"], "main", cpu="2"))
    assert main(here).restartCount == 1
    here.pass_time(4.0)
    here.work()
    assert main(here).restartCount == 1
    here.pass_time(1.0)
    here.work()
    assert main(here).restartCount == 2


def test_a_sidecar_that_was_restarted_becomes_ready_beside_containers_with_probes() -> None:
    here = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    here.list_pods()
    pod = new_pod("a", container("main", cpu="1", memory="1Gi"))
    pod.spec.containers[0].readinessProbe.periodSeconds = 1
    pod.spec.containers[0].readinessProbe.successThreshold = 1
    pod.spec.containers[0].readinessProbe.failureThreshold = 1
    pod.spec.initContainers.append(init_container("sidecar", sidecar=True, restarts_for=("cpu",), cpu="1"))
    pod.metadata.annotations.update({"nominee.dev/readiness-probe": "0s", "nominee.dev/ready-delay": "2s"})
    show(here, pod)
    for _ in range(2):
        here.pass_time(2.0)
        here.work()
    assert here.api["a"].status.initContainerStatuses[0].ready
    show(here, resized(here.api["a"], "sidecar", cpu="1500m"))
    assert not here.api["a"].status.initContainerStatuses[0].ready
    here.pass_time(2.0)
    here.work()
    assert here.api["a"].status.initContainerStatuses[0].ready
    assert [row.status for row in here.api["a"].status.conditions if row.type == "Ready"] == ["True"]
