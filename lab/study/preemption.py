"""Compute which evictions a resize needs, as one undisturbed preemption chooses them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations


def needed_victims(missing: int, candidates: Sequence[tuple[int, int]]) -> list[int]:
    """Return the indexes of the candidates to evict so that `missing` cpu becomes free.

    A candidate is (priority, cpu allocated in milli-units). All are taken off the node, then put back in the
    order of their priority as long as the resize still fits. Empty if even all of them are not enough.
    Source: kube-scheduler 1.36, DefaultPreemption's SelectVictimsOnNode, with the kubelet's count.
    """
    spare = sum(cpu for _, cpu in candidates) - missing
    if spare < 0 or missing <= 0:
        return []
    victims = []
    for index, (_, cpu) in sorted(enumerate(candidates), key=lambda one: -one[1][0]):
        if cpu <= spare:
            spare -= cpu
        else:
            victims.append(index)
    return sorted(victims)


def most_victims(missing: int, candidates: Sequence[tuple[int, int]]) -> int:
    """Return the largest number of victims that one undisturbed preemption may choose.

    Pods of equal priority are put back in the order of their start, which a trial does not determine.
    """
    return max(len(needed_victims(missing, order)) for order in permutations(candidates))
