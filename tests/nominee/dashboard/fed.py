"""A dashboard without a cluster: its server is fed with the writes of a history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from anyio.from_thread import BlockingPortal, start_blocking_portal
from google.protobuf.message import Message

from nominee.dashboard.app import Dashboard
from nominee.dashboard.board import Board
from nominee.dashboard.guard import Guard, Secrets
from nominee.dashboard.serving import HOST, _listen
from nominee.lab.timeline.document import TimeLine
from nominee.lab.timeline.marks import Mark
from nominee.machinery.process.http.http_server import HttpServer
from nominee.machinery.wire.values.scalars import Json
from tests.lab.invariants.histories import History


@dataclass(slots=True)
class Fed:
    """A dashboard whose board a test changes."""

    board: Board
    history: History
    url: str
    server: HttpServer
    _portal: BlockingPortal

    def write(self, *objects: Message, deleted: bool = False) -> int:
        """Write objects, or delete them; return the newest revision."""
        if deleted:
            for each in objects:
                self.history.delete(each)
        else:
            self.history.put(*objects)
        return self.show(len(objects))

    def show(self, count: int) -> int:
        """Show the newest writes of the history."""

        async def add() -> None:
            for revision in self.history.revisions[-count:]:
                self.board.timeline.add(revision)
            self.board.notify()

        self._portal.call(add)
        return self.history.revisions[-1].revision

    def mark(self, *marks: Mark) -> None:
        """Add marks."""

        async def add() -> None:
            self.board.add_marks(list(marks))

        self._portal.call(add)

    def set_part(self, name: str, value: Json) -> None:
        """Replace a part of the document."""

        async def change() -> None:
            self.board.set_part(name, value)

        self._portal.call(change)

    def stop(self) -> None:
        """End the server."""
        self._portal.call(self.board.close)
        self._portal.call(self.server.stop)


@contextmanager
def fed(history: History, directory: Path, *, read_only: bool = True) -> Iterator[Fed]:
    """Serve the board of a history."""
    board = Board(TimeLine("fed", "live"), directory, read_only)
    for revision in history.revisions:
        board.timeline.add(revision)
    secrets, listener = Secrets("secret"), _listen(0)
    port = listener.getsockname()[1]
    application = Guard(Dashboard(board, secrets.action).application(), secrets, port)
    server = HttpServer(application, grace_seconds=1)

    async def serve() -> None:
        await server.serve(sockets=[listener])

    with start_blocking_portal() as portal:
        serving = portal.start_task_soon(serve)
        portal.call(server.opened.wait)
        found = Fed(board, history, f"http://{HOST}:{port}/?token={secrets.token}", server, portal)
        yield found
        found.stop()
        serving.result()
