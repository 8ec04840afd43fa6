"""Pods that wait although they fit, and queues that do not agree with the pods. No I/O.

The scheduler explains its pods itself, by the core of `nominee explain`, its plugins and its own copy of the
cluster; whether the copy is right is the subject of `copies`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from nominee.lab.chaos.rest.state import Finding, State, in_order, name_of
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import get_condition, has_ended, is_terminating, key_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import from_time, parse_rfc3339
from nominee.machinery.scheduling.priority import pod_priority
from nominee.machinery.wire.values.scalars import Json

SCHEDULER: Final = "scheduler"
QUEUE: Final = "/debug/queue"
EXPLANATION: Final = "/debug/explain"
GATED: Final = "Gated"
OTHER_SCHEDULER: Final = "OtherScheduler"
"""The state of a pod for whose schedulerName the scheduler has no profile."""
_RETRIES: Final = frozenset({"Backoff", "WaitingOnPermit", "Binding", OTHER_SCHEDULER, "Bound"})
"""States of a pod that is scheduled, is retried by itself, or is another scheduler's."""
_QUEUES: Final = ("active", "backoff", "unschedulable", "gated")


def explanation_path(pod: core.Pod) -> str:
    """Return the path under which the scheduler explains a pod."""
    return f"{EXPLANATION}?pod={key_of(pod)}"


def is_pending(pod: core.Pod) -> bool:
    """Return whether a pod waits for a node on its own, not together with its group."""
    spec = pod.spec
    return not (
        spec.nodeName
        or spec.schedulingGates
        or spec.HasField("schedulingGroup")
        or is_terminating(pod)
        or has_ended(pod)
    )


def lost_wakeups(state: State) -> Iterator[Finding]:
    """Find pods that fit on a node and wait for an event: the one that should have woken them was lost.

    The periodic flush of unschedulable pods, after 5 minutes, is no excuse but for what `left_nodes` says,
    and for nodes and devices that came free without an event. A gated pod is not flushed: it must not be one
    that may preempt either, as no eviction for it is under way at rest.
    """
    for pod in state.of(kinds.POD):
        document = state.debug.get((SCHEDULER, explanation_path(pod)))
        if document is None or document["state"] in _RETRIES:
            continue
        if document["state"] == "Unknown":
            yield Finding(name_of(pod), "is not known to the scheduler")
        if _waits_for_devices(document, state) or _waits_for_volumes(document, state):
            continue
        explanation = document["explanation"]
        nodes = set() if explanation is None else {*explanation["selectedNodes"]}
        if nodes := nodes - _left(pod, document, state):
            yield waits_though_it_fits(name_of(pod), document["state"], nodes)
        elif document["state"] == GATED and (node := _preempts_on(document)):
            yield Finding(name_of(pod), f"waits in the state {GATED}, and may preempt on {node}")


def waits_though_it_fits(name: str, state: str, nodes: Collection[str]) -> Finding:
    """Return the finding about a pod with this name in findings, in a state of the scheduler's."""
    return Finding(name, f"waits in the state {state}, and fits on {in_order(nodes)}")


def last_attempt_start(entry: Json) -> float:
    """Return when a pod was popped for its last attempt, of an entry of a queue or an explanation.

    The attempt has seen what was there then. What came until it ended, `since`, it may not have seen: an
    event of that time must requeue the pod when it fails, and what no event announces is missed.
    Source: kube-scheduler 1.36, active queue (KEP-4247, in-flight events).
    """
    return parse_rfc3339(entry["lastAttemptStartTime"])


def fits_somewhere(document: Json) -> bool:
    """Return whether a pod waits for an event, and fits on a node."""
    explanation = document["explanation"]
    waits = document["state"] == "Unschedulable" and explanation is not None
    return waits and bool(explanation["selectedNodes"])


def _left(pod: core.Pod, document: Json, state: State) -> set[str]:
    """Return the nodes that a pod fits on since others left them, and no event said so.

    They were nominated there, or a list hid from the scheduler, which had assumed them, that they were bound:
    the last state that the watch had shown has no node (kube-scheduler 1.36, deletePod and the queueing hints
    of NodeResourcesFit). The scheduler itself names these nodes.
    """
    if not fits_somewhere(document):
        return set()
    return _nodes_left(pod, document, state).intersection(document["explanation"]["selectedNodes"])


def _unannounced(state: State, resource: str) -> Json:
    """Return the nodes or volumes, with times, or the devices that came free without an event."""
    queue = state.debug.get((SCHEDULER, QUEUE)) or {}
    return queue.get("unannounced", {}).get(resource, {})


def _nodes_left(pod: core.Pod, document: Json, state: State) -> set[str]:
    """Return the nodes that others left after the last attempt at a pod began, without an event."""
    unannounced = _unannounced(state, "nodes")
    if not (state.left_nodes or unannounced):
        return set()
    began, priority = last_attempt_start(document), pod_priority(pod)
    left = {each.node for each in state.left_nodes if each.time >= began and each.priority >= priority}
    return left | {node for node, time in unannounced.items() if parse_rfc3339(time) >= began}


def _waits_for_devices(document: Json, state: State) -> bool:
    """Return whether a pod fits since devices are free that no event has announced.

    Their claim was removed while it was allocated, or a binding failed before their allocation was written:
    DynamicResources has not registered the end of a claim or of an assigned pod (kube-scheduler 1.36,
    EventsToRegister). The scheduler itself names these devices.
    """
    return _has_devices_left(document.get("rejectedBy", ()), state) and fits_somewhere(document)


def _has_devices_left(plugins: Sequence[str], state: State) -> bool:
    return bool(_unannounced(state, "devices")) and "DynamicResources" in plugins


def _waits_for_volumes(document: Json, state: State) -> bool:
    """Return whether a pod fits since a volume is free that no event has announced.

    The scheduler had chosen it for another pod whose binding failed before the volume was written.
    VolumeBinding has not registered the end of a pod (kube-scheduler 1.36, EventsToRegister). The scheduler
    itself names these volumes.
    """
    return _has_volumes_left(document, document.get("rejectedBy", ()), state) and fits_somewhere(document)


def _has_volumes_left(entry: Json, plugins: Sequence[str], state: State) -> bool:
    """Return whether plugins may have rejected a pod for a volume that was left later, without an event."""
    times = _unannounced(state, "volumes").values()
    if not times or "VolumeBinding" not in plugins:
        return False
    return last_attempt_start(entry) <= max(map(parse_rfc3339, times))


def waits_for_flush(state: State) -> bool:
    """Return whether the periodic flush of unschedulable pods alone will wake a pod that gets room then.

    Preemption would make it, a nominated pod has left it, or a device or a volume is free. No event says so:
    a pod is woken by what concerns the plugin that rejected it, and not by what concerns the nodes that had
    no victims (kube-scheduler 1.36, podWorthRequeuing). Pods of a group and deferred resizes are not
    explained: they may have got room as soon as some is free, or a lower pod has come.
    """
    queue = state.debug.get((SCHEDULER, QUEUE)) or {}
    for entry, pod in entries_of_others(queue, state.of(kinds.POD)):
        left = _nodes_left(pod, entry, state)
        if pod.spec.nodeName:
            left &= {pod.spec.nodeName}
        plugins = entry["plugins"]
        if left or _has_devices_left(plugins, state) or _has_volumes_left(entry, plugins, state):
            return True
        if any(_is_later_victim(each, pod, entry) for each in state.of(kinds.POD)):
            return True
    for pod in state.of(kinds.POD):
        document = state.debug.get((SCHEDULER, explanation_path(pod)))
        if document is not None and (
            _may_preempt(document)
            or _left(pod, document, state)
            or _waits_for_devices(document, state)
            or _waits_for_volumes(document, state)
        ):
            return True
    return False


def _is_later_victim(victim: core.Pod, pod: core.Pod, entry: Json) -> bool:
    """Return whether a pod that waits might preempt one that was bound after its last attempt began."""
    if not victim.spec.nodeName or pod.spec.nodeName not in ("", victim.spec.nodeName):
        return False
    if is_terminating(victim) or has_ended(victim) or pod_priority(victim) >= pod_priority(pod):
        return False
    bound = get_condition(victim.status.conditions, "PodScheduled")
    return bound is not None and from_time(bound.lastTransitionTime) >= int(last_attempt_start(entry))


def entries_of_others(queue: Json, pods: Iterable[core.Pod]) -> Iterator[tuple[Json, core.Pod]]:
    """Yield the entries of the pods of groups, and with deferred resizes, that wait for an event."""
    others = {str(key_of(each)): each for each in pods if not is_pending(each)}
    for entry in (queue or {}).get("unschedulable", ()):
        if (pod := others.get(entry["pod"])) is not None:
            yield entry, pod


def _may_preempt(document: Json) -> bool:
    return document["state"] == "Unschedulable" and bool(_preempts_on(document))


def _preempts_on(document: Json) -> str:
    """Return the node on which preemption would make room for a pod, or ""."""
    explanation = document["explanation"]
    preemption = None if explanation is None else explanation["preemption"]
    return "" if preemption is None else str(preemption["nominatedNode"])


def queues(state: State) -> Iterator[Finding]:
    """Find entries of the scheduler's queues, and nominations, that do not agree with the pods."""
    document = state.debug.get((SCHEDULER, QUEUE))
    if document is None:
        return
    pods = {str(key_of(pod)): pod for pod in state.of(kinds.POD)}
    for queue in _QUEUES:
        for entry in document[queue]:
            pod = pods.get(entry["pod"])
            if pod is None or has_ended(pod):
                yield Finding(f"pod {entry['pod']}", f"is in the scheduler's {queue} queue, and is gone")
    for entry in document["binding"]:
        pod = pods.get(entry["pod"])
        if pod is None or pod.spec.nodeName:
            yield Finding(f"pod {entry['pod']}", "is still being bound for the scheduler")
    yield from _nominations(document, pods)


def _nominations(document: Json, pods: dict[str, core.Pod]) -> Iterator[Finding]:
    """Compare the nominations that the scheduler respects with the pods' status."""
    held = {pod: node for node, names in document["nominated"].items() for pod in names}
    for name, node in held.items():
        pod = pods.get(name)
        if pod is None or pod.spec.nodeName or pod.status.nominatedNodeName != node:
            yield Finding(f"pod {name}", f"is nominated to {node} for the scheduler alone")
    for queue in ("active", "backoff", "unschedulable"):
        for entry in document[queue]:
            pod = pods.get(entry["pod"])
            if pod is None or pod.spec.nodeName or not pod.status.nominatedNodeName:
                continue
            if entry["pod"] not in held:
                node = pod.status.nominatedNodeName
                yield Finding(name_of(pod), f"is nominated to {node}, and not for the scheduler")
