"""SchedulerQueueingHints off (possible until 1.33): plugins' registrations alone decide, and move cycles."""

from __future__ import annotations

from typing import cast

import pytest

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.scheduler.event_handlers import ASSIGNED_POD_DELETE
from nominee.scheduler.framework.api.events import ActionType, ClusterEvent, EventResource
from nominee.scheduler.framework.interface import Handle
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.priority_sort import PrioritySort
from nominee.scheduler.queue.hints import HintMap, Registration
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue, QueueProfile
from tests.scheduler.builders import node, pod

KEY = ObjectKey("default", "p")
NODE_ADD = ClusterEvent(EventResource.Node, ActionType.Add)
CLASS_ADD = ClusterEvent(EventResource.StorageClass, ActionType.Add)


def queue() -> PrioritySchedulingQueue:
    registered = HintMap([Registration("Fit", ASSIGNED_POD_DELETE), Registration("Other", NODE_ADD)])
    return PrioritySchedulingQueue(
        profiles={"default-scheduler": QueueProfile((), registered)},
        sort=PrioritySort({}, cast("Handle", None)),
        nominator=Nominator(),
        hints_enabled=False,
    )


def fail(made: PrioritySchedulingQueue, now: float, *plugins: str, event: ClusterEvent | None = None) -> None:
    """The pod is tried and rejected by the plugins; the event happens meanwhile."""
    info = made.pop()
    assert info is not None
    if event is not None:
        made.move_all(event, None, node("n1"), now)
    info.unschedulable_plugins = set(plugins)
    made.add_unschedulable(info, now)


def place(made: PrioritySchedulingQueue) -> str:
    found = [name for name, count in made.counts().items() if count]
    return found[0] if found else ""


@pytest.mark.parametrize(
    ("plugins", "event", "want"),
    [
        (("Fit",), None, "unschedulable"),
        (("Fit",), ASSIGNED_POD_DELETE, "backoff"),
        (("Fit",), NODE_ADD, "backoff"),  # another plugin's event: pods were moved, so the pod is retried
        (("Fit",), CLASS_ADD, "unschedulable"),  # no plugin has registered it
        ((), None, "backoff"),  # an error
    ],
)
def test_where_a_pod_goes_that_has_failed(
    plugins: tuple[str, ...], event: ClusterEvent | None, want: str
) -> None:
    made = queue()
    made.add(pod("p"), 0.0)
    fail(made, 0.0, *plugins, event=event)
    assert place(made) == want
    made.validate()


def test_an_event_before_the_cycle_does_not_count_and_one_after_it_moves_by_registration() -> None:
    made = queue()
    made.add(pod("p"), 0.0)
    made.move_all(ASSIGNED_POD_DELETE, pod("x").pod, None, 0.0)
    fail(made, 0.0, "Fit")
    assert place(made) == "unschedulable"
    made.move_all(NODE_ADD, None, node("n1"), 5.0)
    assert place(made) == "unschedulable"
    made.move_all(ASSIGNED_POD_DELETE, pod("x").pod, None, 5.0)
    assert place(made) == "active"


def changed(info: PodInfo, revision: str, **labels: str) -> PodInfo:
    made = core.Pod()
    made.CopyFrom(info.pod)
    made.metadata.resourceVersion = revision
    made.status.phase = "Pending"
    made.metadata.labels.update(labels)
    return PodInfo(made)


def test_an_updated_pod_is_tried_again_whatever_rejected_it() -> None:
    made = queue()
    first = pod("p")
    made.add(first, 0.0)
    fail(made, 0.0, "Fit")
    second = changed(first, "2")
    made.update(first.pod, second, 5.0)
    assert place(made) == "unschedulable"  # the status alone has changed
    made.update(second.pod, changed(second, "3", a="b"), 5.0)
    assert place(made) == "active"
