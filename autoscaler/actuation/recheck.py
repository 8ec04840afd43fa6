"""Last check of a node before its deletion, on fresh objects. Pure.

Source: cluster-autoscaler 1.36, actuation's prepareDeletionCandidates (GetPodsToMove on a new snapshot).
"""

from __future__ import annotations

from dataclasses import dataclass

from nominee.autoscaler.options import Compat, Options
from nominee.autoscaler.planning.objects import pods
from nominee.autoscaler.planning.objects.observation import Observation
from nominee.autoscaler.planning.objects.pdb_tracker import RemainingPdbTracker
from nominee.autoscaler.planning.scale_down.drainability import DrainContext, pods_to_move
from nominee.machinery.api.objects import is_terminating, key_of
from nominee.machinery.api.pb import core


@dataclass(frozen=True, slots=True)
class Recheck:
    """The pods on the node; or in `error` why the node must not be deleted."""

    pods: tuple[core.Pod, ...] = ()
    error: str = ""


def recheck(options: Options, fresh: Observation, node: str, now: float, *, drain: bool) -> Recheck:
    """Check a node again; a node that is deleted without a drain must have no pods to move."""
    if not any(each.metadata.name == node for each in fresh.nodes):
        return Recheck(error=f'nodeInfos.Get for "{node}" returned error: node not found')
    if options.compat is Compat.FIXED and (nominated := _nominated_pod(options, fresh, node)):
        return Recheck(error=f'pod {nominated} is nominated to node "{node}"')
    context = DrainContext(
        options=options,
        budgets=RemainingPdbTracker(fresh.budgets if drain else ()),
        controllers=fresh.controllers if drain else None,
        now=now,
    )
    on_node = tuple(
        pod
        for pod in fresh.pods
        if pod.spec.nodeName == node
        and pod.status.phase not in ("Succeeded", "Failed")
        and not pods.is_expendable(pod, options.expendable_pods_priority_cutoff)
    )
    to_move = pods_to_move(context, on_node)
    if to_move.blocking is not None:
        key = key_of(to_move.blocking)
        return Recheck(error=f'GetPodsToMove for "{node}" returned error: {key}: {to_move.reason}')
    if not drain and to_move.pods:
        return Recheck(error=f'failed to delete empty node "{node}", new pods scheduled')
    return Recheck(on_node)


def _nominated_pod(options: Options, fresh: Observation, node: str) -> str:
    """H2: return a pod that was nominated to the node after the decision and is about to be bound, or ""."""
    cutoff = options.expendable_pods_priority_cutoff
    for pod in fresh.pods:
        if pod.spec.nodeName or pod.status.nominatedNodeName != node:
            continue
        if not is_terminating(pod) and not pods.is_expendable(pod, cutoff):
            return str(key_of(pod))
    return ""
