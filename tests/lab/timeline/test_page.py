"""The time line of a history: the bars of lanes, and the page."""

from __future__ import annotations

import json
import re

from nominee.lab.history.object_history import Entry, Selection, entries
from nominee.lab.history.process_logs import lines_of
from nominee.lab.history.revision import Revision
from nominee.lab.history.writers import Writer
from nominee.lab.timeline.lanes import Bar, lanes
from nominee.lab.timeline.page import ENTRIES_MAX, page
from tests.lab.invariants.histories import BEGIN, History, node, pod

LOG = ['I1114 22:13:22.500000 scheduler] Ready text="</script><b>"']


def _entries(revisions: list[Revision]) -> list[Entry]:
    return [Entry(each, Writer()) for each in revisions]


def test_a_bar_lasts_until_its_value_changes() -> None:
    history = History().put(
        pod("a"), pod("a", nominated="n1"), pod("a", nominated="n1", priority=1), pod("a", node="n1")
    )
    (lane,) = lanes(_entries(history.delete(pod("a")).revisions))
    times = [entry.time for entry in lane.entries]
    assert lane.rows["nominated"] == [Bar("n1", times[1], times[3])]
    assert lane.rows["node"] == [Bar("n1", times[3], times[4])]
    assert lane.rows["phase"] == [Bar("Pending", times[0], times[4])]


def test_conditions_are_bars_with_their_reasons() -> None:
    (lane,) = lanes(_entries(History().put(pod("a", conditions={"PodScheduled": "Bound"})).revisions))
    assert [bar.value for bar in lane.shown_rows["PodScheduled"]] == ["True Bound"]


def test_a_condition_that_was_false_all_the_time_is_not_shown() -> None:
    pressed = node("n1", taints=["x"])
    pressed.status.conditions.add(type="DiskPressure", status="False")
    (lane,) = lanes(_entries(History().put(pressed).revisions))
    assert set(lane.shown_rows) == {"taints"}
    pressed.status.conditions[0].status = "True"
    (lane,) = lanes(_entries(History().put(node("n1"), pressed).revisions))
    assert "DiskPressure" in lane.shown_rows


def test_the_page_is_one_file_whose_buttons_all_have_an_item() -> None:
    revisions = History().put(pod("a"), pod("a", nominated="n1"), pod("a", node="n1")).revisions
    text = page("A & B", entries(revisions, Selection(), list(lines_of(LOG, 2023))), revisions[-1].time)
    assert not re.search(r"https?://|\bon\w+=|<link|src=", text)
    (data,) = re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)
    items = json.loads(data)
    assert set(re.findall(r'data-item="(\d+)"', text)) == set(items) == {"0", "1", "2", "3"}
    assert items["1"]["changes"] == ['status.nominatedNodeName: "n1"']
    assert items["2"]["name"] == "scheduler: Ready text=</script><b>".join(
        ["2023-11-14T22:13:22.500000Z: ", ""]
    )
    assert "<title>A &amp; B</title>" in text
    assert "</script><b>" not in text


def test_a_long_history_is_shown_from_its_newest_entries() -> None:
    history = History()
    for number in range(ENTRIES_MAX + 1):
        history.put(pod("a", priority=number))
    text = page("x", _entries(history.revisions), BEGIN)
    assert "The first 1 are left out." in text
    assert text.count("<li>") == ENTRIES_MAX
