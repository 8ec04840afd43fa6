"""A pod that no event woke: the flush after five minutes marks it, until it fails again."""

from __future__ import annotations

from typing import cast

from nominee.scheduler.framework.interface import Handle
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.types import QueuedPodInfo
from nominee.scheduler.plugins.priority_sort import PrioritySort
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue, QueueProfile
from tests.scheduler.builders import pod


def tried(queue: PrioritySchedulingQueue) -> QueuedPodInfo:
    info = queue.pop()
    assert info is not None
    return info


def test_the_mark_is_of_the_attempt_after_the_flush_only() -> None:
    queue = PrioritySchedulingQueue(
        profiles={"default-scheduler": QueueProfile()},
        sort=PrioritySort({}, cast("Handle", None)),
        nominator=Nominator(),
    )
    queue.add(pod("p"), 0.0)
    info = tried(queue)
    info.unschedulable_plugins = {"Fit"}
    queue.add_unschedulable(info, 1.0)
    queue.flush_unschedulable(330.0)
    info = tried(queue)
    assert info.was_flushed_from_unschedulable
    info.unschedulable_plugins = {"Fit"}
    queue.add_unschedulable(info, 331.0)
    assert not info.was_flushed_from_unschedulable
    queue.activate([info.pod], 332.0)
    assert not tried(queue).was_flushed_from_unschedulable
