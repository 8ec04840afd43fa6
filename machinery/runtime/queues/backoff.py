"""Delays that grow exponentially with failures in a row. Pure; times are seconds."""

from __future__ import annotations

import random
from dataclasses import dataclass

_DOUBLINGS_MAX = 64
"""2.0**n overflows beyond n = 1023; every maximum is reached long before this."""


@dataclass(frozen=True, slots=True)
class ExponentialBackoff:
    """Delays that double with each failure in a row, up to a maximum."""

    initial_seconds: float
    max_seconds: float

    def delay(self, failures: int) -> float:
        """Return the seconds to wait after `failures` failures in a row: 0 after none."""
        if failures <= 0:
            return 0.0
        doublings = min(failures - 1, _DOUBLINGS_MAX)
        return float(min(self.initial_seconds * 2.0**doublings, self.max_seconds))


class Retries:
    """A count of failures in a row, and the delay before the next attempt."""

    __slots__ = ("_backoff", "_jitter", "_rng", "failures")

    def __init__(
        self, backoff: ExponentialBackoff, *, jitter: float = 0.0, rng: random.Random | None = None
    ) -> None:
        """Begin without failures. `jitter` 0.5 makes each delay up to half as long again; it needs `rng`."""
        if jitter and rng is None:
            raise ValueError("jitter needs a random generator")
        self._backoff = backoff
        self._jitter = jitter
        self._rng = rng
        self.failures = 0

    def next_delay(self) -> float:
        """Count a failure, and return the seconds to wait before the next attempt."""
        self.failures += 1
        delay = self._backoff.delay(self.failures)
        return delay * (1 + self._jitter * self._rng.random()) if self._rng is not None else delay

    def reset(self) -> None:
        """Begin again with the initial delay, after a success."""
        self.failures = 0
