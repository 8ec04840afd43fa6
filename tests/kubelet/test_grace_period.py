"""The least time that containers have to stop."""

from __future__ import annotations

import pytest

from tests.kubelet.executor import deleted, new_pod
from tests.kubelet.test_sync import node, show, since


@pytest.mark.parametrize(("sleep", "grace", "seconds"), [(0, 0, 2.0), (0, 1, 2.0), (3, 4, 5.0), (9, 4, 6.0)])
def test_containers_have_two_seconds_to_stop_after_a_pre_stop_hook(
    sleep: int, grace: int, seconds: float
) -> None:
    """Source: kubelet 1.36, calculateEffectiveGracePeriod, killContainer."""
    pod = new_pod("a")
    if sleep:
        pod.spec.containers[0].lifecycle.preStop.sleep.seconds = sleep
    here = node(pod, stop=60.0)
    show(here, deleted(here.api["a"], grace))
    since(here)
    here.pass_time(seconds - 0.1)
    here.work()
    assert since(here) == []
    here.pass_time(0.1)
    here.work()
    assert since(here)[0] == "StopContainers"
