"""The changes that a restart of all processes makes in a cluster: none, if it was at rest. No I/O.

Whatever a process has forgotten, lost or kept by mistake, the one that starts in its place reads from the API
server: a pod whose wake-up was lost is tried, a taint that was left is removed, a deletion goes on. So what
changes then had to change before, whichever component it belongs to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from google.protobuf.message import Message

from nominee.lab.chaos.rest.nodes import AUTOSCALER, LOOP
from nominee.lab.chaos.rest.past.changes_of_room import last_for
from nominee.lab.chaos.rest.scheduling import QUEUE, SCHEDULER, entries_of_others
from nominee.lab.chaos.rest.shapes import facts_of, has_shape
from nominee.lab.chaos.rest.state import Finding, State, in_order, name_of
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import (
    controller_of,
    get_condition,
    has_ended,
    is_terminating,
    key_of,
    metadata_of,
)
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import parse_rfc3339
from nominee.machinery.wire.values.scalars import Json

Facts = Mapping[tuple[str, str], frozenset[str]]
"""The facts of each object, by its name and uid."""
_FORGOTTEN: Final = ("backedOffGroups", "heldByHints", "inCooldown", "pendingHints")
"""What an autoscaler keeps in memory, in its `/debug/loop`."""
_NODE, _NOWHERE = "node ", "none"
"""The begin of the fact that names the node of a pod, and its end for one that has none."""
_FOLLOWERS: Final = frozenset({
    *("deployment", "replicaset", "statefulset", "job", "poddisruptionbudget", "horizontalpodautoscaler"),
    *("persistentvolumeclaim", "persistentvolume", "resourceclaim"),
})  # fmt: skip
"""The kinds whose objects follow a pod that comes, goes or gets a node: owners, budgets and claims."""
_PREEMPTION: Final = "DefaultPreemption"
_NOT_NOMINATED: Final = "nomination none"
_OF_NOMINATION: Final = ("nomination ", "nominatedNodeName")
"""How the facts about a pod's nomination begin."""
_UNSCHEDULABLE: Final = "Unschedulable"
"""The reason of PodScheduled after an attempt that found no node."""
_RESTARTED: Final = "after all processes were restarted"


def facts(state: State) -> Facts:
    """Return the facts of the objects that should stay as they are.

    A pod that terminates, or tolerates a taint for a while, goes in its time, and so does one of a daemon set
    that failed; the mark of a victim that was not deleted is taken off after two minutes.
    """
    tainted = {node.metadata.name for node in state.of(kinds.NODE) if _evicts(node)}
    return {
        (name_of(each), metadata_of(each).uid): frozenset(_facts(each)) - _marks(each)
        for kind, objects in state.objects.items()
        if has_shape(kind)
        for each in objects
        if not (_goes(each, state.now) or _is_evicted_later(each, tainted) or _is_deleted_later(each))
    }


def _goes(obj: Message, now: float) -> bool:
    """Return whether an object is a pod whose grace period is not over."""
    deletion = metadata_of(obj).deletionTimestamp
    return isinstance(obj, core.Pod) and obj.metadata.HasField("deletionTimestamp") and deletion.seconds > now


def _evicts(node: core.Node) -> bool:
    return any(taint.effect == "NoExecute" for taint in node.spec.taints)


def _is_evicted_later(obj: Message, tainted: Collection[str]) -> bool:
    """Return whether an object is a pod that tolerates a taint of its node for some time."""
    return (
        isinstance(obj, core.Pod)
        and obj.spec.nodeName in tainted
        and any(each.HasField("tolerationSeconds") for each in obj.spec.tolerations)
    )


def _is_deleted_later(obj: Message) -> bool:
    """Return whether an object is a pod of a daemon set that failed: its back-off takes up to 15 minutes."""
    owner = controller_of(obj) if isinstance(obj, core.Pod) and has_ended(obj) else None
    return owner is not None and owner.kind == "DaemonSet"


def _marks(obj: Message) -> set[str]:
    """Return the fact DisruptionTarget of a pod that has not ended, and is not deleted.

    After two minutes it is False (kube-controller-manager 1.36, disruption, stalePodDisruptionTimeout).
    """
    if not isinstance(obj, core.Pod) or has_ended(obj) or is_terminating(obj):
        return set()
    return {fact for fact in facts_of(obj) if fact.startswith("DisruptionTarget=")}


@dataclass(frozen=True, kw_only=True)
class Losses:
    """The knowledge that a restart takes from processes, from those of upstream, too.

    `nodes`: where the scheduler keeps room for a gated pod that was nominated before; one that starts enters
    no nomination of a gated pod (kube-scheduler 1.36, moveToActiveQ). `gated_pods`: these pods; a scheduler
    that starts knows of no preemption, tries one that is gated since its own began, and clears a nomination
    that helps no more (preemption.go; kubernetes/kubernetes#141694). `unwritten`: pods whose attempt failed,
    as did the write of their status, which the next attempt repeats. `late_attempts`: pods of groups, tried
    after all that may have made room: the next attempt may take other nodes, and preempt pods there, as
    which nodes have victims depends on those of the first pods (pods come and go then). `gated_members`: pods
    of groups that wait for evictions, though none is under way at rest. `delays`: whether the
    autoscaler waits after a failure, a scale-up or a deletion, does not see an unwritten pod, takes one of
    the gated pods for placed by its nomination, has a node in mind for one that waits though it fits
    alone, as in a group, or keeps a node for which there are places in mind that not all of its pods fit
    (cluster-autoscaler 1.36, Hints): nodes may come and go, and pods with them.
    """

    nodes: frozenset[str] = frozenset()
    gated_pods: frozenset[str] = frozenset()
    unwritten: frozenset[str] = frozenset()
    late_attempts: frozenset[str] = frozenset()
    gated_members: frozenset[str] = frozenset()
    delays: bool = False

    def __bool__(self) -> bool:
        return any((self.nodes, self.unwritten, self.late_attempts, self.gated_members, self.delays))

    def excuses(self, name: str, former: Collection[str], present: Collection[str]) -> bool:
        """Return whether a pod or a node changed for this."""
        kind, _, rest = name.partition(" ")
        if kind not in ("pod", "node"):
            return False
        freed = {f"{_NODE}{node}" for node in self.nodes}
        is_placed = f"{_NODE}{_NOWHERE}" in former and (
            rest in self.late_attempts or not freed.isdisjoint(present)
        )
        is_cleared = rest in self.gated_pods and _is_nomination_cleared(former, present)
        return self.delays or rest in self.unwritten or is_placed or is_cleared


def _is_nomination_cleared(former: Collection[str], present: Collection[str]) -> bool:
    """Return whether a pod lost its nomination, and nothing else of it changed."""
    difference = {*former} ^ {*present}
    return _NOT_NOMINATED in present and all(each.startswith(_OF_NOMINATION) for each in difference)


NOTHING: Final = Losses()


def losses_of(state: State) -> Losses:
    """Return the knowledge that a restart takes from the processes now."""
    queue = state.debug.get((SCHEDULER, QUEUE)) or {"gated": (), "nominated": {}, "unschedulable": ()}
    gated = {entry["pod"] for entry in queue["gated"]}
    written = {str(key_of(pod)) for pod in state.of(kinds.POD) if _shows_attempt(pod)}
    unwritten = frozenset(entry["pod"] for entry in queue["unschedulable"] if entry["pod"] not in written)
    loop = state.debug.get((AUTOSCALER, LOOP)) or {}
    kept = {node: found for node, pods in queue["nominated"].items() if (found := gated.intersection(pods))}
    return Losses(
        nodes=frozenset(kept),
        gated_pods=frozenset().union(*kept.values()),
        unwritten=unwritten,
        late_attempts=frozenset(_late_attempts(queue, state)),
        gated_members=frozenset(_gated_members(queue, state)),
        delays=bool(loop and (any(loop.get(each) for each in _FORGOTTEN) or unwritten or kept)),
    )


def _late_attempts(queue: Json, state: State) -> Iterator[str]:
    """Yield the waiting pods of groups that were tried after all that may have made room."""
    for entry, pod in entries_of_others(queue, state.of(kinds.POD)):
        is_of_group = pod.spec.HasField("schedulingGroup")
        if is_of_group and parse_rfc3339(entry["since"]) > last_for(pod, state.room_changed):
            yield entry["pod"]


def _gated_members(queue: Json, state: State) -> Iterator[str]:
    """Yield the pods of groups that PreEnqueue holds back until their victims are deleted."""
    members = {str(key_of(pod)) for pod in state.of(kinds.POD) if pod.spec.HasField("schedulingGroup")}
    for entry in queue["gated"]:
        if entry["pod"] in members and _PREEMPTION in entry["plugins"]:
            yield entry["pod"]


def _shows_attempt(pod: core.Pod) -> bool:
    """Return whether a pod shows that it is bound, or that the scheduler has found no node for it.

    One whose gates were removed shows SchedulingGated until an attempt at it is written, and the autoscaler
    adds no node for it (cluster-autoscaler 1.36, ArrangePodsBySchedulability).
    """
    found = get_condition(pod.status.conditions, "PodScheduled")
    return found is not None and (found.status == "True" or found.reason == _UNSCHEDULABLE)


def changes(before: Facts, now: Facts, lost: Losses = NOTHING) -> Iterator[Finding]:
    """Find the objects that a restart has changed, created or removed."""
    released = _new_nodes(lost.gated_members, before, now)
    for name, node in sorted(released.items()):
        yield Finding(name, f"waits in the state Gated, and fits on {node}")  # as of a pod without a group
    if released or _has_victims(before, now, _new_nodes(lost.late_attempts, before, now).values()):
        # Others of the group follow, victims are created again, and nodes come for them.
        lost = replace(lost, delays=True)
    changed = {each for each in before.keys() | now.keys() if before.get(each) != now.get(each)}
    excused = {each for each in changed if lost.excuses(each[0], before.get(each, ()), now.get(each, ()))}
    if any(_moves(before.get(each), now.get(each)) for each in excused):
        excused |= {each for each in changed if each[0].partition(" ")[0] in _FOLLOWERS}
    for name, uid in sorted(changed - excused):
        former, present = before.get((name, uid)), now.get((name, uid))
        if former is None:
            yield Finding(name, f"is created {_RESTARTED}")
        elif present is None:
            yield Finding(name, f"is removed {_RESTARTED}")
        else:
            more, less = _named(present - former), _named(former - present)
            yield Finding(name, f"has {more} instead of {less} {_RESTARTED}")


def _moves(former: Collection[str] | None, present: Collection[str] | None) -> bool:
    """Return whether a pod or a node comes or goes, or a pod gets a node."""
    return former is None or present is None or _node_of(former) != _node_of(present)


def _new_nodes(pods: Collection[str], before: Facts, now: Facts) -> dict[str, str]:
    """Return the nodes that some of these pods have got, by the names of findings."""
    names = {f"pod {each}" for each in pods}
    both = (each for each in before.keys() & now.keys() if each[0] in names)
    found = {each[0]: _node_of(now[each]) for each in both if not _node_of(before[each])}
    return {name: node for name, node in found.items() if node}


def _has_victims(before: Facts, now: Facts, nodes: Collection[str]) -> bool:
    """Return whether pods of these nodes are gone."""
    return any(
        name.startswith("pod ") and _node_of(before[name, uid]) in nodes
        for name, uid in before.keys() - now.keys()
    )


def _node_of(facts: Collection[str]) -> str:
    """Return the node among the facts of a pod, or ""."""
    node = next((each.removeprefix(_NODE) for each in facts if each.startswith(_NODE)), "")
    return "" if node == _NOWHERE else node


def _named(values: Collection[str]) -> str:
    return in_order(values) if values else "nothing"


def _facts(obj: Message) -> Iterator[str]:
    yield from facts_of(obj)
    if isinstance(obj, core.Pod):
        yield f"{_NODE}{obj.spec.nodeName or _NOWHERE}"
        yield f"nomination {obj.status.nominatedNodeName or 'none'}"
