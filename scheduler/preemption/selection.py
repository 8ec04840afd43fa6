"""Choose a candidate. Source: kube-scheduler 1.36, pickOneNodeForPreemption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

from nominee.scheduler.framework.interface import Candidate
from nominee.scheduler.preemption.importance import earliest_start_of_top

# Added to every priority, so that more victims never weigh less than fewer.
_PRIORITY_OFFSET = 1 << 31
_PRIORITY = attrgetter("priority")


CRITERIA: Final = (
    "fewest PDB violations",
    "lowest highest-priority victim",
    "lowest sum of victim priorities",
    "fewest victims",
    "latest start of the most important victims",
)
"""The criteria in words, in the order of `criteria`."""


def criteria(now: float) -> tuple[Callable[[Candidate], float], ...]:
    """Return the criteria in order of weight; each is to be as small as possible."""
    return (
        lambda c: c.pdb_violations,
        lambda c: c.victims[0].priority,
        lambda c: sum(map(_PRIORITY, c.victims)) + _PRIORITY_OFFSET * len(c.victims),
        lambda c: len(c.victims),
        lambda c: -earliest_start_of_top(c.victims, now),
    )


def best_candidates(candidates: Sequence[Candidate], now: float) -> tuple[list[Candidate], str]:
    """Return all candidates that are equal by every criterion, and the words of the one that decided.

    Upstream takes any of them.
    """
    left, decisive = list(candidates), "the only candidate"
    for criterion, words in zip(criteria(now), CRITERIA, strict=True):
        if len(left) <= 1:
            return left, decisive
        worth = [criterion(candidate) for candidate in left]
        best = min(worth)
        if max(worth) > best:
            decisive = words
        left = [candidate for candidate, value in zip(left, worth, strict=True) if value == best]
    return left, decisive if len(left) == 1 else f"one of {len(left)} equal candidates"
