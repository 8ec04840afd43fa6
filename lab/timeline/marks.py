"""The marks of a time line: starts, crashes, faults, preemptions, violations and steps. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from nominee.lab.history.invariants.checking.checker import Violation
from nominee.lab.history.process_logs import LogLine
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import EVENT
from nominee.machinery.wire.values.scalars import Json

Sort = Literal[
    "start", "crash", "kill", "restart", "fault", "failpoint", "preemption", "violation", "step", "log"
]

_READY: Final = "Ready"
_PREEMPTED: Final = "Preempted"
_OF_LINES: Final[Mapping[str, Sort]] = {
    "Step": "step",
    "Failpoint": "failpoint",
    "Failpoint set": "failpoint",
    "Fault set": "fault",
    "Faults removed": "fault",
    "Clock shifted": "fault",
}
"""The marks of log lines by their messages."""
_PROCESS: Final = "Process"
_STATES: Final[Mapping[str, Sort]] = {
    "backoff": "crash",
    "crashed": "crash",
    "down": "fault",
    "killed": "kill",
    "paused": "fault",
}
"""The marks of the supervisor's lines by the state of the process."""
MESSAGES: Final = (_READY, _PROCESS, *_OF_LINES)


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark; time in seconds since the epoch, `subject` is the object that it is about or ""."""

    time: float
    kind: Sort
    text: str
    subject: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return the mark as the document has it."""
        return {"t": self.time, "kind": self.kind, "text": self.text, "object": self.subject or None}


def of_lines(lines: Iterable[LogLine], started: set[str]) -> Iterator[Mark]:
    """Yield the marks of log lines, in the order of their times.

    `started` are the processes that were ready before, and those that are ready afterwards.
    """
    for line in lines:
        if line.message == _READY:
            yield Mark(line.time, "restart" if line.process in started else "start", f"{line.process}: ready")
            started.add(line.process)
        elif line.message == _PROCESS:
            state, name = line.fields.get("state", ""), line.fields.get("name", "")
            if state in _STATES:
                fate = f"died ({line.fields.get('exit', '')})" if _STATES[state] == "crash" else state
                yield Mark(line.time, _STATES[state], f"{name}: {fate}")
        elif line.message in _OF_LINES:
            sort = _OF_LINES[line.message]
            is_crash = (
                sort == "failpoint" and line.fields.get("action") == "crash" and line.message == "Failpoint"
            )
            text = line.fields.get("text", line.text) if sort == "step" else line.text
            yield Mark(line.time, "crash" if is_crash else sort, text)


def of_revision(revision: Revision) -> Mark | None:
    """Return the mark of an Event that says that a pod was preempted."""
    if revision.kind is not EVENT or revision.is_state or revision.previous_value is not None:
        return None
    event = revision.after(EVENT) if revision.is_readable else None
    if event is None or event.reason != _PREEMPTED:
        return None
    about = event.involvedObject
    name = f"{about.namespace}/{about.name}" if about.namespace else about.name
    return Mark(revision.time, "preemption", f"{about.kind} {name}: {event.message}", f"{about.kind} {name}")


def of_violations(violations: Iterable[Violation], times: Mapping[int, float]) -> Iterator[Mark]:
    """Yield the marks of broken invariants, at the time of their last revision; `times` by revision."""
    for violation in violations:
        shown = [times[number] for number in violation.revisions if number in times]
        subject = violation.objects[0] if violation.objects else ""
        yield Mark(
            max(shown, default=0.0), "violation", f"{violation.invariant}: {violation.message}", subject
        )
