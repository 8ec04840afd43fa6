"""The running and the failed attempts of the provisioner `delayed.nominee.dev`. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from nominee.machinery.api.objects import ObjectKey


@dataclass(slots=True)
class Attempt:
    """The attempts of a claim: when the running one began, in monotonic seconds, and how many have failed."""

    uid: str
    began: float | None = None
    failures: int = 0

    def remaining_seconds(self, delay_seconds: float, now: float) -> float:
        """Return how long the running attempt takes from now on; 0 or less when it is over."""
        return delay_seconds if self.began is None else self.began + delay_seconds - now

    def fail(self, failures_max: int) -> int | None:
        """End the attempt as failed and return its number; None when enough attempts have failed."""
        if self.failures >= failures_max:
            return None
        self.failures += 1
        self.began = None
        return self.failures


class Attempts:
    """By the name of a claim. A claim that was created again begins with none."""

    def __init__(self) -> None:
        self._by_claim: dict[ObjectKey, Attempt] = {}

    def __len__(self) -> int:
        return len(self._by_claim)

    def of(self, key: ObjectKey, uid: str) -> Attempt:
        """Return the attempts of a claim; those of a former claim of this name are dropped."""
        found = self._by_claim.get(key)
        if found is None or found.uid != uid:
            found = self._by_claim[key] = Attempt(uid)
        return found

    def end(self, key: ObjectKey, uid: str) -> None:
        """Drop the running attempt of a claim, if any; failed ones stay counted."""
        attempt = self.of(key, uid)
        attempt.began = None
        if not attempt.failures:
            self.forget(key)

    def forget(self, key: ObjectKey) -> None:
        """Drop the running attempt and the failures of a claim."""
        self._by_claim.pop(key, None)
