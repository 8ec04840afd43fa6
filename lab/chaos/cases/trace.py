"""The writes of a run in short, and the features by which an exploration finds something new. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class TracedWrite:
    """One write: seconds since the run began, revision, object, and the changes in words."""

    seconds: float
    revision: int
    subject: str
    changes: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the write without its time."""
        return f"{self.subject}: {', '.join(self.changes)}"

    @property
    def word(self) -> str:
        """Return the write without the object's name."""
        return f"{self.subject.partition(' ')[0]} {' '.join(self.changes)}"


def signature(writes: Sequence[TracedWrite]) -> frozenset[str]:
    """Return the features of a trace.

    Each write; two writes of one object that follow each other; two writes of different objects that follow
    each other.
    """
    found = {write.word for write in writes}
    last: dict[str, str] = {}
    for write in writes:
        if write.subject in last:
            found.add(f"{last[write.subject]} | {write.word}")
        last[write.subject] = write.word
    found |= {
        f"{first.word} > {second.word}"
        for first, second in pairwise(writes)
        if first.subject != second.subject
    }
    return frozenset(found)


def pass_features(hits: Mapping[str, Mapping[str, int]]) -> frozenset[str]:
    """Return the features of passed failpoints: which process passed which."""
    return frozenset(
        f"{process} {name}" for process, names in hits.items() for name, count in names.items() if count
    )
