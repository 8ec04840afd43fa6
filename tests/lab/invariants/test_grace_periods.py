"""The containers of a deleted pod have the time that they need to stop."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.pod_rules.grace_periods import GracePeriods
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import BEGIN, History, result_of, violations_of
from tests.lab.invariants.histories import pod as any_pod

TIMES = {"delay": "nominee.dev/stop-delay", "run": "nominee.dev/run-duration", "rules": "nominee.dev/rules"}


def pod(times: str = "", grace: int | None = None, *, phase: str = "Running", uid: str = "") -> core.Pod:
    """Return a pod with times as `delay=10s run=1h`; its containers run, or it has ended.

    With a grace period it terminates.
    """
    found = any_pod("p", uid=uid, node="n1", allocated="1", phase=phase)
    for each in times.split():
        name, _, text = each.partition("=")
        found.metadata.annotations[TIMES[name]] = text.replace("_", " ")
    found.metadata.creationTimestamp.seconds = int(BEGIN)
    if grace is not None:
        found.metadata.deletionTimestamp.seconds = int(BEGIN) + grace
        found.metadata.deletionGracePeriodSeconds = grace
    return found


def with_hook(found: core.Pod, seconds: int) -> core.Pod:
    """Return the pod with a preStop hook that sleeps."""
    found.spec.containers[0].lifecycle.preStop.sleep.seconds = seconds
    return found


def deleted(times: str, *graces: int) -> History:
    """Return the history of a pod that is deleted with these grace periods, one a second."""
    return History().put(pod(times), *(pod(times, grace) for grace in graces))


def ended(times: str, grace: int, seconds: int) -> History:
    """Return the history of a pod that is deleted, and ends so many seconds later."""
    return deleted(times, grace).wait(seconds - 1).put(pod(times, grace, phase="Failed"))


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(ended("delay=10s", 30, 10), id="by itself"),
        pytest.param(ended("delay=10m", 30, 30), id="at the end of the grace period"),
        pytest.param(ended("delay=10s", 0, 1), id="by force"),
        pytest.param(ended("", 30, 1), id="needs no time"),
        pytest.param(ended("delay=soon", 30, 1), id="cannot be read"),
        pytest.param(ended("delay=10s rules=attempt=0_stop-delay=0s", 30, 1), id="a rule"),
        pytest.param(ended("delay=10s run=2s", 30, 1), id="a short run"),
        pytest.param(
            deleted("delay=20s", 30, 2).wait(1).put(pod("delay=20s", 2, phase="Failed")),
            id="a shorter period",
        ),
        pytest.param(
            deleted("delay=3s", 30).wait(1).put(pod("delay=3s", 20), pod("delay=3s", 20, phase="Failed")),
            id="a shorter period that changes nothing",
        ),
        pytest.param(
            History().put(
                pod("delay=9s"), pod("delay=9s", phase="Failed"), pod("delay=9s", 9, phase="Failed")
            ),
            id="not deleted",
        ),
        pytest.param(
            deleted("delay=9s", 9).delete(pod()).put(pod(uid="2"), pod("", 9, phase="Failed", uid="2")),
            id="another pod",
        ),
    ],
)
def test_ends_in_time(history: History) -> None:
    assert violations_of(GracePeriods, history) == []


@pytest.mark.parametrize(
    ("history", "seconds"),
    [
        pytest.param(ended("delay=10s", 30, 4), 6, id="before they stop"),
        pytest.param(ended("delay=10s", 5, 4), 1, id="before the grace period"),
        pytest.param(ended("delay=10s run=1h", 30, 4), 6, id="a long run"),
        pytest.param(
            History().put(with_hook(pod(), 20), with_hook(pod("", 30), 20), pod("", 30, phase="Succeeded")),
            19,
            id="a hook that sleeps",
        ),
        pytest.param(
            deleted("delay=20s", 30, 9).put(pod("delay=20s", 9, phase="Failed")), 8, id="a shorter period"
        ),
    ],
)
def test_ends_too_early(history: History, seconds: int) -> None:
    (violation,) = violations_of(GracePeriods, history)
    assert violation.message == f"the pod has ended {seconds}.0 s before its containers can have stopped"
    assert violation.objects == ("Pod default/p",)


@pytest.mark.parametrize("is_evicted", [True, False])
def test_a_pod_with_a_reason_ends_for_it(is_evicted: bool) -> None:
    last = pod("delay=9s", 9, phase="Failed")
    if is_evicted:
        last.status.reason = "Evicted"
    else:
        last.status.conditions.add(type="DisruptionTarget", status="True", reason="DeletionByPodGC")
    result = result_of(GracePeriods, deleted("delay=9s", 9).put(last), ComponentSettings())
    assert result.violations == ()
    assert result.exceptions == {"for-another-reason": 1}
