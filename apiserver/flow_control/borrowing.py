"""Division of the server's seats among priority levels, and lending of idle seats. Pure.

Source: KEP-1040 ("Dispatching", "Seat borrowing"); kube-apiserver 1.36, util/flowcontrol (apf_controller.go).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nominee.apiserver.flow_control.configuration import Level

ADJUST_SECONDS = 10.0
SMOOTHING = 0.977
"""The weight of the past in each adjustment: a demand counts half after five minutes."""
_TARGET_MIN = 0.001
_STEPS_MAX = 200


@dataclass(frozen=True, slots=True)
class Bounds:
    """The seats of a level: nominal by its shares, the minimum with all lendable seats lent, the maximum."""

    nominal: int
    lower: int
    upper: int


def bounds(levels: Mapping[str, Level], seats: int) -> dict[str, Bounds]:
    """Return the bounds of each level for `seats` in all."""
    shares = sum(level.shares for level in levels.values())
    found = {}
    for name, level in levels.items():
        nominal = math.ceil(seats * level.shares / shares) if shares else 0
        lower = nominal - _percent(nominal, level.lendable_percent)
        upper = nominal + seats
        if level.borrowing_limit_percent is not None:
            upper = nominal + _percent(nominal, level.borrowing_limit_percent)
        found[name] = Bounds(nominal, lower, upper)
    return found


def _percent(nominal: int, percent: int) -> int:
    return math.floor(nominal * percent / 100 + 0.5)


@dataclass(frozen=True, slots=True)
class Wish:
    """The limits and the target of a level's seats: between `lower` and `upper`, ideally `target`."""

    lower: float
    upper: float
    target: float


def smooth(before: float, mean: float, deviation: float) -> float:
    """Return the demand to plan for: it rises at once and falls slowly."""
    envelope = mean + deviation
    return max(envelope, SMOOTHING * before + (1 - SMOOTHING) * envelope)


def divide(total: float, wishes: Sequence[Wish]) -> list[float]:
    """Divide `total` by the targets: each gets the same fraction of its target, within its bounds.

    The result adds up to `total` if the bounds allow it, otherwise to the nearest sum that they allow.
    """
    targets = [max(wish.target, _TARGET_MIN) for wish in wishes]

    def at(fraction: float) -> list[float]:
        return [
            max(wish.lower, min(wish.upper, fraction * target))
            for wish, target in zip(wishes, targets, strict=True)
        ]

    low = 0.0
    high = max((wish.upper / target for wish, target in zip(wishes, targets, strict=True)), default=0.0)
    # The sum only grows with the fraction.
    for _ in range(_STEPS_MAX):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if sum(at(middle)) < total:
            low = middle
        else:
            high = middle
    return at(high)


def current_limits(
    levels: Mapping[str, Level],
    bounded: Mapping[str, Bounds],
    demands: Mapping[str, tuple[float, int]],
) -> dict[str, int]:
    """Return the seats of each limited level; `demands` are (smoothed, highest in the last period).

    An exempt level takes what it demanded, and leaves the rest to the others.
    """
    left = float(sum(known.nominal for known in bounded.values()))
    limited: list[str] = []
    kept: list[int] = []
    for name, level in levels.items():
        known, highest = bounded[name], demands[name][1]
        if level.exempt:
            left -= max(known.lower, highest)
        else:
            # A level keeps the seats in use, up to its nominal number.
            limited.append(name)
            kept.append(max(known.lower, min(known.nominal, highest)))
    if sum(bounded[name].lower for name in limited) >= left:
        return {name: bounded[name].lower for name in limited}
    wishes = []
    for name, own in zip(limited, kept, strict=True):
        known = bounded[name]
        if sum(kept) >= left:
            wishes.append(Wish(known.lower, own, own))
        else:
            wishes.append(Wish(own, known.upper, max(demands[name][0], own)))
    return {name: round(share) for name, share in zip(limited, divide(left, wishes), strict=True)}
