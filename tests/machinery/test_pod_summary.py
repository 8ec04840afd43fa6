"""kubectl's READY, STATUS and RESTARTS of pods; recorded rows of real pods: tests/apiserver/rest."""

from __future__ import annotations

from nominee.machinery.api.pb import core
from nominee.machinery.printing.pods import pod_status, pod_summary

NOW = 1_700_000_000.0


def pod(*, phase: str = "Running", reason: str = "") -> core.Pod:
    made = core.Pod()
    made.spec.containers.add(name="a")
    made.spec.containers.add(name="b")
    made.status.phase, made.status.reason = phase, reason
    return made


def test_status_names_what_says_more_than_the_phase() -> None:
    assert pod_status(pod()) == "Running"
    assert pod_status(pod(phase="Failed", reason="OutOfcpu")) == "OutOfcpu"
    waiting = pod(phase="Pending")
    waiting.status.containerStatuses.add(name="a").state.waiting.reason = "ContainerCreating"
    assert pod_status(waiting) == "ContainerCreating"
    exited = pod()
    exited.status.containerStatuses.add(name="a").state.terminated.exitCode = 3
    assert pod_status(exited) == "ExitCode:3"
    gated = pod(phase="Pending")
    gated.status.conditions.add(type="PodScheduled", status="False", reason="SchedulingGated")
    assert pod_status(gated) == "SchedulingGated"
    gated.metadata.deletionTimestamp.seconds = 1
    assert pod_status(gated) == "Terminating"


def test_a_sidecar_counts_and_an_unfinished_init_container_names_the_status() -> None:
    starting = pod(phase="Pending")
    starting.spec.initContainers.add(name="proxy", restartPolicy="Always")
    starting.spec.initContainers.add(name="migrate")
    starting.status.initContainerStatuses.add(
        name="proxy", started=True, ready=True
    ).state.running.SetInParent()
    starting.status.initContainerStatuses.add(name="migrate").state.running.SetInParent()
    summary = pod_summary(starting)
    assert (summary.ready, summary.total, summary.status) == (1, 3, "Init:1/2")


def test_restarts_say_when_the_last_one_was() -> None:
    restarted = pod()
    row = restarted.status.containerStatuses.add(name="a", restartCount=3)
    row.state.running.SetInParent()
    row.lastState.terminated.finishedAt.seconds = int(NOW) - 300
    assert pod_summary(restarted).restarts.text(NOW) == "3 (5m ago)"
