"""The containers of a deleted pod have the time that they need to stop."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.pod_rules.grace_periods import GracePeriods
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import BEGIN, History, node, result_of, violations_of
from tests.lab.invariants.histories import pod as any_pod

NAMES = {
    "delay": "nominee.dev/stop-delay",
    "run": "nominee.dev/run-duration",
    "rules": "nominee.dev/rules",
    "startup": "nominee.dev/startup-probe",
}
DELETED = BEGIN + 3
"""The third write of a history, after the node and the pod."""


def pod(times: str = "", grace: int | None = None, *, asked: float = DELETED, uid: str = "") -> core.Pod:
    """Return a pod whose container runs, with times as `delay=10s run=1h`.

    With a grace period it terminates since `asked`.
    """
    found = any_pod("p", uid=uid, node="n1", allocated="1")
    for each in times.split():
        name, _, text = each.partition("=")
        found.metadata.annotations[NAMES[name]] = text.replace("_", " ")
    found.metadata.creationTimestamp.seconds = int(BEGIN)
    if grace is not None:
        found.metadata.deletionTimestamp.seconds = int(asked) + grace
        found.metadata.deletionGracePeriodSeconds = grace
    return found


def ended(
    times: str, grace: int, seconds: float, *, asked: float = DELETED, phase: str = "Failed"
) -> core.Pod:
    """Return the pod whose container has ended so many seconds after its first deletion."""
    found = pod(times, grace, asked=asked)
    found.status.phase = phase
    (status,) = found.status.containerStatuses
    status.ClearField("state")
    status.state.terminated.finishedAt.seconds = int(DELETED + seconds)
    return found


def lost(found: core.Pod) -> core.Pod:
    """Return the pod with a container of whose end the kubelet knows nothing."""
    terminated = found.status.containerStatuses[0].state.terminated
    terminated.ClearField("finishedAt")
    terminated.reason = "ContainerStatusUnknown"
    return found


def with_hook(found: core.Pod, seconds: int) -> core.Pod:
    """Return the pod with a preStop hook that sleeps."""
    found.spec.containers[0].lifecycle.preStop.sleep.seconds = seconds
    return found


def server(*taints: str) -> core.Node:
    """Return the node, which is ready."""
    found = node("n1")
    found.status.conditions.add(type="Ready", status="True")
    for key in taints:
        found.spec.taints.add(key=key, effect="NoExecute")
    return found


def begun() -> History:
    """Return the history that begins with the node."""
    return History().put(server())


def deleted(times: str, *graces: int) -> History:
    """Return the history of a pod that is deleted with these grace periods, one a second."""
    deletions = (pod(times, grace, asked=DELETED) for grace in graces)
    return begun().put(pod(times), *deletions)


def history_of(times: str, grace: int, seconds: int) -> History:
    """Return the history of a pod that is deleted, and whose container ends so many seconds later."""
    return deleted(times, grace).wait(seconds - 1).put(ended(times, grace, seconds))


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(history_of("delay=10s", 30, 10), id="by itself"),
        pytest.param(history_of("delay=10m", 30, 30), id="at the end of the grace period"),
        pytest.param(history_of("delay=10s", 0, 1), id="by force"),
        pytest.param(history_of("", 30, 1), id="needs no time"),
        pytest.param(history_of("delay=soon", 30, 1), id="cannot be read"),
        pytest.param(history_of("delay=10s rules=attempt=0_stop-delay=0s", 30, 1), id="a rule"),
        pytest.param(history_of("delay=10s startup=never", 30, 1), id="a probe that kills"),
        pytest.param(history_of("delay=10s run=2s", 30, 1), id="a short run"),
        pytest.param(
            deleted("delay=20s", 30, 2).wait(1).put(ended("delay=20s", 2, 3)),
            id="a shorter period",
        ),
        pytest.param(
            deleted("delay=3s", 30, 20).wait(1).put(ended("delay=3s", 20, 3)),
            id="a shorter period that changes nothing",
        ),
        pytest.param(
            begun().put(pod("delay=9s"), ended("delay=9s", 0, 0), ended("delay=9s", 9, 0)), id="not deleted"
        ),
        pytest.param(
            deleted("delay=9s", 9).put(ended("delay=9s", 9, -60)), id="ended before, and reported late"
        ),
        pytest.param(deleted("delay=9s", 9).put(ended("delay=9s", 9, 9)), id="a history that was read late"),
        pytest.param(
            deleted("delay=9s", 9).wait(8).put(ended("delay=9s", 9, 1)), id="a kubelet whose clock is behind"
        ),
        pytest.param(
            begun().put(pod("delay=9s")).wait(9).state(pod("delay=9s", 9)).put(ended("delay=9s", 9, 1)),
            id="deleted in a part that is missing",
        ),
        pytest.param(
            deleted("delay=9s", 9).put(pod("delay=1s", 9), ended("delay=1s", 9, 1)), id="another delay"
        ),
        pytest.param(
            deleted("delay=1s", 9).put(pod("delay=9s", 9), ended("delay=9s", 9, 1)), id="a longer delay"
        ),
        pytest.param(
            deleted("delay=9s", 9).delete(pod()).put(pod(uid="2"), ended("", 9, 1)), id="another pod"
        ),
    ],
)
def test_ends_in_time(history: History) -> None:
    assert violations_of(GracePeriods, history) == []


@pytest.mark.parametrize(
    ("history", "seconds"),
    [
        pytest.param(history_of("delay=10s", 30, 4), 6, id="before it stops"),
        pytest.param(history_of("delay=60s", 9, 4), 5, id="before the grace period"),
        pytest.param(history_of("delay=10s run=1h", 30, 4), 6, id="a long run"),
        pytest.param(
            begun().put(with_hook(pod(), 20), with_hook(pod("", 30), 20), with_hook(ended("", 30, 1), 20)),
            19,
            id="a hook that sleeps",
        ),
        pytest.param(
            deleted("delay=20s", 30, 9).put(ended("delay=20s", 9, 2)),
            7,
            id="a shorter period",
        ),
        pytest.param(
            deleted("delay=9s", 9).put(lost(ended("delay=9s", 9, 1))), 8, id="the container is lost"
        ),
        pytest.param(
            deleted("delay=9s", 9).put(ended("delay=9s", 9, 1, phase="Running"), ended("delay=9s", 9, 1)),
            8,
            id="the pod has not ended yet",
        ),
    ],
)
def test_ends_too_early(history: History, seconds: int) -> None:
    (violation,) = violations_of(GracePeriods, history)
    assert violation.message == f"container 'c' of the deleted pod has ended {seconds} s too early"
    assert violation.objects == ("Pod default/p",)


def test_a_pod_with_a_reason_ends_for_it() -> None:
    last = ended("delay=9s", 9, 1)
    last.status.reason = "Evicted"
    result = result_of(GracePeriods, deleted("delay=9s", 9).put(last), ComponentSettings())
    assert result.violations == ()
    assert result.exceptions == {"for-another-reason": 1}


@pytest.mark.parametrize(
    ("nodes", "is_lost"),
    [
        pytest.param([], False, id="in service"),
        pytest.param([server("x")], False, id="another taint"),
        pytest.param([server("node.kubernetes.io/out-of-service")], True, id="out of service"),
        pytest.param([server("node.kubernetes.io/out-of-service"), server()], True, id="in service again"),
        pytest.param([node("n1")], True, id="not ready"),
    ],
)
def test_the_pod_garbage_collector_ends_pods_of_lost_nodes(nodes: list[core.Node], is_lost: bool) -> None:
    last = pod("delay=9s", 9)
    last.status.phase = "Failed"
    history = begun().put(*nodes, pod("delay=9s"), pod("delay=9s", 9), last)
    result = result_of(GracePeriods, history, ComponentSettings())
    assert (len(result.violations), result.exceptions) == ((0, {"lost-node": 1}) if is_lost else (1, {}))
