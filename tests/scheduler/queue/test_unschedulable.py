"""Pods that wait, found by what rejected them."""

from __future__ import annotations

import pytest

from nominee.scheduler.framework.types import QueuedPodInfo
from nominee.scheduler.queue.unschedulable import UnschedulablePods
from tests.scheduler.builders import pod


@pytest.mark.parametrize("nodes", [None, ("node-0",)])
def test_the_order_of_the_pods_does_not_depend_on_the_order_of_the_plugins(
    nodes: tuple[str, ...] | None,
) -> None:
    waiting = UnschedulablePods()
    for name, rejector in (("b", "Fit"), ("a", "Affinity"), ("c", "")):
        info = QueuedPodInfo(pod(name), 0.0)
        info.unschedulable_plugins = {rejector} if rejector else set()
        waiting.put(info)
    orders = [
        [info.pod_info.key.name for info in waiting.rejected_by(plugins, nodes)]
        for plugins in (("Fit", "Affinity"), ("Affinity", "Fit"))
    ]
    assert orders == [["c", "a", "b"], ["c", "a", "b"]]
