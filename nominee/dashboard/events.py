"""The changes of a board as server-sent events, at the pace of one page.

Nothing is queued for a page: it has a place in the time line. A page that falls behind too far, or behind
the revisions that are kept, has to load the document again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Final

import anyio

from nominee.dashboard.board import PARTS, Board
from nominee.lab.timeline.json_text import compact

BATCH_SECONDS: Final = 0.1
"""Between two batches: a page draws a few times a second only."""
BATCH_MAX: Final = 2000
"""Revisions in a batch."""
LAG_MAX: Final = 20_000
"""Revisions by which a page may be behind: to load the document is quicker than more."""
PING_SECONDS: Final = 10.0
CLIENTS_MAX: Final = 32
MARKS_AGAIN: Final = 20
"""The newest marks are sent again: some may have come after the document."""


@dataclass(slots=True)
class Follower:
    """A page that has the document up to a revision."""

    board: Board
    number: int
    """The newest item that the page has."""
    marks: int
    resets: int
    parts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def after(cls, board: Board, revision: int) -> Follower:
        """Return the follower of a page with the document up to `revision`."""
        marks, timeline = max(board.marks_count - MARKS_AGAIN, 0), board.timeline
        # A page that was not connected may have missed a gap, or follow an etcd that has begun again.
        gaps = [timeline.coverage.begin, *(end for _, end in timeline.coverage.gaps)]
        is_lost = revision > timeline.end or revision < max(gaps)
        return cls(board, timeline.number_of(revision), marks, board.resets - is_lost)

    def changes(self) -> Iterator[str]:
        """Yield the changes since the last call; after `reset` there are no more."""
        board = self.board
        items = board.timeline.after(self.number)
        if self.resets != board.resets or items is None or len(items) > LAG_MAX:
            yield _event("reset", "{}")
            return
        for first in range(0, len(items), BATCH_MAX):
            batch = items[first : first + BATCH_MAX]
            self.number = batch[-1].number
            texts = [item.text for item in batch if item.text]
            if texts:
                yield _event("revisions", f"[{','.join(texts)}]", batch[-1].revision.revision)
        new_marks = board.marks_after(self.marks)
        if new_marks:
            self.marks = board.marks_count
            yield _event("marks", compact([mark.as_json() for mark in new_marks]))
        for name in PARTS:
            if self.parts.get(name) != board.parts[name]:
                self.parts[name] = board.parts[name]
                yield _event(name, board.parts[name])


async def stream(follower: Follower) -> AsyncIterator[str]:
    """Yield events until the page has gone or must load the document again, or the dashboard ends."""
    board = follower.board
    board.clients += 1
    board.notify()
    try:
        yield "retry: 1000\n\n"
        while not board.is_closed:
            change = board.change
            for text in follower.changes():
                yield text
                if text.startswith("event: reset"):
                    return
            with anyio.move_on_after(PING_SECONDS) as silence:
                await change.wait()
            if silence.cancelled_caught:
                yield ": still here\n\n"
            await anyio.sleep(BATCH_SECONDS)
    finally:
        board.clients -= 1


def _event(name: str, data: str, revision: int = 0) -> str:
    number = f"id: {revision}\n" if revision else ""
    return f"event: {name}\n{number}data: {data}\n\n"
