"""How long messages take."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

_MEANS_SECONDS = (0.0002, 0.001, 0.005)
_LATE_SHARES = (0.0, 0.01, 0.05)
_SHORTEST_SECONDS = 0.00005


@dataclass(frozen=True, slots=True)
class Delays:
    """The distribution of delays: exponential, and now and then (`late_share`) up to `late_seconds` more."""

    mean_seconds: float = 0.001
    late_share: float = 0.01
    late_seconds: float = 0.05

    @classmethod
    def drawn(cls, rng: random.Random) -> Delays:
        """Draw a distribution, so that different seeds are quiet and busy networks."""
        return cls(rng.choice(_MEANS_SECONDS), rng.choice(_LATE_SHARES))

    def draw(self, rng: random.Random) -> float:
        """Draw the delay of one message, in seconds."""
        # What rng.expovariate computes.
        seconds = _SHORTEST_SECONDS - math.log(1.0 - rng.random()) / (1.0 / self.mean_seconds)
        if self.late_share and rng.random() < self.late_share:
            seconds += rng.random() * self.late_seconds
        return seconds
