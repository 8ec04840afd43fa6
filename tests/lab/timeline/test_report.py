"""The page of a report: its items, what is left out, and hostile texts."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.history_file import NAME, HistoryWriter
from nominee.lab.timeline import report
from nominee.lab.timeline.marks import Mark
from nominee.lab.timeline.report import ITEMS_MAX, Block, Item, Report, page
from tests.lab.invariants.histories import History, pod

HOSTILE = "</script><!--<script><img src=x onerror=alert(1)>"


def data_of(text: str) -> dict[str, Any]:
    """Return what the script of a page reads."""
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert "<" not in data
    found: dict[str, Any] = json.loads(data)
    return found


def unpacked(text: str) -> Any:
    """Return a time line's document."""
    return json.loads(gzip.decompress(b64decode(text)))


def write_history(directory: Path, log: str = "") -> str:
    """Write a history of two pods into a new directory; return its name."""
    directory.mkdir()
    writer = HistoryWriter(directory / NAME, Coverage())
    writer.append(History().put(pod("a"), pod("b"), pod("a", node="n1")).revisions)
    writer.close()
    (directory / "scheduler.log").write_text(log or f"{HOSTILE}\n", encoding="utf-8")
    return str(directory)


def _item(name: str = "a", outcome: str = "passed", **others: Any) -> Item:
    return Item(name=name, outcome=outcome, **others)


def test_nothing_in_a_text_becomes_an_element() -> None:
    hostile = _item(
        HOSTILE, HOSTILE, cells=(HOSTILE,), texts=(HOSTILE,), blocks=[Block(HOSTILE, [HOSTILE])],
        commands={HOSTILE: HOSTILE}, files={HOSTILE: HOSTILE},
    )  # fmt: skip
    text = page(Report(title=HOSTILE, summary=HOSTILE, columns=(HOSTILE,), items=[hostile, _item()]))
    assert "<img" not in text
    assert "<!--" not in text
    assert text.count("</script>") == 2
    (first, _) = data_of(text)["items"].values()
    assert first["blocks"] == [[HOSTILE, [HOSTILE], False]]
    assert not re.search(r'https?://|<link|(src|href)="', text)


def test_a_time_line_is_in_the_page_once_and_that_of_all_items_is_not_in_a_dialog(tmp_path: Path) -> None:
    directory = write_history(tmp_path / "run")
    found = report.timelines([(directory, "A", ["Pod default/b"])], lambda *_: [Mark(1.0, "step", "x")])
    assert [mark["text"] for mark in found[directory]["marks"]] == ["x"]
    one, two = _item("a", timeline=directory), _item("b", timeline=directory)
    text = page(Report(title="A", summary="s", items=[one, two], timelines=found))
    assert text.count(f'data-timeline="{directory}"') == 1
    document = unpacked(data_of(text)["timelines"][directory])
    assert [(each["k"], each["n"]) for each in document["revisions"]] == [
        ("Pod", "a"),
        ("Pod", "b"),
        ("Pod", "a"),
    ]
    assert document["follow"] == ["Pod default/b"]
    assert (
        "data-timeline"
        not in page(Report(title="A", summary="s", items=[one, _item("c")], timelines=found)).partition(
            "<dialog"
        )[0]
    )


def test_runs_that_shared_a_cluster_have_one_time_line(tmp_path: Path) -> None:
    directory = write_history(tmp_path / "run")
    found = report.timelines([(directory, "A", ["Pod default/b"]), (directory, "B", ["Pod default/a"])])
    assert found[directory]["title"] == "2 runs on one cluster"
    assert found[directory]["follow"] == ["Pod default/b", "Pod default/a"]


def test_a_directory_without_a_history_has_no_time_line(tmp_path: Path) -> None:
    assert report.timelines([("", "A", ()), (str(tmp_path), "B", ()), (str(tmp_path / "no"), "C", ())]) == {}


def test_a_page_without_a_time_line_has_not_its_scripts() -> None:
    data = data_of(page(Report(title="A", summary="s", items=[_item()])))
    assert (data["page"], data["timelines"]) == ("", {})


def test_a_long_report_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    text = page(Report(title="A", summary="s", items=[_item(str(each)) for each in range(ITEMS_MAX + 3)]))
    assert "3 more items are left out." in text
    assert len(data_of(text)["items"]) == ITEMS_MAX
    monkeypatch.setattr(report, "BYTES_MAX", 1500)
    lines = [Block("Log", ["x" * 1000])]
    found = page(
        Report(title="A", summary="s", items=[_item("p", blocks=lines), _item("f", "failed", blocks=lines)])
    )
    passed, failed = data_of(found)["items"].values()
    assert passed["blocks"] == []
    assert "left out" in passed["texts"][-1]
    assert failed["blocks"]  # those that failed come first


def test_the_script_makes_no_element_of_a_text() -> None:
    text = Path(report.__file__).with_name("report.js").read_text()
    assert not re.search(r"\beval\(|new Function|innerHTML|https?:", text)


def test_of_a_log_the_end_is_shown(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/scheduler.log").write_text("".join(f"{each}\n" for each in range(100)) + "y" * 1000)
    (block,) = report.logs(str(tmp_path))
    assert block.title == "Log of scheduler"
    assert (len(block.lines), block.lines[0], len(block.lines[-1])) == (60, "41", 400)
    assert list(report.logs("")) == []
