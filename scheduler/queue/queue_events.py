"""Name the events of the queue: those that move pods, and those that are only labels in metrics.

Source: kube-scheduler 1.36, framework events.
"""

from __future__ import annotations

import functools
from typing import Final

from nominee.scheduler.framework.api.events import ActionType, ClusterEvent, EventResource

UNSCHEDULED_ADD: Final = ClusterEvent(EventResource.UnscheduledPod, ActionType.Add)
UNSCHEDULED_UPDATE: Final = ClusterEvent(EventResource.UnscheduledPod, ActionType.Update)
UNSCHEDULED_DELETE: Final = ClusterEvent(EventResource.UnscheduledPod, ActionType.Delete)
UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(EventResource.WildCard, ActionType.All, "UnschedulableTimeout")
FORCE_ACTIVATE: Final = ClusterEvent(EventResource.WildCard, ActionType.All, "ForceActivate")
SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF: Final = "PopFromBackoffQ"
POD_POPPED: Final = "PodPopped"


@functools.lru_cache(maxsize=512)
def event_label(event: ClusterEvent | str) -> str:
    """Return the label of an event in metrics."""
    if isinstance(event, str):
        return event
    if event.label:
        return event.label
    resource = event.resource.value.replace("UnscheduledPod", "UnschedulablePod")
    return f"{resource}{event.action.name or int(event.action)}"
