"""The results as a document, the statistics, and the page made of both."""

from __future__ import annotations

import json
import math
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.lab.study.pages.answers import answers
from nominee.lab.study.pages.data import Data, paired
from nominee.lab.study.pages.figures import COLOURS, GREY, figures
from nominee.lab.study.pages.page import page
from nominee.lab.study.pages.tables import percent, tables
from nominee.lab.study.results import ReportError, Row, Run, document_of, read, text_of
from nominee.lab.study.settings import (
    CHURN,
    NO_LOAD,
    QUIET,
    Scenario,
    Setup,
    setups,
)
from nominee.lab.study.statistics import median, share
from nominee.scheduler.framework.resize_preemption import Tracking

_STUDIES = Path(__file__).parents[3] / "docs/studies"
_COMMITTED = _STUDIES / "resize-preemption.json"


def row(setup: Setup, seed: int) -> Row:
    """A trial: with tracking `none` every second one has a redundant victim."""
    redundant = int(setup.tracking is Tracking.NONE and seed % 2)
    common = {"seed": seed, "evicted": 1 + redundant, "redundant": redundant, "resizeSeconds": 2.0 + seed}
    written = {"markedOnly": 0, "writes": 4 + seed, "fallsBack": seed % 2}
    match setup.scenario:
        case Scenario.CRASH:
            return {**common, **written, "point": "scheduler.preempt.victim.after"}
        case Scenario.GRACE | Scenario.FOUR_PODS:
            return common | written
        case Scenario.KUBELET:
            return {**common, "delay": 1.0, "byKubelet": redundant}
        case Scenario.RACES:
            return {"seed": seed, "stop": 900, "delay": 0.9 * (seed % 2), "evicted": 2} | {
                "resizeSeconds": 2.0,
                "otherSeconds": 1.0,
            }
        case _:
            return {"seed": seed, "delay": 0.0, "evicted": redundant}


def run() -> Run:
    chosen = [setup for one in Scenario for setup in setups(one, tuple(Tracking))]
    rows: dict[Setup, list[Row]] = {setup: [row(setup, seed) for seed in range(8)] for setup in chosen}
    for load, rate in ((NO_LOAD, 200.0), (QUIET, 100.0), (CHURN, 50.0)):
        setup = Setup(scenario=Scenario.THROUGHPUT, variant=load)
        rows[setup] = [
            {"seed": seed, "podsPerSecond": rate + seed, "cpuMilliseconds": 2.0 + seed} for seed in range(8)
        ]
    return Run(version="1", commit="abc", machine={"cores": 2}, rows=rows)


def test_the_interval_of_a_share_is_wilsons() -> None:
    """Judge: Newcombe 1998, table I, method 3."""
    for hits, count, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611)):
        found = share(hits, count)
        assert found.low == pytest.approx(low, abs=1e-4)
        assert found.high == pytest.approx(high, abs=1e-4)
    assert share(1, 29).low == pytest.approx(0.0061, abs=1e-4)


@given(st.integers(1, 400), st.data())
def test_a_share_is_within_its_interval(count: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, count))
    found = share(hits, count)
    assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize("count", [6, 7, 10, 25, 100])
def test_the_interval_of_a_median_is_the_narrowest_with_95_percent(count: int) -> None:
    found = median([float(value) for value in range(count)])
    low = int(found.low)

    def outside(ranks: int) -> float:
        """Return how likely the median is below the value of a rank, or as far above."""
        return float(2 * sum(math.comb(count, rank) for rank in range(ranks + 1)) / 2**count)

    assert found.high == count - 1 - low
    assert outside(low) <= 0.05 < outside(low + 1)


def test_few_values_have_their_range_as_interval() -> None:
    assert (median([3.0, 1.0, 2.0]).low, median([3.0, 1.0, 2.0]).high) == (1.0, 3.0)


def test_pairs_are_of_the_same_seed() -> None:
    first: list[Row] = [{"seed": seed, "resizeSeconds": float(seed)} for seed in range(9)]
    second: list[Row] = [{"seed": seed, "resizeSeconds": seed + 1.0} for seed in range(3, 12)]
    found = paired(first, second, lambda row: float(row["resizeSeconds"]))
    assert found is not None
    assert (found.value, found.low, found.high, found.count) == (1.0, 1.0, 1.0, 6)


def test_results_are_read_again_as_they_were_written() -> None:
    text = text_of([run()])
    assert json.loads(text) == json.loads(json.dumps(document_of([run()])))
    assert read([text]) == [run()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a ResizePreemptionStudy"),
        ('{"kind": "ResizePreemptionStudy", "apiVersion": "study.nominee.dev/v1"}', "apiVersion is 'study"),
        ('{"kind": "ResizePreemptionStudy", "apiVersion": "study.nominee.dev/v2"}', "runs"),
    ],
)
def test_another_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ReportError, match=message):
        read([text])


def test_every_field_and_column_is_described() -> None:
    described = (_STUDIES / "README.md").read_text(encoding="utf-8")
    (document,) = document_of([run()])["runs"]
    names = {*document, *document["groups"][0]}
    names.update(*(group["columns"] for group in document["groups"]))
    assert sorted(name for name in names if f"`{name}`" not in described) == []


def test_of_a_setup_that_two_runs_have_the_later_one_counts() -> None:
    setup = Setup(scenario=Scenario.CRASH)
    other = Run(version="1", commit="", machine={}, rows={setup: [row(setup, 99)]})
    assert [one["seed"] for one in Data.of([run(), other]).rows(Scenario.CRASH)] == [99]


def test_each_answer_names_its_evidence_and_the_page_has_it() -> None:
    found = answers(Data.of([run()]))
    assert {one.scenario for one in found} == set(Scenario)
    text = page([run()])
    for one in found:
        assert one.evidence
        assert f"“{one.section}”" in text.replace("&#x27;", "'")
    numbers = [figure.scenario for figure in figures(Data.of([run()]))]
    assert set(numbers) == set(Scenario)
    assert text.count('<figure id="figure-') == len(numbers)
    assert "<script" not in text
    for table in tables(Data.of([run()])):
        assert len({len(table.columns), *(len(cells) for cells in table.rows)}) == 1


def test_a_difference_within_the_noise_is_not_named() -> None:
    """The rows of all options are the same here but for redundant victims."""
    text = " ".join(one.answer for one in answers(Data.of([run()])))
    assert "No option was measured to delay A" in text
    assert "fewer fallbacks" not in text
    assert "no measured cost" in text


def test_a_colour_means_one_thing() -> None:
    for figure in figures(Data.of([run()])):
        for panel in figure.panels:
            for label, colour, _ in panel.bars:
                assert (colour == GREY) == (not label.startswith("Option "))
    assert len({*COLOURS.values(), GREY}) == len(COLOURS) + 1


def test_a_caption_does_not_say_where_a_panel_is() -> None:
    """The width of the window decides whether panels are beside or below each other."""
    for figure in figures(Data.of([run()])):
        assert not re.search(r"\b(left|right|above|below)\b", figure.caption, re.IGNORECASE), figure.title


def test_labels_fit_under_their_bars() -> None:
    """A character of 13 px is 7.2 px wide, and a panel has 80 px for its axis."""
    for figure in figures(Data.of([run()])):
        drawn = [panel for panel in figure.panels if panel.bars]
        width = {1: 700, 2: 520, 3: 420}[min(len(drawn), 3)]
        for panel in drawn:
            room = (width - 80) / len(panel.bars)
            for (left, _, _), (right, _, _) in pairwise(panel.bars):
                assert 7.2 * (len(left) + len(right)) / 2 < room, (figure.title, left, right)


@pytest.mark.parametrize("scenario", list(Scenario))
def test_a_part_of_the_scenarios_makes_a_page(scenario: Scenario) -> None:
    whole = run()
    rows = {setup: found for setup, found in whole.rows.items() if setup.scenario is scenario}
    assert "<svg" in page([Run(version="1", commit="", machine={}, rows=rows)])


def test_the_committed_page_is_that_of_the_committed_results() -> None:
    text = _COMMITTED.read_text(encoding="utf-8")
    assert text == text_of(read([text])) + "\n"
    assert page(read([text])) == (_STUDIES / "resize-preemption.html").read_text(encoding="utf-8")


def test_the_committed_results_have_every_setup() -> None:
    found = Data.of(read([_COMMITTED.read_text(encoding="utf-8")])).by_setup
    expected = {setup for one in Scenario for setup in setups(one, tuple(Tracking))}
    assert expected <= set(found)
    loads = {setup.variant for setup in found if setup.scenario is Scenario.THROUGHPUT}
    assert loads == {NO_LOAD, QUIET, CHURN}


def test_a_share_is_shown_with_its_interval() -> None:
    assert percent(share(5, 1000)) == "0.5% (0.2% to 1.2%)"
    assert percent(share(0, 1000)) == "0% (0% to 0.4%)"


def test_drawing_leaves_the_imports_of_other_modules_alone() -> None:
    """A finder without `find_spec` makes every import of an absent module warn, in this whole process."""
    page([run()])
    assert all(hasattr(finder, "find_spec") for finder in sys.meta_path)
