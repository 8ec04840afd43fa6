"""Ephemeral containers (kubectl debug): run beside a pod's own, and count for nothing."""

from __future__ import annotations

import json

import pytest

from nominee.kubelet.features import status_features
from nominee.kubelet.pod_sync import container_events
from nominee.kubelet.resources.pod_resources import desired_resources
from nominee.kubelet.runtime import sandbox as runtime
from nominee.kubelet.runtime.adoption import adopt
from nominee.kubelet.runtime.sandbox import PodSandbox
from nominee.kubelet.status.pod_status import View, build
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version

NOW = 1_700_000_000.0


@pytest.fixture
def pod() -> core.Pod:
    pod = core.Pod()
    pod.metadata.uid, pod.metadata.name = "uid", "a"
    pod.spec.containers.add(name="main", image="pause:3")
    added = pod.spec.ephemeralContainers.add(targetContainerName="main")
    added.ephemeralContainerCommon.name, added.ephemeralContainerCommon.image = "debugger", "tools:1"
    return pod


def running(pod: core.Pod) -> PodSandbox:
    sandbox = runtime.start(runtime.prepare(pod, now=NOW), desired_resources(pod), ip="10.0.0.2", now=NOW)
    return runtime.become_ready(runtime.debug(sandbox, ["debugger"], now=NOW + 5))


def status(pod: core.Pod, sandbox: PodSandbox, *, terminal: bool = False) -> core.PodStatus:
    view = View(pod=pod, host_ip="172.16.0.1", now=NOW, sandbox=sandbox, terminal=terminal)
    gates = Gates("kubelet", Version(1, 36))
    return build(view, status_features(gates.version, gates))


def test_it_runs_and_the_pod_is_as_ready_as_before(pod: core.Pod) -> None:
    seen = status(pod, running(pod))
    (row,) = seen.ephemeralContainerStatuses
    assert (row.name, row.image, row.ready, row.HasField("started")) == ("debugger", "tools:1", False, False)
    assert row.state.running.startedAt.seconds == NOW + 5
    assert row.containerID.startswith("nominee://")
    assert {one.type: one.status for one in seen.conditions}["Ready"] == "True"
    assert [one.name for one in seen.containerStatuses] == ["main"]


def test_it_ends_with_its_pod(pod: core.Pod) -> None:
    stopped = runtime.stop(running(pod), now=NOW + 9)
    seen = status(pod, stopped, terminal=True)
    assert seen.ephemeralContainerStatuses[0].state.terminated.finishedAt.seconds == NOW + 9
    assert seen.phase == "Succeeded"


def test_it_is_in_the_checkpoint(pod: core.Pod) -> None:
    sandbox = running(pod)
    assert runtime.from_json("uid", json.loads(json.dumps(runtime.to_json(sandbox)))) == sandbox
    pod.status.CopyFrom(status(pod, sandbox))
    adopted = adopt(pod)
    assert adopted is not None
    assert [(one.name, one.id, one.state) for one in adopted.ephemeral] == [
        (one.name, one.id, one.state) for one in sandbox.ephemeral
    ]


def test_its_events_name_the_field(pod: core.Pod) -> None:
    recorded = list(container_events.start_events(pod, ["debugger"], Version(1, 36)))
    assert [one.reason for one in recorded] == ["Pulled", "Created", "Started"]
    assert {one.regarding.fieldPath for one in recorded} == {"spec.ephemeralContainers{debugger}"}
    assert '"tools:1"' in recorded[0].note
