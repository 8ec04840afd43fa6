"""Limits of the autoscaler's events. Source: cluster-autoscaler 1.36, event recorder."""

from __future__ import annotations

import pytest

from nominee.autoscaler.options import Options
from nominee.autoscaler.shell.event_limits import event_correlator
from nominee.machinery.api.pb import core
from nominee.machinery.events.correlator import EventCorrelator

START = 1_000_000.0


def sent(correlator: EventCorrelator, reason: str, message: str, now: float, *, status: str = "") -> bool:
    """Report whether an event about a pod, or about the ConfigMap `status`, is sent."""
    event = core.Event(reason=reason, message=message, type="Normal", count=1)
    event.source.component = "cluster-autoscaler"
    about = event.involvedObject
    about.kind, about.namespace, about.name = ("ConfigMap", "kube-system", status) if status else (
        "Pod", "default", "p",
    )  # fmt: skip
    event.metadata.name = f"{about.name}.{now}"
    return correlator.correlate(event, now) is not None


@pytest.mark.parametrize(("duplicated", "count"), [(False, 2), (True, 26)])
def test_a_pod_gets_one_event_of_a_reason_in_five_minutes(duplicated: bool, count: int) -> None:
    """The event is repeated each second, for five minutes."""
    correlator = event_correlator(Options(record_duplicated_events=duplicated))
    message = "pod didn't trigger scale-up: 1 max node group size reached"
    results = [sent(correlator, "NotTriggerScaleUp", message, START + second) for second in range(303)]
    assert sum(results) == count
    assert any(results[300:])


def test_another_reason_is_another_event() -> None:
    correlator = event_correlator(Options())
    assert sent(correlator, "NotTriggerScaleUp", "a", START)
    assert not sent(correlator, "NotTriggerScaleUp", "b", START)
    assert sent(correlator, "TriggeredScaleUp", "a", START)


@pytest.mark.parametrize(("name", "both"), [("cluster-autoscaler-status", True), ("another", False)])
def test_every_message_about_the_status_is_sent(name: str, both: bool) -> None:
    correlator = event_correlator(Options())
    assert sent(correlator, "ScaledUpGroup", "setting group a", START, status=name)
    assert sent(correlator, "ScaledUpGroup", "setting group b", START, status=name) is both
    assert not sent(correlator, "ScaledUpGroup", "setting group a", START, status=name)
