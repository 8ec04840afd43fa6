"""The dashboard of 1,000 nodes and 10,000 pods in a browser: its server is fed with writes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from nominee.dashboard.app import Dashboard
from nominee.dashboard.board import Board
from nominee.dashboard.guard import Guard, Secrets
from nominee.dashboard.serving import _listen
from nominee.lab.timeline.document import TimeLine
from nominee.machinery.process.http.http_server import HttpServer
from nominee.machinery.runtime.clock import SystemClock
from tests.lab.invariants.histories import History, node, pod
from tests.support.browser import NOTE_MOMENTS, chromium, open_tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.processes, pytest.mark.slow]
LIVE_SECONDS_MAX = 2.0
"""With so many objects a write is shown within two seconds."""
NODES, PODS, WRITES = 1000, 10_000, 9


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a browser for the tests of this file."""
    with chromium() as found:
        yield found


def _history() -> History:
    history = History()
    for number in range(NODES):
        history.put(node(f"node-{number}"))
    for number in range(PODS):
        history.put(pod(f"p-{number}", cpu="300m", node=f"node-{number % NODES}", phase="Running"))
    return history


class Fed:
    """A dashboard whose board a test changes."""

    def __init__(self, board: Board, portal: BlockingPortal) -> None:
        self.board, self._portal = board, portal
        self.secrets = Secrets("secret")
        self._listener = _listen(0)
        self.port = self._listener.getsockname()[1]
        application = Dashboard(board, self.secrets.action).application()
        self._server = HttpServer(Guard(application, self.secrets, self.port), grace_seconds=1)

    async def serve(self) -> None:
        """Serve until stopped."""
        await self._server.serve(sockets=[self._listener])

    async def opened(self) -> None:
        """Wait until it serves."""
        await self._server.opened.wait()

    def stop(self) -> None:
        """End it."""
        self._portal.call(self._server.stop)

    def write(self, history: History) -> None:
        """Show the newest write of a history."""

        async def add() -> None:
            self.board.timeline.add(history.revisions[-1])
            self.board.notify()

        self._portal.call(add)


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[tuple[Fed, History]]:
    """Serve the board of a history."""
    history = _history()
    board = Board(TimeLine("many", "live"), tmp_path)
    for revision in history.revisions:
        board.timeline.add(revision)
    with start_blocking_portal() as portal:
        found = Fed(board, portal)
        serving = portal.start_task_soon(found.serve)
        portal.call(found.opened)
        yield found, history
        found.stop()
        serving.result()


def test_a_write_is_shown_within_two_seconds(browser: Browser, fed: tuple[Fed, History]) -> None:
    server, history = fed
    clock = SystemClock()
    url = f"http://127.0.0.1:{server.port}/?token={server.secrets.token}"
    with open_tab(browser, url, ready=".badge.live") as shown:
        assert shown.page.locator(".nodes h2 .count").inner_text() == str(NODES)
        shown.page.evaluate(NOTE_MOMENTS)
        delays = []
        for number in range(WRITES):
            history.put(pod(f"new-{number}"))
            began = clock.now()
            server.write(history)
            delays.append(shown.time_of(f"default/new-{number}:") - began)
        assert shown.problems == []
    assert statistics.median(delays) < LIVE_SECONDS_MAX, delays


def test_a_burst_is_shown_to_its_end(browser: Browser, fed: tuple[Fed, History]) -> None:
    """Thousands of writes at once come in batches; none is lost, and the page does not load again."""
    server, history = fed
    url = f"http://127.0.0.1:{server.port}/?token={server.secrets.token}"
    with open_tab(browser, url, ready=".badge.live") as shown:
        documents = len([each for each in shown.requests if each.endswith("/api/timeline")])
        for number in range(5000):
            history.put(pod(f"burst-{number}"))
            server.write(history)
        newest = history.revisions[-1].revision
        shown.wait_for(newest)
        assert shown.page.locator(".totals li", has_text="pending").inner_text().split()[0] == "5000"
        assert len([each for each in shown.requests if each.endswith("/api/timeline")]) == documents
        assert shown.problems == []
