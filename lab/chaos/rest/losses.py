"""The knowledge that a restart takes from processes, from those of upstream, too. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from nominee.lab.chaos.rest.nodes import AUTOSCALER, DELETION_CANDIDATE, LOOP, TO_BE_DELETED
from nominee.lab.chaos.rest.past.changes_of_room import last_for
from nominee.lab.chaos.rest.scheduling import QUEUE, SCHEDULER, entries_of_others, last_attempt_start
from nominee.lab.chaos.rest.state import State
from nominee.lab.chaos.rest.workloads.pod_autoscalers import target_of
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import get_condition, has_ended, key_of
from nominee.machinery.api.pb import autoscaling, core
from nominee.machinery.scheduling import node_affinity
from nominee.machinery.wire.values.scalars import Json

OF_NODE, NOMINATION, NONE = "node ", "nomination ", "none"
"""How the facts begin that name a pod's node and nomination, and how they end for one that has none."""
FAILED: Final = "Failed"
"""The fact of a pod that has failed: its phase."""
_WAITS: Final = ("backedOffGroups", "inCooldown")
_HINTS: Final = ("heldByHints", "lackingDevices", "pendingHints")
"""Why an autoscaler waits, and the nodes that it has in mind, in its `/debug/loop`."""
_TAINTS: Final = tuple(f"taint {key}:" for key in (TO_BE_DELETED, DELETION_CANDIDATE))
"""How the facts of a node begin that an autoscaler changes."""
_GOING: Final = frozenset({"deletionTimestamp", "DisruptionTarget=True"})
_PREEMPTION: Final = "DefaultPreemption"
_UNSCHEDULABLE: Final = "Unschedulable"
"""The reason of PodScheduled after an attempt that found no node."""


@dataclass(frozen=True, kw_only=True)
class Losses:
    """The knowledge that a restart takes from the processes of a cluster.

    `nodes`: where the scheduler keeps room for one of the `nominees`. These are gated pods that were
    nominated before; a scheduler that starts enters no nomination of a gated pod (kube-scheduler 1.36,
    moveToActiveQ), knows of no preemption, tries a pod that is gated since its own began, and clears a
    nomination that helps no more (preemption.go; kubernetes/kubernetes#141694). And pods whose nomination may
    have been meant for a former pod of the name: no attempt has cleared it yet. `late_attempts`: pods of
    groups, tried after all that may have made room: the next attempt may take other nodes, and preempt pods
    there, as which nodes have victims depends on those of the first pods (pods come and go then).
    `gated_members`: pods of groups that wait for evictions, though none is under way at rest.
    `misplaced_pods`: pods on a node that has lost a label of theirs, which a kubelet that starts refuses
    (kubernetes/kubernetes#124586, open in 1.36); their owners create others, and nodes come for these.
    `rivals`: autoscalers of pods that others had, too, whose targets are gone: a selector counts as long as
    its autoscaler exists (kube-controller-manager 1.36, horizontal.go, hpaSelectors), and a new controller
    has none of these. `hinted_nodes`: those that an autoscaler has in mind for a pod that waits though it
    fits alone, as in a group, or keeps since the places that it has in mind for its pods do not suffice,
    while others would (cluster-autoscaler 1.36, Hints), or that are not ready for it since they lack devices
    that another node of their group had. `placed_pods`: those of the nominees that an
    autoscaler takes for placed by their nomination, and adds a node for when they have lost it. `delays`:
    whether the autoscaler waits after a failure, a scale-up or a deletion: nodes may come and go, and pods
    with them.
    """

    nodes: frozenset[str] = frozenset()
    nominees: frozenset[str] = frozenset()
    late_attempts: frozenset[str] = frozenset()
    gated_members: frozenset[str] = frozenset()
    misplaced_pods: frozenset[str] = frozenset()
    rivals: frozenset[str] = frozenset()
    hinted_nodes: frozenset[str] = frozenset()
    placed_pods: frozenset[str] = frozenset()
    delays: bool = False

    def may_free(self, component: str) -> bool:
        """Return whether processes of a component may hold less after the restart."""
        if component == AUTOSCALER:
            return bool(self.delays or self.hinted_nodes)
        of_queue = self.nodes, self.late_attempts, self.gated_members
        return component == SCHEDULER and any((*of_queue, self.misplaced_pods, self.delays))

    def excuses(self, name: str, former: Collection[str], present: Collection[str]) -> bool:
        """Return whether a pod, a node or an autoscaler of pods changed for this."""
        kind, _, rest = name.partition(" ")
        if kind == "horizontalpodautoscaler":
            return rest in self.rivals
        if kind == "node":
            return (self.delays or rest in self.hinted_nodes) and is_scaled(former, present)
        if kind != "pod":
            return False
        had_no_node = f"{OF_NODE}{NONE}" in former
        is_moved = not (former and present) or had_no_node or not _GOING.isdisjoint(present)
        freed = {f"{OF_NODE}{node}" for node in self.nodes}
        return (
            (self.delays and is_moved)
            or (had_no_node and (rest in self.late_attempts or not freed.isdisjoint(present)))
            or (rest in self.nominees and _is_nomination_cleared(former, present))
            or (rest in self.misplaced_pods and FAILED in present)
        )


NOTHING: Final = Losses()


def is_scaled(former: Collection[str], present: Collection[str]) -> bool:
    """Return whether a node comes or goes, or has other taints of an autoscaler, and nothing else changed."""
    difference = {*former} ^ {*present}
    return not (former and present) or all(each.startswith(_TAINTS) for each in difference)


def _is_nomination_cleared(former: Collection[str], present: Collection[str]) -> bool:
    """Return whether a pod lost its nomination, and nothing else of it changed."""
    difference = {*former} ^ {*present}
    is_of_nomination = (each.startswith((NOMINATION, "nominatedNodeName")) for each in difference)
    return f"{NOMINATION}{NONE}" in present and all(is_of_nomination)


def has_unwritten_attempts(state: State) -> bool:
    """Return whether an attempt at a pod failed, as did the write of its status.

    The next attempt repeats the write, by the flush of unschedulable pods at the latest.
    """
    queue = state.debug.get((SCHEDULER, QUEUE)) or {"unschedulable": ()}
    written = {str(key_of(pod)) for pod in state.of(kinds.POD) if _shows_attempt(pod)}
    return any(entry["pod"] not in written for entry in queue["unschedulable"])


def losses_of(state: State) -> Losses:
    """Return the knowledge that a restart takes from the processes now."""
    queue = state.debug.get((SCHEDULER, QUEUE)) or {"gated": (), "nominated": {}, "unschedulable": ()}
    untried = {entry["pod"] for entry in queue["gated"]} | {*_heirs(state)}
    loop = state.debug.get((AUTOSCALER, LOOP)) or {}
    kept = {node: found for node, pods in queue["nominated"].items() if (found := untried.intersection(pods))}
    nominees = frozenset[str]().union(*kept.values())
    return Losses(
        nodes=frozenset(kept),
        nominees=nominees,
        late_attempts=frozenset(_late_attempts(queue, state)),
        gated_members=frozenset(_gated_members(queue, state)),
        misplaced_pods=frozenset(_misplaced_pods(state)),
        rivals=frozenset(_rivals(state)),
        hinted_nodes=frozenset(node for each in _HINTS for node in loop.get(each, ())),
        placed_pods=nominees if loop else frozenset(),
        delays=bool(loop and any(loop[each] for each in _WAITS)),
    )


def _heirs(state: State) -> Iterator[str]:
    """Yield the pods whose nomination may have been meant for a former pod of the name."""
    for pod in state.of(kinds.POD):
        if pod.metadata.uid in state.inherited_nominations:
            yield str(key_of(pod))


def _late_attempts(queue: Json, state: State) -> Iterator[str]:
    """Yield the waiting pods of groups that were popped for an attempt after all that may have made room.

    A change after that is an event in flight, and must requeue the pod when the attempt fails.
    """
    for entry, pod in entries_of_others(queue, state.of(kinds.POD)):
        is_of_group = pod.spec.HasField("schedulingGroup")
        if is_of_group and last_attempt_start(entry) > last_for(pod, state.room_changed):
            yield entry["pod"]


def _gated_members(queue: Json, state: State) -> Iterator[str]:
    """Yield the pods of groups that PreEnqueue holds back until their victims are deleted."""
    members = {str(key_of(pod)) for pod in state.of(kinds.POD) if pod.spec.HasField("schedulingGroup")}
    for entry in queue["gated"]:
        if entry["pod"] in members and _PREEMPTION in entry["plugins"]:
            yield entry["pod"]


def _misplaced_pods(state: State) -> Iterator[str]:
    """Yield the pods whose node has lost a label that they ask for."""
    nodes = {node.metadata.name: node for node in state.of(kinds.NODE)}
    for pod in state.of(kinds.POD):
        node = nodes.get(pod.spec.nodeName)
        if node is not None and not has_ended(pod) and not node_affinity.matches(pod, node):
            yield str(key_of(pod))


def _rivals(state: State) -> Iterator[str]:
    """Yield the autoscalers whose target's pods are those of others, too, which have all lost their target.

    The condition names the others. One that cannot read the scale of a target that exists has not lost it:
    its selector counts after a restart, too.
    """
    found = state.of(kinds.HORIZONTAL_POD_AUTOSCALER)
    without_target = {
        str(key_of(each))
        for each in found
        if target_of(state, each) is None and _refusal(each, "AbleToScale", "FailedGetScale")
    }
    for each in found:
        text, name = _refusal(each, "ScalingActive", "AmbiguousSelector"), str(key_of(each))
        others = set(text.rpartition("[")[2].rstrip("]").split()) - {name}
        if others and others <= without_target and name not in without_target:
            yield name


def _refusal(autoscaler: autoscaling.HorizontalPodAutoscaler, type_: str, reason: str) -> str:
    """Return the message of a condition of an autoscaler that is False for a reason, or ""."""
    condition = get_condition(autoscaler.status.conditions, type_)
    is_refused = condition is not None and (condition.status, condition.reason) == ("False", reason)
    return condition.message if condition is not None and is_refused else ""


def _shows_attempt(pod: core.Pod) -> bool:
    """Return whether a pod shows that it is bound, or that the scheduler has found no node for it.

    One whose gates were removed shows SchedulingGated until an attempt at it is written, and the autoscaler
    adds no node for it (cluster-autoscaler 1.36, ArrangePodsBySchedulability).
    """
    found = get_condition(pod.status.conditions, "PodScheduled")
    return found is not None and (found.status == "True" or found.reason == _UNSCHEDULABLE)
