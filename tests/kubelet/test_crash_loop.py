"""Containers that crash: their back-off, and their status meanwhile."""

from __future__ import annotations

import pytest

from nominee.kubelet.features import status_features
from nominee.kubelet.resources.pod_resources import desired_resources
from nominee.kubelet.runtime import crash_loop
from nominee.kubelet.runtime import sandbox as runtime
from nominee.kubelet.runtime.adoption import adopt
from nominee.kubelet.runtime.sandbox import PodSandbox
from nominee.kubelet.status.pod_status import View, build
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version

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


def status(pod: core.Pod, sandbox: PodSandbox, *, terminal: bool = False) -> core.PodStatus:
    return build(View(pod=pod, host_ip="h", now=NOW, sandbox=sandbox, terminal=terminal), KNOWN)


@pytest.mark.parametrize(
    ("crashes", "wanted"),
    [(1, 0), (2, 10), (3, 20), (4, 40), (5, 80), (6, 160), (7, 300), (8, 300), (5000, 300)],
)
def test_the_first_restart_is_at_once_then_the_back_off_doubles(crashes: int, wanted: float) -> None:
    assert crash_loop.seconds(crashes) == wanted


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
    seen = status(pod, sandbox)
    (row,) = seen.containerStatuses
    assert seen.phase == "Running"
    assert (row.restartCount, row.ready, row.started) == (1, False, False)
    assert row.state.waiting.reason == "CrashLoopBackOff"
    assert row.state.waiting.message == "back-off 10s restarting failed container=main pod=p_ns(uid)"
    assert (row.lastState.terminated.exitCode, row.lastState.terminated.reason) == (4, "Error")
    pod.status.CopyFrom(seen)
    found = adopt(pod)
    assert found is not None
    assert [container.crashes for container in found.crashed] == [2]


def test_a_container_that_ran_for_long_begins_again() -> None:
    pod = a_pod()
    sandbox = runtime.crash(started(pod), now=NOW + 1, exit_code=0)
    sandbox = runtime.rerun(sandbox, ("main",), desired_resources(pod), now=NOW + 1)
    sandbox = runtime.crash(sandbox, now=NOW + 2 + crash_loop.CALM_SECONDS, exit_code=0)
    assert [container.crashes for container in sandbox.crashed] == [1]


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_a_pod_deleted_during_its_back_off_ends_as_its_last_run_did(code: int, phase: str) -> None:
    pod = a_pod()
    sandbox = runtime.stop(runtime.crash(started(pod), now=NOW + 1, exit_code=code), now=NOW + 5)
    seen = status(pod, sandbox, terminal=True)
    assert seen.phase == phase
    (row,) = seen.containerStatuses
    assert (row.state.terminated.exitCode, row.state.terminated.finishedAt.seconds) == (code, int(NOW) + 1)
