"""How the server's seats are divided among levels, and how idle ones are lent. Pure.

Source: KEP-1040 ("Dispatching", "Seat borrowing"); kube-apiserver 1.36, util/flowcontrol (apf_controller.go).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apiserver.flow_control.configuration import Level

ADJUST_SECONDS = 10.0
SMOOTHING = 0.977
"""Per adjustment: what was wanted is half forgotten after five minutes."""
_TARGET_MIN = 0.001
_STEPS_MAX = 200


@dataclass(frozen=True, slots=True)
class Bounds:
    """A level's seats: by its shares, at least (all that is lent is gone), at most."""

    nominal: int
    lower: int
    upper: int


def bounds(levels: Mapping[str, Level], seats: int) -> dict[str, Bounds]:
    """Each level's bounds of `seats` in all."""
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
    """How many seats a level has and wants: between `lower` and `upper`, best `target`."""

    lower: float
    upper: float
    target: float


def smoothed(before: float, mean: float, deviation: float) -> float:
    """The demand to plan for: rises at once, falls slowly."""
    envelope = mean + deviation
    return max(envelope, SMOOTHING * before + (1 - SMOOTHING) * envelope)


def divide(total: float, wishes: Sequence[Wish]) -> list[float]:
    """What each gets of `total`: the same fraction of its target, unless that is out of its bounds.

    The result adds up to `total` where the bounds allow that, otherwise to what they allow.
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
    """Each limited level's seats from now on; `demands` are (smoothed, highest in the last period).

    An exempt level takes what it wanted, and leaves the rest to the others.
    """
    left = float(sum(known.nominal for known in bounded.values()))
    limited: list[str] = []
    kept: list[int] = []
    for name, level in levels.items():
        known, highest = bounded[name], demands[name][1]
        if level.exempt:
            left -= max(known.lower, highest)
        else:
            # What was just in use is kept if it is the level's own.
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
