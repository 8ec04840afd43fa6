"""Containers that crash: their back-off, and their status meanwhile."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nominee.kubelet.features import status_features
from nominee.kubelet.pods import crash_loop
from nominee.kubelet.pods.record import Waiting
from nominee.kubelet.resources.pod_resources import desired_resources
from nominee.kubelet.runtime import sandbox as runtime
from nominee.kubelet.runtime.adoption import adopt
from nominee.kubelet.runtime.sandbox import PodSandbox
from nominee.kubelet.status.pod_status import View, build
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from tests.kubelet.executor import Executor, container, new_pod, node_object

KNOWN = status_features(Version(1, 36), Gates("kubelet", Version(1, 36)))
NOW = 1_700_000_000.0


def a_pod() -> core.Pod:
    pod = core.Pod()
    pod.metadata.uid, pod.metadata.name, pod.metadata.namespace = "uid", "p", "ns"
    pod.spec.initContainers.add(name="side", restartPolicy="Always")
    pod.spec.containers.add(name="main")
    return pod


def started(pod: core.Pod, at: float = NOW) -> PodSandbox:
    return runtime.start(runtime.prepare(pod, now=at), desired_resources(pod), ip="10.0.0.2", now=at)


def status(
    pod: core.Pod, sandbox: PodSandbox, *, terminal: bool = False, waiting: Mapping[str, Waiting] = {}
) -> core.PodStatus:
    view = View(pod=pod, host_ip="h", now=NOW, sandbox=sandbox, terminal=terminal, waiting=waiting)
    return build(view, KNOWN)


@pytest.mark.parametrize(("seconds", "text"), [(10, "10s"), (80, "1m20s"), (300, "5m0s")])
def test_durations_read_as_go_prints_them(seconds: float, text: str) -> None:
    assert crash_loop.go_duration(seconds) == text


def test_a_crash_and_the_restart_after_it() -> None:
    pod = a_pod()
    resources = desired_resources(pod)
    sandbox = runtime.crash(started(pod), now=NOW + 1, exit_code=3)
    assert [container.name for container in sandbox.crashed] == ["main"], "the sidecar goes on"
    assert sandbox.running
    sandbox = runtime.rerun(sandbox, ("main",), resources, now=NOW + 1)
    sandbox = runtime.crash(sandbox, now=NOW + 2, exit_code=4)
    message = crash_loop.message(pod, "main", 10.0)
    seen = status(pod, sandbox, waiting={"main": Waiting("CrashLoopBackOff", message)})
    (row,) = seen.containerStatuses
    assert seen.phase == "Running"
    assert (row.restartCount, row.ready, row.started) == (1, False, False)
    assert row.state.waiting.reason == "CrashLoopBackOff"
    assert row.state.waiting.message == "back-off 10s restarting failed container=main pod=p_ns(uid)"
    assert (row.lastState.terminated.exitCode, row.lastState.terminated.reason) == (4, "Error")
    pod.status.CopyFrom(seen)
    found = adopt(pod)
    assert found is not None
    assert [container.back_off_since for container in found.crashed] == [NOW + 2]


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_a_pod_deleted_during_its_back_off_ends_as_its_last_run_did(code: int, phase: str) -> None:
    pod = a_pod()
    sandbox = runtime.stop(runtime.crash(started(pod), now=NOW + 1, exit_code=code), now=NOW + 5)
    seen = status(pod, sandbox, terminal=True)
    assert seen.phase == phase
    (row,) = seen.containerStatuses
    assert (row.state.terminated.exitCode, row.state.terminated.finishedAt.seconds) == (code, int(NOW) + 1)


# Back-offs


def node_with(*periods: int, **annotations: str) -> Executor:
    """Return a kubelet with pod a; the liveness probes of its containers have these periods."""
    here = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    here.list_pods()
    rows = [container(f"c{number}", cpu="100m") for number in range(len(periods))]
    for row, period in zip(rows, periods, strict=True):
        row.livenessProbe.periodSeconds = period
        row.livenessProbe.failureThreshold = row.livenessProbe.successThreshold = 1
        row.livenessProbe.initialDelaySeconds = period
    pod = new_pod("a", *rows)
    pod.metadata.annotations.update({f"nominee.dev/{key}": value for key, value in annotations.items()})
    here.store(pod)
    here.observe("a")
    here.work()
    return here


def starts(here: Executor, seconds: int, number: int = 0) -> list[int]:
    """Return when a container was started again, in seconds from now, within so many."""
    found: list[int] = []
    begin, restarts = here.now, here.api["a"].status.containerStatuses[number].restartCount
    for _ in range(seconds):
        here.pass_time(1.0)
        here.work()
        if here.api["a"].status.containerStatuses[number].restartCount > restarts:
            restarts += 1
            found.append(round(here.now - begin))
    return found


CRASHES = {"run-duration": "5s", "exit-code": "1"}


def test_the_first_restart_is_at_once_then_the_back_off_doubles() -> None:
    here = node_with(0, **CRASHES)
    assert starts(here, 1500) == [5, 20, 45, 90, 175, 340, 645, 950, 1255]
    assert "back-off 5m0s" in here.api["a"].status.containerStatuses[0].state.waiting.message


def test_a_container_that_is_killed_waits_once_its_runs_are_shorter_than_the_back_off() -> None:
    """SyncPod of kubelet 1.36 kills and starts it in one pass: doBackOff sees the end of the run before."""
    here = node_with(30, **{"liveness-probe": "never"})
    assert starts(here, 340) == [30, 60, 90, 120, 190, 300]


def test_each_container_has_a_back_off_of_its_own() -> None:
    together, alone = (node_with(*periods, **{"liveness-probe": "never"}) for periods in ((7, 17), (17,)))
    assert starts(together, 300, 1) == starts(alone, 300)
    events = [note.reason for each in together.noted for note in getattr(each, "events", ())]
    assert events.count("BackOff") > 3


def test_a_kubelet_that_starts_knows_no_back_off() -> None:
    here = node_with(0, **CRASHES)
    assert starts(here, 180)[-1] == 175
    here.start_process()
    here.list_pods()
    here.work()
    assert here.api["a"].status.containerStatuses[0].restartCount == 6
    assert starts(here, 20) == [15]


def test_a_container_that_was_not_started_for_ten_minutes_begins_again() -> None:
    here = node_with(0, **{"run-duration": "400s", "exit-code": "1"})
    assert starts(here, 2000) == [400, 810, 1230, 1670]
    long = node_with(0, **{"rules": "attempt=0-5 run-duration=5s", "run-duration": "450s", "exit-code": "1"})
    assert starts(long, 1700)[5:] == [340, 940, 1400]
