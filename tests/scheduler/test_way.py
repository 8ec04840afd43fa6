"""The table of an attempt's steps is kept, and is what the documentation shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.way import TRANSITIONS, Step, UnknownTransitionError, Way, diagram

DOCUMENT = Path(__file__).parents[2] / "docs" / "design" / "004-scheduler.md"


def test_the_document_shows_the_table() -> None:
    assert diagram() in DOCUMENT.read_text(encoding="utf-8")


def test_every_step_is_in_the_table_and_can_be_reached() -> None:
    assert set(TRANSITIONS) == set(Step)
    reached = {Step.TRYING}
    for _ in Step:
        reached |= {after for step in reached for after in TRANSITIONS[step]}
    assert reached == set(Step)


def test_a_bound_pod_does_not_come_back() -> None:
    way = Way("default/p", 10.0)
    for number, step in enumerate((Step.RESERVED, Step.BINDING, Step.BOUND), start=1):
        way.to(step, 10.0 + number / 1000)
    with pytest.raises(UnknownTransitionError) as caught:
        way.to(Step.BACK, 11.0)
    assert str(caught.value) == (
        "default/p: back in the queue does not follow; trying, reserved +1.0ms, binding +2.0ms, bound +3.0ms"
    )
