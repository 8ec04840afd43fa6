"""How long a pod with activeDeadlineSeconds may still be active."""

from __future__ import annotations

import pytest

from nominee.kubelet.pod_sync.deadline import seconds_left
from nominee.machinery.api.pb import core

TAKEN = 1_700_000_000.5


def _pod(deadline: int | None, *, started: int | None = None) -> core.Pod:
    pod = core.Pod()
    if deadline is not None:
        pod.spec.activeDeadlineSeconds = deadline
    if started is not None:
        pod.status.startTime.seconds = started
    return pod


@pytest.mark.parametrize(
    ("pod", "taken", "now", "left"),
    [
        (_pod(None), TAKEN, TAKEN + 1e6, None),
        (_pod(10), TAKEN, TAKEN, 10.0),
        (_pod(10), TAKEN, TAKEN + 4, 6.0),
        (_pod(10), TAKEN, TAKEN + 10, 0.0),
        (_pod(10), TAKEN, TAKEN + 11, 0.0),
        (_pod(10, started=1_700_000_000), TAKEN, TAKEN + 4, 6.0),
        (_pod(10, started=1_700_000_000), None, 1_700_000_003.0, 7.0),
        (_pod(10), None, TAKEN, 10.0),
    ],
)
def test_seconds_left(pod: core.Pod, taken: float | None, now: float, left: float | None) -> None:
    assert seconds_left(pod, taken=taken, now=now) == left
