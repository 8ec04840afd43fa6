"""Keep the pending pods, and decide which is tried next and when.

A pod is in exactly one place: *active* (to be tried), *backoff* or *error backoff* (waits a while),
*unschedulable* (waits for an event), *gated* (a PreEnqueue plugin rejects it), or in flight (is being
tried).

    add -> active -> pop -> in flight -> bound
             ^                  |
             |                  v rejected                       failed with an error
             +-- backoff <- unschedulable (waits for an event)   -> error backoff -> active

Source: kube-scheduler 1.36, scheduling queue (KEP-4247 queueing hints, KEP-5142 popping from backoff,
KEP-4832 asynchronous preemption). Times are seconds since the epoch by a clock that never goes back.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.message import Message

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.scheduler.framework.api.events import ClusterEvent
from nominee.scheduler.framework.interface import NominatingInfo, PreEnqueuePlugin, QueueSortPlugin, Status
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.runtime.plugin_status import run_pre_enqueue_plugin
from nominee.scheduler.framework.types import PodInfo, QueuedPodInfo
from nominee.scheduler.object_changes import is_pod_updated, pod_changes
from nominee.scheduler.queue.backoff import Backoff, BackoffQueue
from nominee.scheduler.queue.hints import HintMap, Strategy, nodes_of
from nominee.scheduler.queue.in_flight import InFlight
from nominee.scheduler.queue.keyed_heap import KeyedHeap
from nominee.scheduler.queue.queue_events import (
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    POD_POPPED,
    POP_FROM_BACKOFF,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_ADD,
    UNSCHEDULED_UPDATE,
    event_label,
)
from nominee.scheduler.queue.unschedulable import UnschedulablePods

FLUSH_UNSCHEDULABLE_PERIOD_SECONDS: Final = 30.0
FLUSH_BACKOFF_PERIOD_SECONDS: Final = 1.0

PodPredicate = Callable[[PodInfo], bool]


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """The PreEnqueue plugins and the hints of a scheduler profile."""

    pre_enqueue: tuple[PreEnqueuePlugin, ...] = ()
    hints: HintMap = field(default_factory=lambda: HintMap(()))


class PrioritySchedulingQueue:
    """The pending pods of all profiles. Not for several threads; no method awaits.

    `wake` is called when `pop` may return a pod again. Without `hints_enabled` (SchedulerQueueingHints,
    until 1.33) no events are kept for pods in flight: one that fails waits for its backoff if any event has
    moved pods since it was popped, and for an event otherwise. `report` gets errors of PreEnqueue plugins.
    """

    def __init__(
        self,
        *,
        profiles: Mapping[str, QueueProfile],
        sort: QueueSortPlugin,
        nominator: Nominator,
        backoff: Backoff = Backoff(),  # noqa: B008  # frozen
        max_unschedulable_seconds: float = 300.0,
        hints_enabled: bool = True,
        wake: Callable[[], None] = lambda: None,
        report: Callable[[PodInfo, Status], None] = lambda pod, status: None,
    ) -> None:
        self.nominator = nominator
        self.scheduling_cycle = 0
        self.incoming: Counter[tuple[str, str]] = Counter()  # (queue, event) -> pods; for the metric
        self.in_flight = InFlight()
        self._profiles = dict(profiles)
        self._max_unschedulable_seconds = max_unschedulable_seconds
        self._wake = wake
        self._report = report
        self._hints_enabled = hints_enabled
        self._move_request_cycle = -1  # the cycle in which pods were last moved; without hints only
        sort_key = _sort_key(sort)
        self._active: KeyedHeap[ObjectKey, QueuedPodInfo] = KeyedHeap(sort_key)
        self._backoff = BackoffQueue(backoff, sort_key)
        self._pop_early = backoff.windowed
        self._unschedulable = UnschedulablePods()  # and the gated ones

    # ---- looking ----

    def active(self) -> Iterator[QueuedPodInfo]:
        """Return the active pods in the order of popping."""
        return iter(self._active)

    def backing_off(self) -> Iterator[QueuedPodInfo]:
        """Return the rejected pods in backoff, in the order of popping."""
        return self._backoff.rejected()

    def error_backing_off(self) -> Iterator[QueuedPodInfo]:
        """Return the pods in backoff after an error, in the order in which it ends."""
        return self._backoff.errors()

    def unschedulable(self) -> list[QueuedPodInfo]:
        """Return the pods that wait for an event, without gated ones."""
        return [info for info in self._unschedulable if not info.gated]

    def gated(self) -> list[QueuedPodInfo]:
        """Return the pods that a PreEnqueue plugin rejects."""
        return [info for info in self._unschedulable if info.gated]

    def counts(self) -> dict[str, int]:
        """Return the numbers of pods by queue, under the labels of scheduler_pending_pods."""
        gated = sum(1 for info in self._unschedulable if info.gated)
        return {
            "active": len(self._active),
            "backoff": len(self._backoff),
            "unschedulable": len(self._unschedulable) - gated,
            "gated": gated,
        }

    def rejected(self) -> Counter[tuple[str, str]]:
        """Count the queued pods by (plugin that rejected them last, profile); gated ones too."""
        found: Counter[tuple[str, str]] = Counter()
        for info in itertools.chain(self._unschedulable, self._active, self._backoff.rejected()):
            profile = info.pod.spec.schedulerName
            found.update((plugin, profile) for plugin in info.rejectors)
        return found

    def kept_events(self) -> Counter[str]:
        """Count the entries of the in-flight log: events by label, and the pods in flight."""
        found = Counter(event_label(e) for e in self.in_flight.log() if isinstance(e, ClusterEvent))
        found[POD_POPPED] = len(self.in_flight)
        return found

    def get(self, key: ObjectKey) -> QueuedPodInfo | None:
        """Return a pod that is in some queue (not one in flight)."""
        return self._active.get(key) or self._backoff.get(key) or self._unschedulable.get(key)

    def validate(self) -> None:
        """Raise AssertionError when a pod is in two places, or in the wrong one. For tests."""
        places: dict[ObjectKey, list[str]] = {}
        for place, infos in (
            ("active", self.active()),
            ("backoff", self.backing_off()),
            ("error backoff", self.error_backing_off()),
            ("unschedulable", self.unschedulable()),
            ("gated", self.gated()),
        ):
            for info in infos:
                places.setdefault(info.pod_info.key, []).append(place)
                if place in ("active", "backoff"):
                    assert not info.gated, f"{info.pod_info.key} is gated and in {place}"
                if place == "error backoff":
                    assert not info.rejectors, f"{info.pod_info.key} was rejected and is in {place}"
        for key, found in places.items():
            assert len(found) == 1, f"{key} is in {' and '.join(found)}"

    # ---- adding, popping and requeueing ----

    def add(self, pod: PodInfo, now: float) -> None:
        """Add a new pod."""
        self._to_active(QueuedPodInfo(pod, now), UNSCHEDULED_ADD, now)

    def pop(self) -> QueuedPodInfo | None:
        """Return the next pod to try, which is in flight from now on, or None.

        An empty active queue takes from backoff at once, before the backoff is over (KEP-5142).
        """
        while True:
            info = self._active.pop()
            if info is None and self._pop_early:
                info = self._backoff.pop_early()
                if info is not None:
                    self.incoming["active", POP_FROM_BACKOFF] += 1
            if info is None:
                return None
            info.attempts += 1
            if self.in_flight.start(info.pod_info):
                break
            # The pod is in flight already: it was queued again meanwhile.
        return self._taken(info)

    def _taken(self, info: QueuedPodInfo) -> QueuedPodInfo:
        self.scheduling_cycle += 1
        info.scheduling_cycle = self.scheduling_cycle
        info.unschedulable_plugins = set()
        info.pending_plugins = set()
        return info

    def pop_specific(self, key: ObjectKey) -> QueuedPodInfo | None:
        """Pop a pod that is tried together with a popped one; return None if it cannot be tried."""
        info = self._unschedulable.get(key)
        if info is not None and info.gated:
            return None
        info = self._active.remove(key) or self._backoff.remove(key) or self._unschedulable.remove(key)
        if info is None:
            return None
        info.attempts += 1
        return self._taken(info) if self.in_flight.start(info.pod_info) else None

    def done(self, uid: str) -> None:
        """End the flight of a popped pod: its attempt is over, or can no longer end in a rejection."""
        self.in_flight.done(uid)

    def add_unschedulable(self, info: QueuedPodInfo, now: float) -> None:
        """Take a popped pod back; its plugin sets name its rejectors, empty ones mean an error.

        Do nothing when the pod is in a queue already. The flight ends in any case.
        """
        try:
            if self.get(info.pod_info.key) is not None:
                return
            if info.unschedulable_plugins or info.pending_plugins:
                info.unschedulable_count += 1
                info.consecutive_errors_count = 0
            else:
                info.consecutive_errors_count += 1
            info.timestamp = now
            info.backoff_expiration = None
            info.was_flushed_from_unschedulable = False
            if not self._hints_enabled:
                self._add_unschedulable_without_hints(info)
                return
            strategy = self._strategy_after_flight(info)
            self._requeue(info, strategy, SCHEDULE_ATTEMPT_FAILURE, now)
        finally:
            self.in_flight.done(info.pod_info.uid)

    def _add_unschedulable_without_hints(self, info: QueuedPodInfo) -> None:
        if self._move_request_cycle >= info.scheduling_cycle or not info.rejectors:
            self._to_backoff(info, SCHEDULE_ATTEMPT_FAILURE)
        else:
            self._to_unschedulable(info, SCHEDULE_ATTEMPT_FAILURE)

    def update(self, old: core.Pod, new: PodInfo, now: float) -> None:
        """Take the change of a pod without a node; it concerns that pod only."""
        events = pod_changes(old, new.pod, new.options)
        if self._hints_enabled and self.in_flight.record_for(new.uid, events, old, new.pod):
            return
        key = new.key
        info = self._active.get(key)
        if info is not None:
            info.pod_info = new
            self._active.put(key, info)
            self.nominator.update(old, new)
            return
        info = self._backoff.get(key)
        if info is not None:
            info.pod_info = new
            self._backoff.reorder(info)
            self.nominator.update(old, new)
            return
        info = self._unschedulable.get(key)
        if info is None:
            self._to_active(QueuedPodInfo(new, now), UNSCHEDULED_UPDATE, now)
            return
        info.pod_info = new
        self.nominator.update(old, new)
        if not self._hints_enabled:
            if is_pod_updated(old, new.pod):
                self._requeue(info, Strategy.AFTER_BACKOFF, UNSCHEDULED_UPDATE, now)
            return
        for event in events:
            strategy = self._strategy(info, event, old, new.pod)
            if self._requeue(info, strategy, event, now):
                break

    def delete(self, pod: core.Pod) -> None:
        """Remove a pod that is deleted or bound. One in flight stays so until its attempt ends."""
        self.nominator.delete(pod.metadata.uid)
        key = ObjectKey(pod.metadata.namespace, pod.metadata.name)
        if self._active.remove(key) is None and self._backoff.remove(key) is None:
            self._unschedulable.remove(key)

    def activate(self, pods: Iterable[core.Pod], now: float) -> None:
        """Move pods to the active queue unless gated. In flight: they are tried again if they fail."""
        for pod in pods:
            key = ObjectKey(pod.metadata.namespace, pod.metadata.name)
            info = self._unschedulable.get(key)
            from_backoff = False
            if info is None:
                info = self._backoff.remove(key)
                from_backoff = True
            if info is None or not self._to_active(info, FORCE_ACTIVATE, now, from_backoff=from_backoff):
                self.in_flight.record_for(pod.metadata.uid, (FORCE_ACTIVATE,), None, pod)

    # ---- events ----

    def move_all(
        self,
        event: ClusterEvent,
        old: Message | None,
        new: Message | None,
        now: float,
        only: PodPredicate | None = None,
    ) -> None:
        """Move the pods that an event may make schedulable, and record it for those in flight.

        `only` selects among the pods that wait; the event is recorded in any case.
        """
        if event.is_wildcard():
            pods = list(self._unschedulable)
        else:
            plugins = {r.plugin for profile in self._profiles.values() for r in profile.hints.matching(event)}
            if not plugins:
                return
            pods = self._unschedulable.rejected_by(plugins, nodes_of(old, new))
        if only is not None:
            pods = [info for info in pods if only(info.pod_info)]
        self._move(pods, event, old, new, now)

    def flush_backoff(self, now: float) -> None:
        """Move the pods whose backoff is over to the active queue.

        To be called every second, best at the beginning of one.
        """
        for info in self._backoff.pop_completed(now):
            self._to_active(info, BACKOFF_COMPLETE, now, from_backoff=True)

    def flush_unschedulable(self, now: float) -> None:
        """Try pods again that waited for an event for five minutes.

        To be called every 30 s.
        """
        limit = self._max_unschedulable_seconds
        late = [info for info in self._unschedulable if now - info.timestamp > limit]
        if late:
            for info in late:
                info.was_flushed_from_unschedulable = True
            self._move(late, UNSCHEDULABLE_TIMEOUT, None, None, now)

    def nominate(self, pod: PodInfo, nominating: NominatingInfo | None) -> None:
        """Enter the node a pod is nominated to; None or NoOp takes the pod's status."""
        self.nominator.add(pod, nominating)

    # ---- inside ----

    def _move(
        self,
        pods: Iterable[QueuedPodInfo],
        event: ClusterEvent,
        old: Message | None,
        new: Message | None,
        now: float,
    ) -> None:
        for info in pods:
            if info.gated and not any(wanted.matches(event) for wanted in info.gating_plugin_events):
                continue
            strategy = self._strategy(info, event, old, new)
            if strategy is not Strategy.SKIP:
                self._unschedulable.remove(info.pod_info.key)
                self._requeue(info, strategy, event, now)
        if self._hints_enabled:
            self.in_flight.record(event, old, new)
        else:
            self._move_request_cycle = self.scheduling_cycle

    def _strategy(
        self, info: QueuedPodInfo, event: ClusterEvent, old: Message | None, new: Message | None
    ) -> Strategy:
        profile = self._profiles.get(info.pod.spec.schedulerName)
        if profile is None:
            return Strategy.AFTER_BACKOFF
        return profile.hints.strategy(info, event, old, new)

    def _strategy_after_flight(self, info: QueuedPodInfo) -> Strategy:
        """Return how to requeue the pod after the events since it was popped."""
        if not info.unschedulable_plugins and not info.pending_plugins:
            return Strategy.AFTER_BACKOFF
        events = self.in_flight.events_since(info.pod_info.uid)
        if events is None:
            return Strategy.AFTER_BACKOFF
        result = Strategy.SKIP
        for entry in events:
            strategy = self._strategy(info, entry.event, entry.old, entry.new)
            if strategy is Strategy.IMMEDIATELY:
                return strategy
            if strategy is Strategy.AFTER_BACKOFF:
                result = strategy
                if not info.pending_plugins:
                    break
        return result

    def _requeue(
        self, info: QueuedPodInfo, strategy: Strategy, event: ClusterEvent | str, now: float
    ) -> bool:
        """Put a pod that is in no queue (or unschedulable) where it belongs; return whether it can be popped.

        A pod in backoff can where `pop` may take it early.
        """
        if strategy is Strategy.SKIP:
            self._to_unschedulable(info, event)
            return False
        if strategy is Strategy.AFTER_BACKOFF and self._backoff.backoff.is_backing_off(info, now):
            return self._to_backoff(info, event) and self._pop_early
        return self._to_active(info, event, now)

    def _to_unschedulable(self, info: QueuedPodInfo, event: ClusterEvent | str) -> None:
        key = info.pod_info.key
        if key not in self._unschedulable:
            self.incoming["gated" if info.gated else "unschedulable", event_label(event)] += 1
        self._unschedulable.put(info)

    def _to_active(
        self,
        info: QueuedPodInfo,
        event: ClusterEvent | str,
        now: float,
        *,
        from_backoff: bool = False,
    ) -> bool:
        """Move the pod to active; return False when a PreEnqueue plugin gated it instead."""
        if not (self._pop_early and from_backoff):  # else PreEnqueue ran when it went into backoff
            self._run_pre_enqueue(info)
        key = info.pod_info.key
        if info.gated:
            if key not in self._active and key not in self._backoff:
                self._to_unschedulable(info, event)
            return False
        if info.initial_attempt_timestamp is None:
            info.initial_attempt_timestamp = now
        self._unschedulable.remove(key)
        self._backoff.remove(key)
        self._active.put(key, info)
        self.incoming["active", event_label(event)] += 1
        if event is UNSCHEDULED_ADD or event is UNSCHEDULED_UPDATE:
            self.nominator.add(info.pod_info, None)
        self._wake()
        return True

    def _to_backoff(self, info: QueuedPodInfo, event: ClusterEvent | str) -> bool:
        """Move the pod to backoff; return False when a PreEnqueue plugin gated it instead."""
        key = info.pod_info.key
        if self._pop_early:
            self._run_pre_enqueue(info)
            if info.gated:
                self._to_unschedulable(info, event)
                return False
        self._unschedulable.remove(key)
        self._backoff.add(info)
        self.incoming["backoff", event_label(event)] += 1
        if self._pop_early:
            self._wake()
        return True

    def _run_pre_enqueue(self, info: QueuedPodInfo) -> None:
        """Run PreEnqueue, first the plugin that gates the pod now; the first rejection or error gates it."""
        profile = self._profiles.get(info.pod.spec.schedulerName)
        plugins = profile.pre_enqueue if profile is not None else ()
        if info.gating_plugin:
            plugins = tuple(sorted(plugins, key=lambda plugin: plugin.name != info.gating_plugin))
        for plugin in plugins:
            status = run_pre_enqueue_plugin(plugin, info.pod_info)
            if status is not None:
                if not status.is_rejected:
                    self._report(info.pod_info, status)
                info.unschedulable_plugins.add(plugin.name)
                info.gating_plugin = plugin.name
                info.gating_plugin_events = profile.hints.events_of(plugin.name) if profile else ()
                return
        info.gating_plugin = ""


def _sort_key(sort: QueueSortPlugin) -> Callable[[QueuedPodInfo], Any]:
    """Return the plugin's own key if it has one, else one made of its `less`."""

    def compare(a: QueuedPodInfo, b: QueuedPodInfo) -> int:
        return -1 if sort.less(a, b) else int(sort.less(b, a))

    by_comparison = functools.cmp_to_key(compare)

    def key(info: QueuedPodInfo) -> Any:
        own = sort.sort_key(info)
        return own if own is not None else by_comparison(info)

    return key
