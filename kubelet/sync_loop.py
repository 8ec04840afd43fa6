"""The kubelet's core: every event of a node enters here, and leaves as instructions.

`handle(node, event)` changes the node's state and returns instructions, in order. No I/O, no clock, no
randomness: time is in the events. Source: kubelet 1.36, syncLoopIteration and its handlers.
"""

from __future__ import annotations

from collections.abc import Sequence

from nominee.kubelet import events, instructions
from nominee.kubelet.allocation import manager
from nominee.kubelet.instructions import Instruction, QueueSync, SyncCause
from nominee.kubelet.node.state import NodeState
from nominee.kubelet.pod_sync import sync
from nominee.kubelet.pods.record import PodRecord
from nominee.machinery.api.objects import copy_of, resource_version_of
from nominee.machinery.api.pb import core


def handle(node: NodeState, event: events.Event) -> list[Instruction]:
    """Apply an event and return the instructions that follow, in order.

    At most one of it is a pod instruction, the last one: its result is the next event of that pod's sync.

    Raises:
        InvalidTransitionError: a state table does not allow what the event means.
        UnexpectedResultError: a result of no instruction that is under way.
    """
    out: list[Instruction] = []
    match event:
        case events.SyncDue():
            out += sync.begin(node, event)
        case events.PodsObserved():
            _on_pods_observed(node, event, out)
        case events.PodsListed():
            _on_pods_listed(node, event, out)
        case events.NodeChanged():
            manager.on_node_changed(node, event, out)
        case events.RetryDue():
            manager.on_retry_due(node, event, out)
        case events.AllocationsRestored(allocations=allocations):
            node.allocations = dict(allocations)
        case _:
            out += sync.resume(node, event)
    return out


def _on_pods_listed(node: NodeState, event: events.PodsListed, out: list[Instruction]) -> None:
    """Take all pods of the node; drop the allocations of pods that are gone."""
    known = {pod.metadata.uid for pod in event.pods}
    for uid in [uid for uid in node.allocations if uid not in known]:
        node.release(uid)
    manager.on_pods_added(node, event.pods, event.at.now, out)
    node.sources_ready = True
    out += [QueueSync(uid, SyncCause.LISTED) for uid in known]


def _on_pods_observed(node: NodeState, event: events.PodsObserved, out: list[Instruction]) -> None:
    """Handle the changes one by one: the first one takes its room, or leaves it, first.

    Source: kubelet 1.36, newSourceApiserverFromLW: each event of the watch is merged and handled alone.
    """
    for uid, pod in event.changes:
        if pod is None:
            if uid in node.pods:
                _on_pods_removed(node, (uid,), event.at.now, out)
        elif uid in node.pods:
            _on_change(node, node.pods[uid], pod, event.at.now, out)
        else:
            manager.on_pods_added(node, (pod,), event.at.now, out)
            out.append(QueueSync(uid, SyncCause.CHANGED))


def _on_change(node: NodeState, record: PodRecord, pod: core.Pod, now: float, out: list[Instruction]) -> None:
    old, answer = record.pod, record.sync.answer
    if answer is not None and resource_version_of(pod) >= resource_version_of(answer):
        record.sync.answer = None
    spec_changed = old.spec != pod.spec
    if old.status != pod.status:
        reconciled = pod
        if spec_changed:
            # Both at once (the watch was slow): one after the other, as a kubelet in time would see it.
            reconciled = copy_of(pod)
            reconciled.spec.CopyFrom(old.spec)
            reconciled.metadata.generation = old.metadata.generation
        manager.on_pod_reconciled(node, record, reconciled, now, out)
    if spec_changed or old.status == pod.status:
        manager.on_pod_updated(node, record, pod, now, out)
    last = record.sync.last
    if last is None or not last.covers(pod):
        out.append(QueueSync(record.uid, SyncCause.CHANGED))


def _on_pods_removed(node: NodeState, uids: Sequence[str], now: float, out: list[Instruction]) -> None:
    """Forget pods; their containers are killed, and the allocations are saved without them."""
    manager.on_pods_removed(node, uids, now, out)
    for uid in uids:
        out += [instructions.RemoveSandbox(uid), QueueSync(uid, SyncCause.REMOVED)]
