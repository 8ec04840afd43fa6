"""The changes that a restart of all processes makes in a cluster: none, if it was at rest. No I/O.

Whatever a process has forgotten, lost or kept by mistake, the one that starts in its place reads from the API
server: a pod whose wake-up was lost is tried, a taint that was left is removed, a deletion goes on. So what
changes then had to change before, whichever component it belongs to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from google.protobuf.message import Message

from nominee.lab.chaos.rest.losses import FAILED, NOMINATION, NONE, NOTHING, OF_NODE, Losses, is_scaled
from nominee.lab.chaos.rest.scheduling import GATED, waits_though_it_fits
from nominee.lab.chaos.rest.shapes import facts_of, has_shape
from nominee.lab.chaos.rest.state import Finding, State, in_order, name_of
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import (
    condition_is,
    controller_of,
    has_ended,
    is_terminating,
    metadata_of,
)
from nominee.machinery.api.pb import core

Facts = Mapping[tuple[str, str], frozenset[str]]
"""The facts of each object, by its name and uid."""
_FOLLOWERS: Final = frozenset({
    *("deployment", "replicaset", "statefulset", "job", "poddisruptionbudget", "horizontalpodautoscaler"),
    *("persistentvolumeclaim", "persistentvolume", "resourceclaim"),
})  # fmt: skip
"""The kinds whose objects follow a pod that comes, goes or gets a node: owners, budgets and claims."""
_SCALES: Final = "ScalingActive=True"
"""The fact of an autoscaler of pods that scales its target."""
_UNREADY_TAINTS: Final = frozenset(
    f"taint node.kubernetes.io/{name}:NoExecute" for name in ("not-ready", "unreachable")
)
_RESTARTED: Final = "after all processes were restarted"


def facts(state: State) -> Facts:
    """Return the facts of the objects that should stay as they are.

    A pod that terminates, or tolerates a taint for a while, goes in its time, and so does one of a daemon set
    that failed; the mark of a victim that was not deleted is taken off after two minutes.

    A node controller that starts takes the taints NoExecute off all nodes, and adds them again one by one, or
    not at all where most nodes of a zone are not ready (kube-controller-manager 1.36, markNodeAsReachable and
    handleDisruption): those of several nodes that are not ready do not count, and neither do the pods that
    go with them.
    """
    unready = {
        node.metadata.name
        for node in state.of(kinds.NODE)
        if not condition_is(node.status.conditions, "Ready")
    }
    evicting = unready | {node.metadata.name for node in state.of(kinds.NODE) if _evicts(node)}
    return {
        (name_of(each), metadata_of(each).uid): frozenset(_facts(each))
        - _marks(each)
        - _late_taints(each, unready)
        for kind, objects in state.objects.items()
        if has_shape(kind)
        for each in objects
        if not (_goes(each, state.now) or _is_evicted_later(each, evicting) or _is_deleted_later(each))
    }


def _late_taints(obj: Message, unready: Collection[str]) -> frozenset[str]:
    """Return the facts of the taints that a node need not have while several nodes are not ready."""
    is_late = isinstance(obj, core.Node) and obj.metadata.name in unready and len(unready) > 1
    return _UNREADY_TAINTS if is_late else frozenset()


def _goes(obj: Message, now: float) -> bool:
    """Return whether an object is a pod whose grace period is not over."""
    deletion = metadata_of(obj).deletionTimestamp
    return isinstance(obj, core.Pod) and obj.metadata.HasField("deletionTimestamp") and deletion.seconds > now


def _evicts(node: core.Node) -> bool:
    return any(taint.effect == "NoExecute" for taint in node.spec.taints)


def _is_evicted_later(obj: Message, evicting: Collection[str]) -> bool:
    """Return whether an object is a pod that tolerates for some time the taint that its node has or gets."""
    return (
        isinstance(obj, core.Pod)
        and obj.spec.nodeName in evicting
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


def with_cleared(lost: Losses, before: Facts, cleared: Collection[str]) -> Losses:
    """Return the losses after the nominations of the pods with these uids were cleared.

    An autoscaler adds nodes for those that it took for placed.
    """
    names = {f"pod {each}" for each in lost.placed_pods}
    has_no_place = any(name in names and uid in cleared for name, uid in before)
    return replace(lost, delays=lost.delays or has_no_place)


def changes(
    before: Facts, now: Facts, lost: Losses = NOTHING, failed: Collection[str] = ()
) -> Iterator[Finding]:
    """Find the objects that a restart has changed, created or removed.

    `failed` are the uids of the pods that have failed meanwhile.
    """
    released = _new_nodes(lost.gated_members, before, now)
    for name, node in sorted(released.items()):
        yield waits_though_it_fits(name, GATED, [node])
    taken = {*_new_nodes(lost.late_attempts, before, now).values(), *_taken(lost, before, now)}
    is_refused = _has_failed(lost.misplaced_pods, before, now, failed)
    is_scaled_in = _has_scaled(lost.hinted_nodes, before, now)
    has_started = _has_started(lost.rivals, before, now)
    if released or _has_victims(before, now, taken) or is_refused or is_scaled_in or has_started:
        # Others of the group follow, victims and refused pods are created again, and autoscalers of pods
        # scale; nodes come for them.
        lost = replace(lost, delays=True)
    changed = {each for each in before.keys() | now.keys() if before.get(each) != now.get(each)}
    excused = {each for each in changed if lost.excuses(each[0], before.get(each, ()), now.get(each, ()))}
    moved = {
        _namespace(each[0])
        for each in excused
        if each[0].startswith("pod ") and _moves(before.get(each), now.get(each))
    }
    excused |= {each for each in changed if moved and _follows(each[0], before.get(each, ()), moved)}
    for name, uid in sorted(changed - excused):
        former, present = before.get((name, uid)), now.get((name, uid))
        if former is None:
            yield Finding(name, f"is created {_RESTARTED}")
        elif present is None:
            yield Finding(name, f"is removed {_RESTARTED}")
        else:
            more, less = _named(present - former), _named(former - present)
            yield Finding(name, f"has {more} instead of {less} {_RESTARTED}")


def _follows(name: str, former: Collection[str], namespaces: Collection[str]) -> bool:
    """Return whether an object may follow pods of these namespaces; one that is deleted follows none."""
    kind = name.partition(" ")[0]
    is_near = kind == "persistentvolume" or _namespace(name) in namespaces
    return kind in _FOLLOWERS and is_near and "deletionTimestamp" not in former


def _namespace(name: str) -> str:
    return name.partition(" ")[2].partition("/")[0]


def _has_scaled(nodes: Collection[str], before: Facts, now: Facts) -> bool:
    """Return whether an autoscaler has removed one of these nodes, or begins to."""
    named = (each for each in before if each[0].removeprefix("node ") in nodes)
    changed = ((before[each], now.get(each, ())) for each in named if before[each] != now.get(each))
    return any(is_scaled(former, present) for former, present in changed)


def _moves(former: Collection[str] | None, present: Collection[str] | None) -> bool:
    """Return whether a pod comes or goes, or gets a node."""
    return former is None or present is None or _node_of(former) != _node_of(present)


def _new_nodes(pods: Collection[str], before: Facts, now: Facts) -> dict[str, str]:
    """Return the nodes that some of these pods have got, by the names of findings."""
    names = {f"pod {each}" for each in pods}
    both = (each for each in before.keys() & now.keys() if each[0] in names)
    found = {each[0]: _node_of(now[each]) for each in both if not _node_of(before[each])}
    return {name: node for name, node in found.items() if node}


def _taken(lost: Losses, before: Facts, now: Facts) -> Iterator[str]:
    """Yield the nodes without room for a nominee now that another pod which waited has got, or may get.

    The room that was kept for the nominee and that of victims together may suffice for the other one.
    """
    nominees = {f"pod {each}" for each in lost.nominees}
    for each in before.keys() & now.keys():
        if f"{OF_NODE}{NONE}" in before[each] and each[0] not in nominees:
            more = now[each] - before[each]
            yield from (node for node in lost.nodes if more & {f"{OF_NODE}{node}", f"{NOMINATION}{node}"})


def _has_failed(pods: Collection[str], before: Facts, now: Facts, failed: Collection[str]) -> bool:
    """Return whether some of these pods have failed meanwhile.

    Some controllers delete a pod that has failed; one that is gone and has not failed has another reason.
    """
    former = (each for each in before if each[0].removeprefix("pod ") in pods)
    return any(
        FAILED not in before[each] and (FAILED in now.get(each, ()) or each[1] in failed) for each in former
    )


def _has_started(rivals: Collection[str], before: Facts, now: Facts) -> bool:
    """Return whether one of these autoscalers of pods scales now."""
    names = {f"horizontalpodautoscaler {each}" for each in rivals}
    return any(each[0] in names and _SCALES in now.get(each, ()) for each in before)


def _has_victims(before: Facts, now: Facts, nodes: Collection[str]) -> bool:
    """Return whether pods of these nodes are gone."""
    return any(
        name.startswith("pod ") and _node_of(before[name, uid]) in nodes
        for name, uid in before.keys() - now.keys()
    )


def _node_of(facts: Collection[str]) -> str:
    """Return the node among the facts of a pod, or ""."""
    node = next((each.removeprefix(OF_NODE) for each in facts if each.startswith(OF_NODE)), "")
    return "" if node == NONE else node


def _named(values: Collection[str]) -> str:
    return in_order(values) if values else "nothing"


def _facts(obj: Message) -> Iterator[str]:
    yield from facts_of(obj)
    if isinstance(obj, core.Pod):
        yield f"{OF_NODE}{obj.spec.nodeName or NONE}"
        yield f"{NOMINATION}{obj.status.nominatedNodeName or NONE}"
