"""The dashboard of 1,000 nodes and 10,000 pods in a browser: its server is fed with writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nominee.machinery.runtime.clock import SystemClock
from tests.lab.invariants.histories import History, node, pod
from tests.nominee.dashboard.fed import Fed, fed
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


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Fed]:
    """Serve the board of a large history."""
    with fed(_history(), tmp_path) as found:
        yield found


def test_a_write_is_shown_within_two_seconds(browser: Browser, server: Fed) -> None:
    clock = SystemClock()
    with open_tab(browser, server.url, ready=".badge.live") as shown:
        assert shown.page.locator(".nodes h2 .count").inner_text() == str(NODES)
        shown.page.evaluate(NOTE_MOMENTS)
        delays = []
        for number in range(WRITES):
            began = clock.now()
            delays.append(shown.time_of(server.write(pod(f"new-{number}"))) - began)
        assert shown.problems == []
    assert max(delays) < LIVE_SECONDS_MAX, delays


def test_a_burst_is_shown_to_its_end(browser: Browser, server: Fed) -> None:
    """Thousands of writes at once come in batches; none is lost, and the page does not load again."""
    with open_tab(browser, server.url, ready=".badge.live") as shown:
        documents = len([each for each in shown.requests if each.endswith("/api/timeline")])
        newest = [server.write(pod(f"burst-{number}")) for number in range(5000)][-1]
        shown.wait_for(newest)
        assert shown.page.locator(".totals li", has_text="pending").inner_text().split()[0] == "5000"
        assert len([each for each in shown.requests if each.endswith("/api/timeline")]) == documents
        assert shown.problems == []
