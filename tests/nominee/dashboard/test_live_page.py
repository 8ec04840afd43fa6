"""The page of a small cluster in a browser, whose server is fed with writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nominee.lab.timeline.marks import Mark
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import History, node, pod
from tests.nominee.dashboard.fed import Fed, fed
from tests.support.browser import Tab, chromium, open_tab
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.processes, pytest.mark.slow]
PATIENCE_MS = PATIENCE_SECONDS * 1000
HIDE = """hidden => {
    Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
HEARD = """() => new Promise(done => {
    const events = new EventSource("api/events?after=0");
    events.addEventListener("revisions", () => { events.close(); setTimeout(done, 1000); });
})"""
"""Waits until another stream of the page has had the revisions, and a drawing would have followed them."""
LINES = """word => {
    const texts = document.createTreeWalker(document.querySelector(".object"), NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const at = texts.currentNode.data.indexOf(word);
        if (at < 0 || !texts.currentNode.parentElement.closest("dd")) continue;
        const range = document.createRange();
        range.setStart(texts.currentNode, at);
        range.setEnd(texts.currentNode, at + word.length);
        return range.getClientRects().length;
    }
}"""
"""Returns over how many lines a word is broken."""
UID = "0d3f8f4e-7a52-4a8c-9e57-2f6a3a3c8f10"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a browser for the tests of this file."""
    with chromium() as found:
        yield found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Fed]:
    """Serve the board of a cluster with a node and two pods."""
    history = History().put(node("n1"), pod("a", node="n1", phase="Running"), pod("b"))
    with fed(history, tmp_path, read_only=False) as found:
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


def _hint(shown: Tab) -> str:
    return shown.page.locator(".moment .quiet").inner_text()


def _point(shown: Tab) -> None:
    """Move the pointer to the middle of the axis; the caption is about the revision there."""
    own = _hint(shown)
    area = shown.page.locator(".plot .u-over").bounding_box()
    assert area is not None
    shown.page.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] - 5)
    shown.page.wait_for_function(
        "own => document.querySelector('.moment .quiet').textContent !== own", arg=own, timeout=PATIENCE_MS
    )
    assert _hint(shown).startswith("revision ")


def _own(shown: Tab) -> None:
    """Wait until the caption is about the revision that is shown."""
    shown.page.wait_for_function(
        "() => !document.querySelector('.moment .quiet').textContent.startsWith('revision ')",
        timeout=PATIENCE_MS,
    )


def test_the_caption_of_the_axis_ends_with_the_pointer_a_key_or_a_write(server: Fed, shown: Tab) -> None:
    own = _hint(shown)
    _point(shown)
    shown.page.mouse.move(5, 5)
    _own(shown)
    assert _hint(shown) == own
    _point(shown)
    shown.page.keyboard.press("ArrowLeft")
    _own(shown)
    shown.page.keyboard.press("End")
    shown.page.mouse.move(5, 5)
    _own(shown)
    _point(shown)
    server.write(pod("c"))
    _own(shown)
    assert _hint(shown).startswith("Pod default/c: ")


def _owned(name: str, owner: str) -> core.Pod:
    found = pod(name, node="n1", phase="Running")
    found.metadata.ownerReferences.add(kind="ReplicaSet", name=owner, controller=True)
    return found


def test_only_more_owners_than_colours_share_them_and_none_looks_like_a_pod_that_leaves(
    server: Fed, shown: Tab
) -> None:
    legend, dotted = shown.page.locator(".legend"), shown.page.locator(".legend .dotted")
    for number in range(12):  # one after the other, as new ReplicaSets of a Deployment
        server.write(_owned(f"p-{number}", f"web-{number}"))
        if number >= 7:
            server.write(_owned(f"p-{number - 7}", ""), deleted=True)
    shown.wait_for(server.history.revisions[-1].revision)
    assert dotted.count() == 0
    newest = server.write(_owned("x", "more"))
    shown.wait_for(newest)
    assert dotted.count() == 1
    images = [
        legend.locator(name).first.evaluate("each => getComputedStyle(each).backgroundImage")
        for name in (".dotted", ".leaving")
    ]
    assert ["radial" in images[0], "linear" in images[1]] == [True, True]
    server.write(_owned("p-8", ""), deleted=True)
    dotted.wait_for(state="detached", timeout=PATIENCE_MS)


def _select(shown: Tab, name: str) -> None:
    shown.page.fill("#find", name)
    shown.page.locator("#selected", has_text=name).wait_for(timeout=PATIENCE_MS)


@pytest.mark.parametrize(("name", "obj"), [("Pod default/a", pod("a")), ("Node n1", node("n1"))])
def test_actions_are_for_objects_that_exist_now(
    server: Fed, shown: Tab, name: str, obj: core.Pod | core.Node
) -> None:
    buttons = shown.page.locator(".object > .actions button")
    _select(shown, name)
    buttons.nth(1).wait_for(timeout=PATIENCE_MS)
    shown.page.locator("h1").click()
    shown.page.keyboard.press("ArrowLeft")
    past = shown.page.locator(".object .past")
    past.wait_for()
    assert buttons.count() == 0
    past.locator("button").click()
    buttons.first.wait_for()
    server.write(obj, deleted=True)
    shown.page.locator(".chip:text('deleted')").wait_for(timeout=PATIENCE_MS)
    assert buttons.count() == 0
    assert past.count() == 0
    shown.page.locator("h1").click()
    shown.page.keyboard.press("ArrowLeft")  # it exists at the revision before
    past.wait_for()


def test_what_an_action_printed_stays_when_its_object_is_gone(server: Fed, shown: Tab) -> None:
    _select(shown, "Pod default/a")
    shown.page.locator(".object > .actions").get_by_role("button", name="Delete", exact=True).click()
    shown.page.locator(".run:not([disabled])").click()
    output = shown.page.locator(".actions [role=status]")
    output.wait_for(timeout=PATIENCE_MS)
    before = output.inner_text()
    assert "no API server runs" in before
    server.write(pod("a"), deleted=True)
    shown.page.locator(".actions.off").wait_for(timeout=PATIENCE_MS)
    assert output.inner_text() == before
    assert shown.page.locator(".object > .actions button").count() == 0


def test_a_mark_has_the_name_of_the_preemptor(server: Fed, shown: Tab) -> None:
    server.write(pod("preemptor", uid=UID))
    server.mark(Mark(1.0, "preemption", f"Pod default/a: Preempted by pod {UID} on node n1", "Pod default/a"))
    server.mark(Mark(2.0, "kill", "scheduler: killed"))
    shown.page.click("#tab-marks")
    rows = shown.page.locator("#tab li")
    text = "Pod default/a: Preempted by pod default/preemptor on node n1"
    rows.locator("span", has_text=text).wait_for(timeout=PATIENCE_MS)
    kill = rows.filter(has_text="scheduler: killed")
    assert kill.locator(".link").inner_text() == "kill"


def test_small_texts(server: Fed, shown: Tab) -> None:
    tainted = node("n1", taints=["node.kubernetes.io/unschedulable"])
    tainted.spec.unschedulable = True
    shown.wait_for(server.write(tainted))
    _select(shown, "Node n1")
    assert shown.page.evaluate(LINES, "unschedulable") == 1
    assert shown.page.locator(".legend .cordoned").count() == 1
    shown.page.fill("#find", "nothing-has-this-name")
    found = shown.page.locator("header [role=status]", has_text="No object")
    found.wait_for()
    shown.page.fill("#find", "n1")
    found.wait_for(state="detached")
    server.set_part(
        "components",
        [{"name": name, "component": name, "state": "ready", "health": "ok", "restarts": count}
         for name, count in (("etcd", 1), ("scheduler", 2))],
    )  # fmt: skip
    shown.page.click("#tab-components")
    rows = shown.page.locator("li.component")
    rows.filter(has_text="2 restarts").wait_for(timeout=PATIENCE_MS)
    assert rows.filter(has_text="etcd").locator(".quiet").first.inner_text() == "1 restart"


STATES = ("binding", "nominated", "pending", "gated", "done")
LOOK = "each => [getComputedStyle(each).backgroundColor, getComputedStyle(each).borderTop].join()"


def test_the_states_of_the_totals_look_different(server: Fed, shown: Tab) -> None:
    gated = pod("gated")
    gated.spec.schedulingGates.add(name="wait")
    refused = pod("nominated", nominated="n1")
    refused.status.conditions.add(type="PodScheduled", status="False", reason="Unschedulable")
    done = pod("done", node="n1", phase="Succeeded")
    shown.wait_for(server.write(gated, refused, pod("binding", nominated="n1"), done))
    looks = [shown.page.locator(f".totals .state-{state}").evaluate(LOOK) for state in STATES]
    assert len(set(looks)) == len(STATES), looks


def test_live_is_not_lit_while_the_page_connects_again(browser: Browser, server: Fed) -> None:
    with open_tab(browser, server.url, ready=".badge.live") as shown:
        assert shown.page.locator(".live.on").count() == 1
        server.stop()
        shown.page.locator(".badge.reconnecting").wait_for(timeout=PATIENCE_MS)
        assert shown.page.locator(".transport .live.on").count() == 0
