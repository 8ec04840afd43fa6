"""Replays recorded sequences on our queue: the steps of tests/golden/queue.jsonl (see its README's words).

A world holds what a running scheduler would: objects as a watch has shown them, cache, nominator, queue, and
event handlers between them. Time is moved by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.machinery.wire import codec
from nominee.scheduler.event_handlers import ASSIGNED_POD_DELETE, EventHandlers, assigned_copy
from nominee.scheduler.failure import requeue_failed
from nominee.scheduler.framework.api.events import ActionType, ClusterEvent, EventResource
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.interface import (
    Code,
    NominatingInfo,
    NominatingMode,
    PreEnqueuePlugin,
    QueueSortPlugin,
    Status,
)
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.types import PodInfo, QueuedPodInfo
from nominee.scheduler.plugins.dynamic_resources.pod_claims import ClaimError, claims_of
from nominee.scheduler.queue.hints import HintMap, Registration
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue, QueueProfile

KIND_RESOURCES = {
    "PersistentVolumeClaim": EventResource.PVC,
    "PersistentVolume": EventResource.PV,
}
FLUSH_UNSCHEDULABLE_SECONDS = 30


def decode(data: Mapping[str, Any] | None) -> Message | None:
    """The message of a manifest; None for nothing and for kinds that we do not serve."""
    kind = kinds.by_kind(data["apiVersion"], data["kind"]) if data is not None else None
    if data is None or kind is None:
        return None
    message: Message = codec.from_json(kind.message, data)
    return message


def event_of(data: Mapping[str, Any]) -> ClusterEvent:
    """`{"resource": "Pod", "action": ["Add", "Delete"]}`."""
    action = ActionType(0)
    for name in data["action"]:
        action |= ActionType[name]
    return ClusterEvent(EventResource(data["resource"]), action)


class PriorityOrder(QueueSortPlugin):
    """PrioritySort's order, on its own here: the queue is under test, not the plugin."""

    name = "PrioritySort"

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        return self.sort_key(a) < self.sort_key(b)

    def sort_key(self, pod: QueuedPodInfo) -> tuple[int, float]:
        return (-pod.pod_info.priority, pod.timestamp)


def _lacks_a_claim(info: PodInfo) -> bool:
    """Whether the pod waits for a claim: the recorded queue saw none at all."""
    try:
        claims_of(info.pod, lambda namespace, name: None)
    except ClaimError:
        return True
    return False


class Gate(PreEnqueuePlugin):
    """Holds pods back for which `holds` is true."""

    def __init__(self, name: str, holds: Callable[[PodInfo], bool]) -> None:
        self.name = name
        self._holds = holds

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return Status(Code.UnschedulableAndUnresolvable, ("held",)) if self._holds(pod) else None


@dataclass
class World:
    """The state that steps work on."""

    registrations: list[Registration]

    def __post_init__(self) -> None:
        self.now = 0.0
        self.pods: dict[ObjectKey, core.Pod] = {}
        self.nodes: dict[str, core.Node] = {}
        self.preempting: set[str] = set()
        self.popped: dict[str, QueuedPodInfo] = {}
        self.versions = 0
        self.cache = Cache()
        self.nominator = Nominator(self._is_pending)
        gates = (
            Gate("SchedulingGates", lambda info: bool(info.pod.spec.schedulingGates)),
            Gate("DefaultPreemption", lambda info: info.name in self.preempting),
            Gate("DynamicResources", _lacks_a_claim),
        )
        self.queue = PrioritySchedulingQueue(
            profiles={"default-scheduler": QueueProfile(gates, HintMap(self.registrations))},
            sort=PriorityOrder(),
            nominator=self.nominator,
        )
        self.handlers = EventHandlers(
            self.queue, self.cache, is_ours=lambda name: name == "default-scheduler"
        )

    def _is_pending(self, info: PodInfo) -> bool:
        pod = self.pods.get(info.key)
        return pod is not None and pod.metadata.uid == info.uid and not pod.spec.nodeName

    def pod(self, namespace: str, name: str) -> core.Pod | None:
        return self.pods.get(ObjectKey(namespace, name))

    def named(self, name: str) -> core.Pod:
        return self.pods[ObjectKey("default", name)]

    # ---- time ----

    def move_to(self, end: float) -> None:
        """Runs the flushes of every whole second on the way."""
        second = math.floor(self.now) + 1
        while second <= end:
            self.queue.flush_backoff(float(second))
            if second % FLUSH_UNSCHEDULABLE_SECONDS == 0:
                self.queue.flush_unschedulable(float(second))
            second += 1
        self.now = end

    # ---- steps ----

    def do(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Move the clock and do one step; return what was popped, in the recording's words."""
        self.move_to(step["t"])
        sources = {
            "active": {_name(info) for info in self.queue.active()},
            "backoff": {_name(info) for info in self.queue.backing_off()},
        }
        result = getattr(self, f"_{step['op']}")(step)
        if step["op"] != "pop":
            return {}
        if result is None:
            return {"popped": None}
        name = _name(result)
        return {"popped": name, "poppedFrom": next(q for q, names in sources.items() if name in names)}

    def _advance(self, step: Mapping[str, Any]) -> None:
        pass

    def _pop(self, step: Mapping[str, Any]) -> QueuedPodInfo | None:
        info = self.queue.pop()
        if info is not None:
            self.popped[info.pod_info.name] = info
        return info

    def _add(self, step: Mapping[str, Any]) -> None:
        self._put(step)

    def _update(self, step: Mapping[str, Any]) -> None:
        self._put(step)

    def _put(self, step: Mapping[str, Any]) -> None:
        obj = decode(step["object"])
        now = self.now
        if isinstance(obj, core.Pod):
            key = ObjectKey(obj.metadata.namespace, obj.metadata.name)
            old = self.pods.get(key)
            self.pods[key] = obj
            if step["op"] == "add":
                self.handlers.pod_added(obj, now)
            else:
                assert old is not None
                self.handlers.pod_updated(old, obj, now)
        elif isinstance(obj, core.Node):
            old_node = self.nodes.get(obj.metadata.name)
            self.nodes[obj.metadata.name] = obj
            if old_node is None:
                self.handlers.node_added(obj, now)
            else:
                self.handlers.node_updated(old_node, obj, now)
        else:
            assert obj is not None
            resource = KIND_RESOURCES.get(step["object"]["kind"]) or EventResource(step["object"]["kind"])
            if step["op"] == "add":
                self.handlers.other_added(resource, obj, now)
            else:
                self.handlers.other_updated(resource, obj, obj, now)

    def _delete(self, step: Mapping[str, Any]) -> None:
        if step.get("kind") == "Node":
            self.handlers.node_deleted(self.nodes.pop(step["name"]), False, self.now)
        else:
            pod = self.pods.pop(ObjectKey("default", step["pod"]))
            self.handlers.pod_deleted(pod, False, self.now)

    def _fail(self, step: Mapping[str, Any], *, plugins: set[str], pending: set[str], fit: bool) -> None:
        info = self.popped.pop(step["pod"])
        if fit:
            info.unschedulable_plugins = plugins
            info.pending_plugins = pending
        cached = self.pod(info.pod_info.namespace, info.pod_info.name)
        requeue_failed(self.queue, info, cached, self._nominating(step), self.now)

    @staticmethod
    def _nominating(step: Mapping[str, Any]) -> NominatingInfo | None:
        nominate = step.get("nominate")
        if nominate is None:
            return None
        mode = NominatingMode.Override if nominate["mode"] == "Override" else NominatingMode.NoOp
        return NominatingInfo(mode, nominate["node"])

    def _unschedulable(self, step: Mapping[str, Any]) -> None:
        self._fail(step, plugins=set(step.get("plugins", ())), pending=set(step.get("pending", ())), fit=True)

    def _error(self, step: Mapping[str, Any]) -> None:
        self._fail(step, plugins=set(), pending=set(), fit=False)

    def _done(self, step: Mapping[str, Any]) -> None:
        info = self.popped.pop(step["pod"], None)
        uid = info.pod_info.uid if info is not None else f"uid-{step['pod']}"
        self.queue.done(uid)

    def _activate(self, step: Mapping[str, Any]) -> None:
        pods = [self.pod("default", name) for name in step["pods"]]
        self.queue.activate([pod for pod in pods if pod is not None], self.now)

    def _event(self, step: Mapping[str, Any]) -> None:
        self.queue.move_all(event_of(step["event"]), decode(step["old"]), decode(step["new"]), self.now)

    def _nominate(self, step: Mapping[str, Any]) -> None:
        self.queue.nominate(PodInfo(self.named(step["pod"])), self._nominating(step))

    def _preempting(self, step: Mapping[str, Any]) -> None:
        (self.preempting.add if step["on"] else self.preempting.discard)(step["pod"])

    def _assume(self, step: Mapping[str, Any]) -> None:
        info = self.popped[step["pod"]].pod_info
        self.cache.assume_pod(info, step["node"])
        self.nominator.delete(info.uid)

    def _forget(self, step: Mapping[str, Any]) -> None:
        self.cache.forget_pod(self.popped[step["pod"]].pod_info)

    def _bindingFailed(self, step: Mapping[str, Any]) -> None:
        info = self.popped[step["pod"]]
        uid = info.pod_info.uid
        plugins = set(step.get("plugins", ()))
        assumed = assigned_copy(info.pod, step["node"])
        self.cache.forget_pod(info.pod_info)
        if not plugins:
            self.queue.move_all(ASSIGNED_POD_DELETE, assumed, None, self.now)
        cleared = {**step, "nominate": {"mode": "Override", "node": ""}}
        self._fail(cleared, plugins=plugins, pending=set(), fit=bool(plugins))
        if plugins:
            self.queue.move_all(ASSIGNED_POD_DELETE, assumed, None, self.now, lambda pod: pod.uid != uid)

    # ---- the state, in the recording's words ----

    def state(self) -> dict[str, Any]:
        queue = self.queue
        waiting = [*queue.backing_off(), *queue.error_backing_off()]
        held = sorted(queue.gated(), key=_name)
        resting = sorted(queue.unschedulable(), key=_name)
        # The counts of a name are those of the pod in a queue, not of a deleted one that is still in flight.
        known = [*self.popped.values(), *queue.active(), *waiting, *held, *resting]
        nominated = {
            node: [pod.name for pod in pods.values()] for node, pods in self.nominator.by_node.items()
        }
        flying = {pod.uid for pod in queue.in_flight.pods()}
        state: dict[str, Any] = {
            "active": [_name(info) for info in queue.active()],
            "backoff": [_name(info) for info in queue.backing_off()],
            "errorBackoff": [
                _name(info)
                for info in sorted(
                    queue.error_backing_off(),
                    key=lambda info: (queue._backoff.backoff.expiry(info) or 0, _name(info)),
                )
            ],
            "unschedulable": [_name(info) for info in resting],
            "gated": [_name(info) for info in held],
            "gatedBy": {_name(info): info.gating_plugin for info in held},
            "rejectors": {_name(i): sorted(i.rejectors) for i in [*held, *resting] if i.rejectors},
            "backoffUntil": {
                _name(info): -1 if (until := queue._backoff.backoff.expiry(info)) is None else until
                for info in waiting
            },
            "nominated": nominated,
            "inFlight": sorted(pod.name for pod in queue.in_flight.pods()),
            "inFlightEvents": [
                f"pod:{entry.name}" if isinstance(entry, PodInfo) else str(entry)
                for entry in queue.in_flight.log()
            ],
            "schedulingCycle": queue.scheduling_cycle,
        }
        alive = {_name(info): info for info in known if info in known and self._counts(info, flying)}
        state["attempts"] = {name: info.attempts for name, info in alive.items()}
        for word, attribute in (
            ("unschedulableCount", "unschedulable_count"),
            ("consecutiveErrors", "consecutive_errors_count"),
        ):
            state[word] = {name: n for name, info in alive.items() if (n := getattr(info, attribute))}
        return state

    def _counts(self, info: QueuedPodInfo, flying: set[str]) -> bool:
        """Whether the recording lists the pod's counters: it is in a queue, or popped and still flying."""
        if self.queue.get(info.pod_info.key) is info:
            return True
        return info.pod_info.uid in flying and self.popped.get(info.pod_info.name) is info


def _name(info: QueuedPodInfo) -> str:
    return info.pod_info.name
