"""Estimates with their 95% confidence intervals: shares of trials, and medians."""

from __future__ import annotations

import math
import statistics as standard
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_Z: Final = standard.NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with the ends of its 95% confidence interval, from so many trials."""

    value: float
    low: float
    high: float
    count: int

    def excludes(self, value: float) -> bool:
        """Return whether the interval excludes a value: the difference from it is more than noise."""
        return not self.low <= value <= self.high


def share(hits: int, count: int) -> Estimate:
    """Return the share of trials, with Wilson's interval: it holds for few hits, too."""
    part, z2 = hits / count, _Z**2
    middle = (part + z2 / (2 * count)) / (1 + z2 / count)
    half = _Z / (1 + z2 / count) * math.sqrt(part * (1 - part) / count + z2 / (4 * count**2))
    # Rounding must not take the ends off 0 and 1.
    low = 0.0 if hits == 0 else middle - half
    return Estimate(part, low, 1.0 if hits == count else middle + half, count)


def median(values: Sequence[float]) -> Estimate:
    """Return the median of at least one value, with the interval between two of the ordered values.

    The two are as near to the middle as 95% allow, whatever the distribution; of fewer than six values they
    are the lowest and the highest, which is less than 95%.
    """
    ordered, count = sorted(values), len(values)
    index, below = 0, 0.5**count
    while (below := below + math.comb(count, index + 1) / 2**count) <= 0.025:
        index += 1
    return Estimate(standard.median(ordered), ordered[index], ordered[-1 - index], count)
