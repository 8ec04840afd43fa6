"""The running and the failed attempts of the provisioner `delayed.nominee.dev`. Pure."""

from __future__ import annotations

from collections.abc import Collection


class Attempts:
    """By the uid of a claim: when its attempt began, and how many attempts have failed.

    Times are in monotonic seconds. Entries are dropped with their claims (`keep_only`).
    """

    def __init__(self) -> None:
        self._began: dict[str, float] = {}
        self._failures: dict[str, int] = {}

    def is_empty(self) -> bool:
        return not self._began and not self._failures

    def is_running(self, uid: str) -> bool:
        return uid in self._began

    def begin(self, uid: str, now: float) -> None:
        self._began[uid] = now

    def remaining_seconds(self, uid: str, delay_seconds: float, now: float) -> float:
        """Return how long the running attempt takes from now on; 0 or less when it is over."""
        return self._began[uid] + delay_seconds - now

    def end(self, uid: str) -> None:
        """Drop the running attempt, if any."""
        self._began.pop(uid, None)

    def fail(self, uid: str, failures_max: int) -> int | None:
        """End the attempt as failed and return its number; None when enough attempts have failed."""
        number = self._failures.get(uid, 0) + 1
        if number > failures_max:
            return None
        self._failures[uid] = number
        self.end(uid)
        return number

    def forget(self, uid: str) -> None:
        """Drop the running attempt and the failures of a claim."""
        self.end(uid)
        self._failures.pop(uid, None)

    def keep_only(self, uids: Collection[str]) -> None:
        """Drop the entries of all other claims."""
        for uid in [uid for uid in {**self._began, **self._failures} if uid not in uids]:
            self.forget(uid)
