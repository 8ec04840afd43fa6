"""A rate limit with a burst, as client-go's flowcontrol has it. Pure: time is an argument."""

from __future__ import annotations


class TokenBucket:
    """Starts full. `take` may go into debt: who takes then waits as long as it says."""

    __slots__ = ("_burst", "_filled_at", "_per_second", "_tokens")

    def __init__(self, per_second: float, burst: int, now_seconds: float) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError("a token bucket needs a positive rate and burst")
        self._per_second = per_second
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at = now_seconds

    def take(self, now_seconds: float) -> float:
        """Take one token; how many seconds to wait before using it (0 at once)."""
        self._fill(now_seconds)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._per_second)

    def try_take(self, now_seconds: float) -> bool:
        """Take a token if there is one."""
        self._fill(now_seconds)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def _fill(self, now_seconds: float) -> None:
        passed = max(0.0, now_seconds - self._filled_at)
        self._filled_at = now_seconds
        self._tokens = min(float(self._burst), self._tokens + passed * self._per_second)
