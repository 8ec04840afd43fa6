"""The page of one file in a browser: each moment, links, keys, sizes, and that it opens no connection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nominee.lab.history import object_history
from nominee.lab.history.object_history import Entry, Selection, entries
from nominee.lab.timeline.page import document, html, page
from nominee.lab.timeline.report import Block, Item, Report
from nominee.lab.timeline.report import page as report_page
from tests.lab.invariants.histories import History, node, pod
from tests.lab.timeline.samples import sample
from tests.support.browser import PHONE, Tab, chromium, open_tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.processes, pytest.mark.slow]
STEP_SECONDS_MAX = 1.0


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a browser for the tests of this file."""
    with chromium() as found:
        yield found


def _history() -> list[Entry]:
    history = History().put(node("n1"), pod("a"), pod("b"), pod("a", nominated="n1"), pod("a", node="n1"))
    history.put(pod("a", node="n1", priority=1)).delete(pod("a"))
    return [each for each in entries(history.revisions, Selection()) if isinstance(each, Entry)]


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Iterator[Tab]:
    """Open the page of a short history, on which pod a is followed."""
    file = tmp_path / "page.html"
    file.write_text(page("A & B", _history(), ["Pod default/a"]))
    with open_tab(browser, file.as_uri()) as found:
        yield found
    assert found.problems == []
    assert found.requests[0] == file.as_uri()
    assert all(url.startswith("data:") for url in found.requests[1:])


def test_each_moment_shows_what_history_prints(shown: Tab) -> None:
    found = [each for each in _history() if each.revision.name == "a"]
    shown.page.locator(".lane").get_by_role("button", name="Pod default/a", exact=True).click()
    for entry in reversed(found):
        number = entry.revision.revision
        shown.page.locator(f"[data-revision='{number}'] button").click()
        shown.settle()
        assert shown.moment() == number
        at = shown.page.locator(".history li.at")
        first, *rest = object_history.lines([entry])
        assert at.locator("button").inner_text() == first
        lines = at.locator("pre").inner_text().splitlines() if at.locator("pre").count() else []
        is_deletion = entry.revision.value is None
        assert [line.strip() for line in lines] == ([] if is_deletion else [line.strip() for line in rest])
        state = shown.page.locator(".object .chip").first.inner_text()
        assert (state == "deleted") == is_deletion


def test_keys_step_by_revision_and_a_link_opens_the_moment(shown: Tab, browser: Browser) -> None:
    numbers = [each.revision.revision for each in _history()]
    assert shown.moment() == numbers[-1]
    for number in reversed(numbers[:-1]):
        shown.page.keyboard.press("ArrowLeft")
        shown.settle()
        assert shown.moment() == number
    shown.page.keyboard.press("ArrowRight")
    shown.settle()
    assert shown.moment() == numbers[1]
    shown.page.locator(".lane").get_by_role("button", name="Pod default/a", exact=True).click()
    shown.page.wait_for_url(f"**#revision={numbers[1]}&object=*")
    link = shown.page.url
    shown.page.keyboard.press("End")
    shown.settle()
    assert shown.moment() == numbers[-1]
    with open_tab(browser, link) as again:
        assert again.moment() == numbers[1]
        assert again.page.locator("#selected").inner_text() == "Pod default/a"


def test_a_point_of_a_lane_opens_the_changed_fields_and_the_object(shown: Tab) -> None:
    found = [each for each in _history() if each.revision.name == "a"]
    assert not shown.page.locator("#selected").count()
    for entry in reversed(found):
        shown.page.locator("#tab-marks").click()
        number = entry.revision.revision
        shown.page.locator(f".lane .point[title^='revision {number},']").click()
        shown.settle()
        assert shown.moment() == number
        assert shown.page.locator("#selected").inner_text() == "Pod default/a"
        if entry.revision.value is not None:
            changes = shown.page.locator(".object details", has_text="Changed fields").locator("pre")
            _, *expected = object_history.lines([entry])
            assert [line.strip() for line in changes.inner_text().splitlines()] == [
                line.strip() for line in expected
            ]
            assert shown.page.locator(".object details", has_text="The object after it").count() == 1


def test_nodes_are_reached_by_keys(shown: Tab) -> None:
    shown.page.locator(".pane").focus()
    shown.page.keyboard.press("ArrowRight")
    shown.page.keyboard.press("Enter")
    shown.settle()
    assert shown.page.locator("#selected").inner_text() == "Node n1"


def test_playing_ends_at_the_newest_revision(shown: Tab) -> None:
    shown.page.keyboard.press("Home")
    shown.page.select_option("select[title=Speed]", "100")
    shown.page.locator(".play").click()
    shown.wait_for(_history()[-1].revision.revision)
    shown.page.wait_for_selector(".play[aria-label^=Play]")


def test_the_scheme_is_chosen(shown: Tab) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = shown.page.evaluate(ground)
    shown.page.get_by_role("button", name="Colour scheme").click()
    shown.settle()
    assert shown.page.evaluate(ground) != light


@pytest.mark.parametrize("size", [PHONE, (1024, 768), (1280, 800)])
def test_nothing_is_scrolled_to_the_side(browser: Browser, tmp_path: Path, size: tuple[int, int]) -> None:
    file = tmp_path / "page.html"
    file.write_text(html(sample(12, 100, "page")))
    hidden = "(e => e.scrollWidth - e.clientWidth)(document.querySelector('.tabs'))"
    with open_tab(browser, file.as_uri(), size=size) as found:
        for tab in ("object", "queues", "autoscaler", "components", "marks"):
            found.page.locator(f"#tab-{tab}").click()
            found.settle()
            assert found.page.evaluate("document.documentElement.scrollWidth") <= size[0], tab
            assert found.page.evaluate(hidden) <= 0, tab
        assert found.problems == []


def test_an_item_of_a_report_opens_its_time_line(browser: Browser, tmp_path: Path) -> None:
    """A page of the commands: the dialog has the dashboard in a frame, and no text is an element."""
    file, hostile = tmp_path / "page.html", "</script><img src=x onerror=alert(1)>"
    document_of_run = document(hostile, _history(), ["Pod default/a"])
    items = [
        Item(
            name=hostile,
            outcome="failed",
            blocks=[Block("Steps", [f"1.0s ✗ {hostile}"], True)],
            timeline="run",
        ),
        Item(name="other", outcome="passed", commands={"Play it again": "nominee x"}),
    ]
    file.write_text(
        report_page(Report(title="A", summary="s", items=items, timelines={"run": document_of_run}))
    )
    with open_tab(browser, file.as_uri(), ready=".items") as found:
        page = found.page
        page.get_by_role("button", name=hostile).click()
        assert page.locator("dialog pre .bad").inner_text().strip() == f"1.0s ✗ {hostile}"
        moment = page.frame_locator("dialog iframe").locator("#revision")
        moment.wait_for()
        assert int(moment.inner_text()) == _history()[-1].revision.revision
        page.get_by_role("button", name="Close").click()
        assert not page.locator("dialog[open]").count()
        page.get_by_role("button", name="other").click()
        assert page.url == f"{file.as_uri()}#1"
        assert page.locator("dialog .command").inner_text() == "nominee x"
        assert page.locator("img, dialog iframe").count() == 0
        assert found.problems == []
        assert all(url.startswith(("data:", "blob:")) for url in found.requests[1:])
        with open_tab(browser, f"{file.as_uri()}#0", size=PHONE, ready="dialog[open] iframe") as again:
            assert again.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
            assert again.problems == []


@pytest.mark.slow
def test_a_thousand_nodes_are_quick(browser: Browser, tmp_path: Path) -> None:
    """A step back and a jump to the middle are each drawn at once, with 10,000 pods."""
    file = tmp_path / "page.html"
    file.write_text(html(sample(1000, 10_000, "page")))
    step = """async keys => { const begin = performance.now();
        for (const key of keys) {
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            await new Promise(requestAnimationFrame);
        }
        return (performance.now() - begin) / keys.length / 1000 }"""
    with open_tab(browser, file.as_uri()) as found:
        seconds = found.page.evaluate(step, ["ArrowLeft"] * 10 + ["Home", "End"])
        assert seconds < STEP_SECONDS_MAX
        assert found.problems == []
