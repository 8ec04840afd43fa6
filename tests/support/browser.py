"""A headless Chromium for tests of pages; where it is not installed, they are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import pytest

from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
DESKTOP: Final = (1440, 900)
PHONE: Final = (390, 844)

NOTE_MOMENTS: Final = """() => {
    window.moments = {};
    const note = () => {
        const revision = document.getElementById("revision").textContent;
        window.moments[revision] ??= Date.now() / 1000;
    };
    const parts = { subtree: true, childList: true, characterData: true };
    new MutationObserver(note).observe(document.getElementById("root"), parts);
}"""
"""Notes when each revision was the newest on the page, for `Tab.time_of`."""
_NOTED: Final = """revision => {
    const shown = Object.entries(window.moments).filter(([number]) => number >= revision);
    return shown.length ? Math.min(...shown.map(([, seconds]) => seconds)) : null;
}"""


@dataclass(slots=True)
class Tab:
    """A page with its problems and its requests."""

    page: Page
    problems: list[str] = field(default_factory=list)
    """Errors of scripts and of the console, such as a violated content policy."""
    requests: list[str] = field(default_factory=list)

    def moment(self) -> int:
        """Return the revision that is shown."""
        return int(self.page.locator("#revision").inner_text())

    def time_of(self, revision: int) -> float:
        """Wait until a revision is shown, or a newer one if several came at once; return the time of that."""
        limit = PATIENCE_SECONDS * 1000
        return float(self.page.wait_for_function(_NOTED, arg=revision, timeout=limit).json_value())

    def wait_for(self, revision: int) -> None:
        """Wait until a revision is shown."""
        shown = "revision => document.getElementById('revision').textContent === revision"
        self.page.wait_for_function(shown, arg=str(revision), timeout=PATIENCE_SECONDS * 1000)

    def settle(self) -> None:
        """Wait until all changes are rendered."""
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser; the calling test is skipped if it cannot be."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright, which drives the browser, is not installed"
    )
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip(f"there is no browser: none of {', '.join(_NAMES)} is on the path")
    # Chromium has no sandbox for root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def open_tab(
    browser: Browser,
    url: str,
    *,
    size: tuple[int, int] = DESKTOP,
    scheme: Literal["light", "dark"] = "light",
    ready: str = "#revision",
) -> Iterator[Tab]:
    """Open a URL in a context of its own, and wait for an element of the page."""
    viewport: ViewportSize = {"width": size[0], "height": size[1]}
    context = browser.new_context(color_scheme=scheme, viewport=viewport)
    try:
        page = context.new_page()
        found = Tab(page)
        page.on("pageerror", lambda error: found.problems.append(str(error)))
        page.on("console", lambda each: found.problems.append(each.text) if each.type == "error" else None)
        page.on("request", lambda each: found.requests.append(each.url))
        page.goto(url)
        page.wait_for_selector(ready)
        found.settle()
        yield found
    finally:
        context.close()
