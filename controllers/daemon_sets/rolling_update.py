"""The pods of an older revision that a rolling update replaces now. Pure.

Source: kube-controller-manager 1.36, pkg/controller/daemon (rollingUpdate, updatedDesiredNodeCounts).
"""

from __future__ import annotations

from collections.abc import Sequence

from nominee.controllers.daemon_sets.placement import Placement, Work, is_of, surge
from nominee.controllers.deployments.sizes import amount
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import core


def plan_update(at: Placement) -> Work:
    """Return the work of a rolling update: with a surge it creates first, else it deletes first."""
    strategy = at.daemon_set.spec.updateStrategy
    if strategy.type != "RollingUpdate":
        return Work()
    wanted = [node for node, verdict in at.verdicts.items() if verdict.runs]
    more = surge(at.daemon_set, len(wanted))
    if more:
        return _surge(at, more, len(wanted))
    fewer = amount(strategy.rollingUpdate.maxUnavailable, len(wanted), up=True)
    return _delete_first(at, wanted, fewer or min(1, len(wanted)))


def _new_and_old(at: Placement, node: str) -> tuple[Sequence[core.Pod], Sequence[core.Pod]]:
    pods = [pod for pod in at.pods.get(node, ()) if not is_terminating(pod)]
    return [pod for pod in pods if is_of(pod, at.digest)], [pod for pod in pods if not is_of(pod, at.digest)]


def _delete_first(at: Placement, wanted: Sequence[str], unavailable_max: int) -> Work:
    """Delete old pods that are not available, and as many others as may be missing."""
    work, candidates, unavailable = Work(), [], 0
    for node in dict.fromkeys([*wanted, *at.pods]):
        new, old = _new_and_old(at, node)
        if len(old) == 1 and not new:
            if at.available(old[0]):
                candidates.append(old[0])
                continue
            work.delete.append(old[0])
            unavailable += 1
        elif len(new) != 1 or old or not at.available(new[0]):
            unavailable += 1  # placing it creates or deletes pods there
    work.delete += candidates[: max(0, unavailable_max - unavailable)]
    return work


def _surge(at: Placement, surge_max: int, wanted: int) -> Work:
    """Create new pods beside old ones, and delete old ones beside available new ones.

    An old pod on a node that should no longer have one goes when enough others are available.
    """
    work, candidates = Work(), []
    leaving: list[core.Pod] = []
    surging = available = 0
    for node in at.pods:
        new, old = _new_and_old(at, node)
        if len(new) > 1 or len(old) > 1:
            surging += 1  # placing it deletes the surplus
            continue
        if old or new:
            available += at.available((old or new)[0])
        if not old:
            continue
        if new:
            if at.available(new[0]):
                work.delete.append(old[0])
            else:
                surging += 1
        elif node not in at.verdicts or not at.verdicts[node].runs:
            (leaving if at.available(old[0]) else work.delete).append(old[0])
        elif at.available(old[0]):
            candidates.append(node)
        else:
            work.create.append(node)
    work.create += candidates[: max(0, surge_max - surging)]
    work.delete += leaving[: max(0, available - wanted)]
    return work
