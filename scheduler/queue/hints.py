"""Find the plugins that registered an event, and ask whether it may make a pod schedulable.

Source: kube-scheduler 1.36, queueing hints (KEP-4247).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from google.protobuf.message import Message

from nominee.machinery.api.pb import core
from nominee.scheduler.attempts.resize import own_node
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    HintFunction,
    QueueingHint,
)

if TYPE_CHECKING:
    from nominee.scheduler.framework.types import PodInfo, QueuedPodInfo

# The events of a plugin that registers none: all of them.
EVERY_EVENT = (
    ClusterEvent(EventResource.Pod, ActionType.UpdatePodScaleUp),
    ClusterEvent(EventResource.Node, ActionType.UpdateNodePreemptionPolicy),
    *(
        ClusterEvent(resource, ActionType.All)
        for resource in EventResource
        if resource not in (EventResource.WildCard, EventResource.AssignedPod, EventResource.UnscheduledPod)
    ),
)


class Strategy(Enum):
    """The queue that a pod goes to because of an event."""

    SKIP = "skip"
    AFTER_BACKOFF = "after backoff"
    IMMEDIATELY = "immediately"


@dataclass(frozen=True, slots=True)
class Registration:
    """An event that a plugin registered; without a hint every matching event queues the pod."""

    plugin: str
    event: ClusterEvent
    hint: HintFunction | None = None


# (registration, event, pod, old object, new object) -> the result of its hint; may raise.
AskHint = Callable[[Registration, ClusterEvent, "PodInfo", Message | None, Message | None], QueueingHint]


def ask(
    registration: Registration, event: ClusterEvent, pod: PodInfo, old: Message | None, new: Message | None
) -> QueueingHint:
    """Return the answer of a registration's hint."""
    assert registration.hint is not None
    return registration.hint(pod, old, new)


class HintMap:
    """The registrations of one profile; `asks` may be a function that takes the time of `ask`."""

    def __init__(self, registrations: Iterable[Registration], asks: AskHint = ask) -> None:
        self.registrations = tuple(registrations)
        self._ask = asks
        self._matching: dict[ClusterEvent, tuple[Registration, ...]] = {}
        self._events: dict[str, tuple[ClusterEvent, ...]] = {}
        for registration in self.registrations:
            known = self._events.get(registration.plugin, ())
            self._events[registration.plugin] = (*known, registration.event)

    def matching(self, event: ClusterEvent) -> tuple[Registration, ...]:
        """Return the registrations that an event matches."""
        found = self._matching.get(event)
        if found is None:
            found = tuple(r for r in self.registrations if r.event.matches(event))
            self._matching[event] = found
        return found

    def events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        """Return the registrations of a plugin."""
        return self._events.get(plugin, ())

    def actions_by_resource(self) -> dict[EventResource, ActionType]:
        """Return the registered actions by resource, which must be watched."""
        union: dict[EventResource, ActionType] = {}
        for registration in self.registrations:
            event = registration.event
            union[event.resource] = union.get(event.resource, ActionType(0)) | event.action
        return union

    def strategy(
        self, info: QueuedPodInfo, event: ClusterEvent, old: Message | None, new: Message | None
    ) -> Strategy:
        """Ask the plugins that rejected the pod how to requeue it after the event.

        One plugin that returns Queue is enough; one that had returned Pending lets the pod skip its
        backoff. A hint that raises counts as Queue: an attempt in vain is better than a pod that is never
        tried again.
        """
        unschedulable, pending = info.unschedulable_plugins, info.pending_plugins
        if not unschedulable and not pending:
            return Strategy.AFTER_BACKOFF
        if event.is_wildcard():
            for_another = new is not None and not (
                isinstance(new, core.Pod) and new.metadata.uid == info.pod_info.uid
            )
            return Strategy.SKIP if for_another else Strategy.AFTER_BACKOFF
        node_name = own_node(info.pod)
        if node_name:
            nodes = nodes_of(old, new)
            # Nor do taints matter to a pod that runs.
            if event.action is ActionType.UpdateNodeTaint or (nodes is not None and node_name not in nodes):
                return Strategy.SKIP
        result = Strategy.SKIP
        for registration in self.matching(event):
            plugin = registration.plugin
            is_pending = plugin in pending
            if not is_pending and plugin not in unschedulable:
                continue
            if registration.hint is not None and not self._wants(registration, event, info, old, new):
                continue
            if is_pending:
                return Strategy.IMMEDIATELY
            if not pending:
                return Strategy.AFTER_BACKOFF
            result = Strategy.AFTER_BACKOFF
        return result

    def _wants(
        self,
        registration: Registration,
        event: ClusterEvent,
        info: QueuedPodInfo,
        old: Message | None,
        new: Message | None,
    ) -> bool:
        try:
            return self._ask(registration, event, info.pod_info, old, new) is QueueingHint.Queue
        except Exception:  # noqa: BLE001  # plugins may be from outside; see the docstring of strategy
            return True


def nodes_of(old: Message | None, new: Message | None) -> tuple[str, ...] | None:
    """Return the nodes that a change of a node or of a pod concerns; None: any node.

    A bound pod in the queue has a deferred resize, and only its own node matters (KEP-5836, "Failures and
    Reconsideration of Deferred pods").
    """
    changed = new if new is not None else old
    if isinstance(changed, core.Node):
        return (changed.metadata.name,)
    if isinstance(changed, core.Pod):
        return (changed.spec.nodeName, changed.status.nominatedNodeName)
    return None


def build_hint_map(
    registered: Mapping[str, Sequence[ClusterEventWithHint] | None],
    *,
    hints_enabled: bool = True,
    wildcard: Sequence[str] = (),
    asks: AskHint = ask,
) -> HintMap:
    """Return the hint map of the plugins' registrations (`registered`); None there: every event.

    `wildcard` names get every event too. Without SchedulerQueueingHints every matching event queues.
    """
    found = [Registration(name, event) for name in wildcard for event in EVERY_EVENT]
    for name, events in registered.items():
        if events is None:
            found.extend(Registration(name, event) for event in EVERY_EVENT)
            continue
        found.extend(Registration(name, each.event, each.hint if hints_enabled else None) for each in events)
    return HintMap(found, asks)
