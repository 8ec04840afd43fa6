"""The page of a time line: one file, with the document and the modules in it."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from typing import Any

from nominee.lab.history.object_history import Entry, Selection, entries
from nominee.lab.history.process_logs import lines_of
from nominee.lab.history.revision import Revision
from nominee.lab.history.writers import Writer
from nominee.lab.timeline.page import BUNDLE, ENTRIES_MAX, page
from tests.lab.invariants.histories import History, pod

LOG = ['I1114 22:13:22.500000 scheduler] Ready text="</script><b>"']


def _entries(revisions: list[Revision]) -> list[Entry]:
    return [Entry(each, Writer()) for each in revisions]


def _document(text: str) -> dict[str, Any]:
    (data,) = re.findall(r'id="timeline">(.*?)</script>', text, re.DOTALL)
    found: dict[str, Any] = json.loads(data)
    return found


def test_the_page_is_one_file_whose_revisions_all_have_details() -> None:
    revisions = History().put(pod("a"), pod("a", nominated="n1"), pod("a", node="n1")).revisions
    text = page("A & B", entries(revisions, Selection(), list(lines_of(LOG, 2023))), ["Pod default/a"])
    assert not re.search(r"https?://|\bon\w+=|<link|src=", text)
    document = _document(text)
    numbers = [str(each["r"]) for each in document["revisions"]]
    assert len(numbers) == 3
    assert numbers == list(document["details"])
    second = document["details"][numbers[1]]
    assert second["changes"] == ['status.nominatedNodeName: "n1"']
    assert second["name"].startswith(f"revision {numbers[1]}, ")
    assert any('"nominatedNodeName": "n1"' in line for line in second["object"])
    (mark,) = document["marks"]
    assert (mark["kind"], mark["t"]) == ("start", 1700000002.5)
    assert document["follow"] == ["Pod default/a"]
    assert "<title>A &amp; B</title>" in text
    assert "</script><b>" not in text


def test_a_log_line_that_is_no_mark_of_its_own_is_one() -> None:
    log = ['I1114 22:13:22.500000 scheduler] Bound pod="default/a" text="</script>"']
    document = _document(page("x", list(lines_of(log, 2023))))
    assert [mark["kind"] for mark in document["marks"]] == ["log"]
    assert "</script>" in document["marks"][0]["text"]


def test_a_long_history_is_shown_from_its_newest_revisions() -> None:
    history = History()
    for number in range(ENTRIES_MAX + 1):
        history.put(pod("a", priority=number))
    document = _document(page("x", _entries(history.revisions)))
    assert document["coverage"]["left_out"] == 1
    writes = [each for each in document["revisions"] if not each.get("state")]
    assert len(writes) == len(document["details"]) == ENTRIES_MAX


def test_the_modules_of_the_page_import_each_other_by_name() -> None:
    (data,) = re.findall(r'<script type="importmap">(.*?)</script>', page("x", []))
    modules = {
        name: b64decode(url.partition(",")[2]).decode() for name, url in json.loads(data)["imports"].items()
    }
    assert set(modules) == {f"page/{file.relative_to(BUNDLE)}" for file in BUNDLE.rglob("*.js")}
    for text in modules.values():
        imported = re.findall(r'^import[^"]*"([^"]+)";|^} from "([^"]+)";', text, re.MULTILINE)
        assert {one or other for one, other in imported} <= set(modules)
