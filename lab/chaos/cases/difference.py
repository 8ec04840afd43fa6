"""The first difference of a run from the undisturbed one, and an object's writes around it. No I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from nominee.lab.chaos.cases.trace import TracedWrite
from nominee.lab.reports.records import Record

BEFORE, AFTER = 3, 5
"""How many writes of an object are shown before and after the moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Record):
    """The first write that is not as in the undisturbed run; the writes of each object are compared.

    `seconds` are since the scenario began. `here` is "" where the object's write is missing, and
    `plain` where the other run has no such write.
    """

    seconds: float
    subject: str
    here: str
    plain: str

    def describe(self) -> str:
        """Return the difference as a sentence."""
        here = self.here or "no further write"
        undisturbed = self.plain or "no such write"
        return f"{self.seconds:.3f} s, {self.subject}: {here}; undisturbed: {undisturbed}"


def first_difference(undisturbed: Sequence[TracedWrite], run: Sequence[TracedWrite]) -> Difference | None:
    """Return the first difference of a run, by its time; None if all objects have the same writes."""
    theirs = _by_object(undisturbed)
    counts: dict[str, int] = defaultdict(int)
    for write in run:
        others = theirs.get(write.subject, [])
        number = counts[write.subject]
        counts[write.subject] += 1
        other = others[number] if number < len(others) else None
        if other is None or other.changes != write.changes:
            return Difference(
                seconds=write.seconds,
                subject=write.subject,
                here=", ".join(write.changes),
                plain=", ".join(other.changes) if other is not None else "",
            )
    for other in undisturbed:
        if not counts[other.subject]:
            changes = ", ".join(other.changes)
            return Difference(seconds=other.seconds, subject=other.subject, here="", plain=changes)
        counts[other.subject] -= 1
    return None


def writes_around(run: Sequence[TracedWrite], subject: str, seconds: float) -> list[str]:
    """Return an object's writes around a moment, with their times and revisions."""
    own = _by_object(run).get(subject, [])
    before = [write for write in own if write.seconds < seconds][-BEFORE:]
    after = [write for write in own if write.seconds >= seconds][:AFTER]
    return [
        f"{write.seconds:.3f} s, revision {write.revision}: {', '.join(write.changes)}"
        for write in [*before, *after]
    ]


def _by_object(writes: Sequence[TracedWrite]) -> dict[str, list[TracedWrite]]:
    found: dict[str, list[TracedWrite]] = defaultdict(list)
    for write in writes:
        found[write.subject].append(write)
    return found
