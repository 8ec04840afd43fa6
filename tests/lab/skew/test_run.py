"""A run keeps what has ended; the reports show it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import pytest

from nominee.lab.jobs.job import Ended, Job, Line, Report
from nominee.lab.reports.markdown import table_line
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.lab.skew import run as running
from nominee.lab.skew.cells import cell_run
from nominee.lab.skew.cells.store import Store, StoreError
from nominee.lab.skew.matrix.planning import MatrixPlan
from nominee.lab.skew.pages import report as reports
from nominee.lab.skew.pages.kep_page import kep_page
from nominee.lab.skew.pages.markdown import as_markdown
from nominee.lab.skew.pages.report import CellResult, Verdict
from tests.lab.skew.matrices import CLEARING, PATH, planned

pytestmark = pytest.mark.processes  # A cell names the commit of the clone, which git prints.

_ANSWERS = """\
  answers:
  - kep: 5278
    section: Version Skew Strategy
    answer: An API server without the gate does not clear the field.
    rows: [clearing]
    where: {apiserver: {below: "1.34"}}
    shows: [kept]
  - kep: 5278
    section: Version Skew Strategy
    answer: A new API server clears it.
    rows: [clearing]
    where: {apiserver: {atLeast: "1.35"}}
    contradictedBy: [kept]
  - {kep: 5278, section: Scalability, answer: No new calls., untested: needs a large cluster}
  - kep: 5278
    section: Scalability
    answer: At 1.38 too.
    rows: [clearing]
    where: {apiserver: {atLeast: "1.38"}}
"""


_HOSTILE = "a line with </script> <!-- <script> & \x1b[31m"


class FakeExecutor:
    """Ends jobs at once, with an outcome by id; raises KeyboardInterrupt after `limit` jobs."""

    def __init__(self, outcomes: Mapping[str, Outcome], limit: int = 1_000) -> None:
        self._outcomes, self._limit = outcomes, limit
        self.is_local, self.width = True, 1
        self.jobs: list[str] = []

    def run(self, jobs: Iterable[Job]) -> Generator[Report, None, None]:
        for number, job in enumerate(jobs):
            if number == self._limit:
                raise KeyboardInterrupt
            yield None
            outcome = self._outcomes.get(job.id, Outcome.PASSED)
            reason = "" if outcome is Outcome.PASSED else "not within 30 s; observed: <x> | *y* \x1b[0m"
            result = ScenarioResult(scenario=job.id, outcome=outcome, reason=reason, seconds=2.0)
            yield Line(job, result.as_json())
            with TemporaryDirectory() as folder:
                work = Path(folder)
                (work / "c/logs").mkdir(parents=True)
                (work / "c/logs/scheduler.log").write_text(f"{_HOSTILE}\n", encoding="utf-8")
                (work / "steps.txt").write_text("1.0s > a step\n", encoding="utf-8")
                self.jobs.append(job.id)
                yield Ended(job=job, problem="", directory=work, ran_in=folder)


class Counter:
    """Counts what the progress would show."""

    def __init__(self) -> None:
        self.total = 0
        self.names: list[str] = []
        self.ticks = 0

    def began(self, cells: int) -> None:
        self.total = cells

    def ended(self, cell: CellResult) -> None:
        self.names.append(cell.planned.id)

    def tick(self) -> None:
        self.ticks += 1


def _run(plan: MatrixPlan, store: Store, executor: FakeExecutor) -> Counter:
    progress = Counter()
    running.run(plan, store, executor, progress)
    return progress


def report_of(
    folder: Path, text: str, outcomes: Mapping[str, Outcome] | None = None
) -> tuple[reports.Report, Store]:
    """Return the report of all cells, which had these outcomes, and its store."""
    store = Store(folder / "report")
    store.open(resume=False)
    plan = planned(folder, text, full=True)
    _run(plan, store, FakeExecutor(outcomes or {}))
    return running.collect(plan, store, 1.0), store


def test_ctrl_c_keeps_what_has_ended_and_resume_runs_the_others(tmp_path: Path) -> None:
    plan = planned(tmp_path, CLEARING, full=True)
    store = Store(tmp_path / "report")
    store.open(resume=False)
    with pytest.raises(KeyboardInterrupt):
        _run(plan, store, FakeExecutor({}, limit=3))
    first = running.collect(plan, store, 1.0)
    assert (len(first.cells), len(first.unfinished), first.held) == (3, 7, False)
    assert "7 not run" in first.summary
    with pytest.raises(StoreError, match="--resume runs the missing cells"):
        store.open(resume=False)
    store.open(resume=True)
    executor = FakeExecutor({})
    progress = _run(plan, store, executor)
    assert progress.total == len(progress.names) == 7
    assert not {cell.planned.id for cell in first.cells} & set(executor.jobs)
    assert running.collect(plan, store, 1.0).held


def test_a_changed_scenario_runs_again(tmp_path: Path) -> None:
    _, store = report_of(tmp_path, CLEARING)
    executor = FakeExecutor({})
    _run(planned(tmp_path, CLEARING.replace("name: a pod", "name: one pod"), full=True), store, executor)
    assert len(executor.jobs) == 10


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="not of a matrix"):
        Store(tmp_path).open(resume=True)


def test_a_process_that_leaves_no_result_is_an_error(tmp_path: Path) -> None:
    plan = planned(tmp_path, CLEARING, only="1.33 scheduler=1.34")
    (cell,) = plan.cells
    store = Store(tmp_path / "report")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/steps.txt").write_text("Traceback\n  a line\nKeyError: 'x'\n\n", encoding="utf-8")
    ended = Ended(job=cell_run.job(cell), problem="it was killed", directory=tmp_path / "work", ran_in="/w")
    cell_run.keep(cell, [], ended, store.folder(cell))
    found = store.result(cell)
    assert found is not None
    assert (found.result.outcome, found.result.reason) == (Outcome.ERROR, "it was killed: KeyError: 'x'")


def test_answers_are_confirmed_contradicted_or_not_tested(tmp_path: Path) -> None:
    report, _ = report_of(tmp_path, CLEARING + _ANSWERS)
    first, second, third, fourth = report.answers
    assert (first.verdict, len(first.cells), first.against) == (Verdict.CONFIRMED, 2, {})
    assert second.verdict is Verdict.CONTRADICTED
    assert len(second.cells) == 8
    assert set(second.against.values()) == {"the bound pod keeps it"}
    assert all("=false" in name for name in second.against)
    assert (third.verdict, third.reason) == (Verdict.UNTESTED, "needs a large cluster")
    assert (fourth.verdict, fourth.reason) == (Verdict.UNTESTED, "no cell of the run decides it")


def test_a_failed_cell_contradicts_and_a_cell_that_could_not_run_decides_nothing(tmp_path: Path) -> None:
    old = [cell.id for cell in planned(tmp_path, CLEARING, full=True, only="apiserver=1.33").cells]
    outcomes = {old[0]: Outcome.FAILED, old[1]: Outcome.ERROR}
    report, _ = report_of(tmp_path, CLEARING + _ANSWERS, outcomes)
    first = report.answers[0]
    assert (first.verdict, len(first.cells)) == (Verdict.CONTRADICTED, 1)
    assert not report.held
    assert report.summary.startswith("8 of 10 cells passed, 1 failed, 1 could not run")


def test_the_reports(tmp_path: Path) -> None:
    failed = planned(tmp_path, CLEARING, full=True, only="1.33 scheduler=1.34").cells[0].id
    report, store = report_of(tmp_path, CLEARING + PATH + _ANSWERS, {failed: Outcome.FAILED})
    names = running.write(report, store)
    assert set(names) == {"skew.json", "index.html", "junit.xml", "report.md", "kep-5278.md"}
    suite = ElementTree.parse(store.directory / "junit.xml").getroot()
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("nominee skew test", "11", "1")
    assert [each.get("file") for each in suite] == [str(tmp_path / "matrix.yaml")] * 11
    page = (store.directory / "index.html").read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    cells = json.loads(found[1])["items"]
    assert len(cells) == 11
    assert ["Log of scheduler", [_HOSTILE], False] in cells[failed]["blocks"]
    assert "<" not in found[1]  # "<!--<script>" would hide the end of the element
    maps = "".join(re.findall(r'<table class="map">.*?</table>', page, re.DOTALL))
    assert maps.count("<button class=") == 11
    assert maps.count('<button class="failed outside"') == 1
    assert maps.count('<button class="case1"') == 3
    assert maps.count('<span class="case') == 2  # a path shows two cases
    assert not re.search(r'(src|href)="(?!#)', page)  # no other file
    document = json.loads((store.directory / "skew.json").read_text(encoding="utf-8"))
    markdown = as_markdown(document)
    assert markdown.index("upgrade->downgrade->upgrade") < markdown.index("## Version Skew Strategy")
    assert "| kept | otherwise | the bound pod keeps it | 5 |" in markdown
    assert "| up and down | ✓ written → missing |" in markdown
    assert "- scheduler 1.34 is newer than the API server 1.33 (1 cell)" in markdown
    assert "observed: &lt;x> | \\*y* " in markdown
    assert f"Reproduce: `nominee scenario run {tmp_path}/report/cells/" in markdown


def test_a_result_of_another_version_runs_again(tmp_path: Path) -> None:
    report, store = report_of(tmp_path, CLEARING)
    file = store.folder(report.plan.cells[0]) / "result.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**document, "version": "0.1.0"}), encoding="utf-8")
    assert running.collect(report.plan, store, 1.0).unfinished == (report.plan.cells[0],)


def test_one_run_at_a_time_uses_a_directory(tmp_path: Path) -> None:
    first = Store(tmp_path / "report")
    first.open(resume=False)
    with pytest.raises(StoreError, match=rf"another `nominee skew run` \(pid {os.getpid()}\) uses "):
        Store(tmp_path / "report").open(resume=True)


def test_a_directory_in_which_nothing_has_ended_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "report/cells").mkdir(parents=True)
    Store(tmp_path / "report").open(resume=False)


def test_an_incomplete_report_says_so(tmp_path: Path) -> None:
    plan = planned(tmp_path, CLEARING, full=True, only="apiserver=1.35")
    store = Store(tmp_path / "report")
    store.open(resume=False)
    with pytest.raises(KeyboardInterrupt):
        _run(plan, store, FakeExecutor({}, limit=1))
    running.write(running.collect(plan, store, 1.0), store)
    document = json.loads((store.directory / "skew.json").read_text(encoding="utf-8"))
    text = kep_page(document, 5278)
    assert "1 of 4 cells passed. **Incomplete: 3 cells did not run.**" in text
    assert "(of it the cells that match `apiserver=1.35`)" in text
    suite = ElementTree.parse(store.directory / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("skipped")) == ("4", "3")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b `c|d`\ne", r"| a\|b `c\|d` e |"),
        ("x <name> `<name>`", "| x &lt;name> `<name>` |"),
        ("*all* of _it_ nominated_node $a$ 2 * 3", r"| \*all* of \_it_ nominated_node \$a$ 2 * 3 |"),
    ],
)
def test_text_in_a_table(text: str, shown: str) -> None:
    assert table_line([text]) == shown


def test_the_page_of_a_kep(tmp_path: Path) -> None:
    report, store = report_of(tmp_path, CLEARING + _ANSWERS)
    running.write(report, store)
    document = json.loads((store.directory / "skew.json").read_text(encoding="utf-8"))
    text = kep_page(document, 5278)
    assert "1 confirmed, 1 contradicted, 2 not tested." in text
    assert (
        "| An API server without the gate does not clear the field. | ✓ confirmed "
        "| 2 cells of `clearing` (outside the skew policy) showed: kept. |" in text
    )
    assert (
        "| A new API server clears it. | ✗ contradicted "
        "| 4 of 8 cells differ (2 outside the skew policy): `clearing apiserver=1.35" in text
    )
    assert "| scheduler | apiserver gates | apiserver 1.33 | apiserver 1.35 | apiserver 1.36 |" in text
    with pytest.raises(ValueError, match="no row of KEP-1; it has 5278"):
        kep_page(document, 1)
