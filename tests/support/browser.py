"""A headless Chromium for tests of pages; they are skipped where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
DESKTOP: Final = (1440, 900)
PHONE: Final = (390, 844)

NOTE_MOMENTS: Final = """() => {
    window.moments = {};
    const note = () => {
        const text = document.querySelector(".moment .quiet").textContent;
        window.moments[text] ??= Date.now() / 1000;
    };
    const parts = { subtree: true, childList: true, characterData: true };
    new MutationObserver(note).observe(document.getElementById("root"), parts);
}"""
"""Notes when each revision was the newest on the page, for `Opened.noted`."""
_NOTED: Final = "part => Object.entries(window.moments).find(([text]) => text.includes(part))?.[1]"


@dataclass(slots=True)
class Opened:
    """A page with what went wrong in it, and what it has asked for."""

    page: Page
    problems: list[str] = field(default_factory=list)
    """Errors of scripts, and what the console shows as an error, as a violated content policy."""
    requests: list[str] = field(default_factory=list)

    def moment(self) -> int:
        """Return the revision that is shown."""
        return int(self.page.locator("#revision").inner_text())

    def noted(self, part: str) -> float:
        """Wait until a revision is shown, and return the time of that; `part` is of the text about it."""
        limit = PATIENCE_SECONDS * 1000
        return float(self.page.wait_for_function(_NOTED, arg=part, timeout=limit).json_value())

    def drawn(self) -> None:
        """Wait until what was changed is rendered."""
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
def opened(
    browser: Browser,
    url: str,
    *,
    size: tuple[int, int] = DESKTOP,
    scheme: str = "light",
    ready: str = "#revision",
) -> Iterator[Opened]:
    """Open a URL in a context of its own, and wait for an element of the page."""
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": size[0], "height": size[1]}}
    context = browser.new_context(**options)
    try:
        page = context.new_page()
        found = Opened(page)
        page.on("pageerror", lambda error: found.problems.append(str(error)))
        page.on("console", lambda each: found.problems.append(each.text) if each.type == "error" else None)
        page.on("request", lambda each: found.requests.append(each.url))
        page.goto(url)
        page.wait_for_selector(ready)
        found.drawn()
        yield found
    finally:
        context.close()
