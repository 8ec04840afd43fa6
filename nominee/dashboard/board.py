"""The state that the dashboard shows, which tasks of one event loop change and read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio

from nominee.lab.timeline.document import TimeLine
from nominee.lab.timeline.json_text import compact
from nominee.lab.timeline.marks import Mark
from nominee.machinery.wire.values.scalars import Json

MARKS_MAX: Final = 10_000
"""The newest marks are kept: more would only make the axis grey."""
PARTS: Final = ("components", "queues", "autoscaler")
"""What is shown of the present only."""


@dataclass(slots=True)
class Board:
    """A time line with its marks, and the present state of the processes.

    `directory` is the state directory, or that of the history file: the logs of the processes are there.
    """

    timeline: TimeLine
    directory: Path
    read_only: bool = True
    marks: list[Mark] = field(default_factory=list)
    marks_count: int = 0
    """Marks so far."""
    resets: int = 0
    """How often the page must load the document again: revisions are missing."""
    clients: int = 0
    """Pages that follow."""
    parts: dict[str, str] = field(default_factory=lambda: dict.fromkeys(PARTS, "null"))
    """JSON by name of the part."""
    is_closed: bool = False
    """The dashboard ends: pages get no more changes."""
    change: anyio.Event = field(default_factory=anyio.Event)
    """The next change: take it before you look at the board, and wait for it afterwards."""

    @property
    def is_live(self) -> bool:
        """Return whether a running cluster is followed."""
        return self.timeline.source == "live"

    def add_marks(self, marks: list[Mark]) -> None:
        """Add marks, and tell the pages."""
        if marks:
            self.marks = [*self.marks, *marks][-MARKS_MAX:]
            self.marks_count += len(marks)
            self.notify()

    def marks_after(self, count: int) -> list[Mark]:
        """Return the marks behind the first `count` ones, as far as they are kept."""
        new = self.marks_count - count
        return self.marks[-new:] if new > 0 else []

    def set_part(self, name: str, value: Json) -> None:
        """Replace a part, and tell the pages if it differs."""
        text = compact(value)
        if self.parts[name] != text:
            self.parts[name] = text
            self.notify()

    def document(self) -> str:
        """Return the document of the page."""
        return self.timeline.text(marks=self.marks, read_only=self.read_only, parts=self.parts)

    def close(self) -> None:
        """Let the pages' streams end."""
        self.is_closed = True
        self.notify()

    def notify(self) -> None:
        """Wake the tasks that wait for a change."""
        self.change.set()
        self.change = anyio.Event()
