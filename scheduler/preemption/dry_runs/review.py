"""Pause a preemption until extenders have seen its candidates.

PostFilter is one synchronous call, and asking extenders takes I/O. So preemption that finds a review in the
cycle's state stops there when it has candidates; it is called again with the answer and goes on without a
second dry run. Without a review it does not stop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nominee.scheduler.framework.interface import Candidate, Code, Status

REVIEW_KEY: Final = "preemption/candidate-review"
PAUSED: Final = Status(Code.Error, ("extenders have not been asked about the candidates",))


class CandidateReview:
    """First empty, then asking, then answered."""

    __slots__ = ("_is_answered", "candidates", "failure", "statuses")

    def __init__(self) -> None:
        self.candidates: Sequence[Candidate] = ()
        self.statuses: Mapping[str, Status] = {}
        self.failure: Status | None = None
        self._is_answered = False

    @property
    def is_asking(self) -> bool:
        return bool(self.candidates) and not self._is_answered

    @property
    def is_answered(self) -> bool:
        return self._is_answered

    def ask(self, candidates: Sequence[Candidate], statuses: Mapping[str, Status]) -> None:
        """Set the candidates of the dry run; `statuses`: why other nodes are no candidates."""
        self.candidates = tuple(candidates)
        self.statuses = statuses

    def fail(self, status: Status) -> None:
        """Set the failure of an extender that must not be ignored."""
        self.failure = status

    def answer(self, candidates: Sequence[Candidate]) -> None:
        """Set the candidates that are left."""
        self.candidates = tuple(candidates)
        self._is_answered = True
