"""The page of a small cluster in a browser, whose server is fed with writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.invariants.histories import History, node, pod
from tests.nominee.dashboard.fed import Fed, fed
from tests.support.browser import Tab, chromium, open_tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.processes
HIDE = """hidden => {
    Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
HEARD = """() => new Promise(done => {
    const events = new EventSource("api/events?after=0");
    events.addEventListener("revisions", () => { events.close(); setTimeout(done, 1000); });
})"""
"""Waits until another stream of the page has had the revisions, and a drawing would have followed them."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a browser for the tests of this file."""
    with chromium() as found:
        yield found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Fed]:
    """Serve the board of a cluster with a node and two pods."""
    history = History().put(node("n1"), pod("a", node="n1", phase="Running"), pod("b"))
    with fed(history, tmp_path) as found:
        yield found


@pytest.fixture
def shown(browser: Browser, server: Fed) -> Iterator[Tab]:
    """Open the page; the test fails if the console shows an error."""
    with open_tab(browser, server.url, ready=".badge.live") as found:
        yield found
    assert found.problems == []


def test_a_page_that_is_not_seen_draws_nothing_until_it_is_seen(server: Fed, shown: Tab) -> None:
    before = shown.moment()
    shown.page.evaluate(HIDE, True)
    newest = server.write(pod("c"))
    shown.page.evaluate(HEARD)
    assert shown.moment() == before
    shown.page.evaluate(HIDE, False)
    shown.wait_for(newest)
