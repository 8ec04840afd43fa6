"""How long a pod with activeDeadlineSeconds may still be active."""

from __future__ import annotations

import pytest

from nominee.kubelet.pod_sync.deadline import seconds_left
from nominee.machinery.api.pb import core

TAKEN = 1_700_000_000.5


def _pod(*, started: int | None = None) -> core.Pod:
    pod = core.Pod()
    if started is not None:
        pod.status.startTime.seconds = started
    return pod


@pytest.mark.parametrize(
    ("pod", "taken", "now", "left"),
    [
        (_pod(), TAKEN, TAKEN, 10.0),
        (_pod(), TAKEN, TAKEN + 4, 6.0),
        (_pod(), TAKEN, TAKEN + 10, 0.0),
        (_pod(), TAKEN, TAKEN + 11, 0.0),
        (_pod(started=1_700_000_000), TAKEN, TAKEN + 4, 6.0),
        (_pod(started=1_700_000_000), None, 1_700_000_003.0, 7.0),
        (_pod(), None, TAKEN, 10.0),
    ],
)
def test_seconds_left(pod: core.Pod, taken: float | None, now: float, left: float) -> None:
    assert seconds_left(pod, 10, taken=taken, now=now) == left
