"""Choose a candidate. Source: kube-scheduler 1.36, pickOneNodeForPreemption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

from nominee.scheduler.framework.interface import Candidate
from nominee.scheduler.preemption.importance import earliest_start_of_top

# Added to every priority, so that more victims never weigh less than fewer.
_PRIORITY_OFFSET = 1 << 31
_PRIORITY = attrgetter("priority")


def criteria(now: float) -> tuple[Callable[[Candidate], float], ...]:
    """Return the criteria in order of weight; each is to be as small as possible."""
    return (
        lambda c: c.pdb_violations,
        lambda c: c.victims[0].priority,
        lambda c: sum(map(_PRIORITY, c.victims)) + _PRIORITY_OFFSET * len(c.victims),
        lambda c: len(c.victims),
        lambda c: -earliest_start_of_top(c.victims, now),
    )


def best_candidates(candidates: Sequence[Candidate], now: float) -> list[Candidate]:
    """Return all candidates that are equal by every criterion; upstream takes any of them."""
    left = list(candidates)
    for criterion in criteria(now):
        if len(left) <= 1:
            break
        worth = [criterion(candidate) for candidate in left]
        best = min(worth)
        left = [candidate for candidate, value in zip(left, worth, strict=True) if value == best]
    return left
