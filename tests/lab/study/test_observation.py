"""Fold states of pods into the result of a trial."""

from __future__ import annotations

from nominee.lab.study.observation import Seen, Trial
from nominee.lab.study.plans import Plan, PlannedPod

LOW = tuple(PlannedPod(name=name, priority=10, cpu=1000) for name in ("a", "b", "c"))
PLAN = Plan(
    seed=7,
    resizer=PlannedPod(name="grow", priority=1000, cpu=500, desired_cpu=1500),
    candidates=LOW,
    fillers=(),
    changes_while_down=False,
    needed=1,
)


def state(
    at: float,
    name: str = "grow",
    *,
    terminating: bool = False,
    marked: bool = False,
    nominated: str = "",
    deferred: bool = False,
    cpu: int = 500,
) -> Seen:
    return Seen(
        at=at,
        name=name,
        terminating=terminating,
        marked=marked,
        nominated=nominated,
        deferred=deferred,
        resizing=deferred,
        cpu=cpu,
    )


def trial(*states: Seen, began: float = 10.0) -> Trial:
    made = Trial(PLAN, "point", began=began)
    for one in states:
        made.saw(one)
    return made


def test_evictions_marks_and_time() -> None:
    result = trial(
        state(11, deferred=True),
        state(12, "a", marked=True),
        state(12.1, "a", marked=True, terminating=True),
        state(13, "b", marked=True),
        state(13.1, "b", marked=True, terminating=True),
        state(14, "c", marked=True),
        state(15, cpu=1500),
    ).result(20.0, fallback_seconds=3.0)
    assert (result.needed, result.evicted, result.redundant, result.marked_only) == (1, 2, 1, 1)
    assert result.resize_seconds == 5.0
    assert (result.deferred_seconds, result.falls_back) == (4.0, True)
    assert result.writes == 3 + 2


def test_a_pod_that_the_study_deleted_is_no_victim() -> None:
    assert trial(state(12, "a", terminating=True)).result(20.0, 3.0).evicted == 0


def test_a_resize_that_is_not_done_has_no_time() -> None:
    result = trial(state(11, deferred=True)).result(20.0, fallback_seconds=10.0)
    assert result.resize_seconds is None
    assert (result.deferred_seconds, result.falls_back) == (9.0, False)


def test_actual_cpu_before_the_resize_is_under_way_does_not_count() -> None:
    assert trial(state(11, cpu=1500, deferred=True), state(12, cpu=1500)).resized_at() == 12


def test_nominations_are_a_sequence_of_values_and_each_change_a_write() -> None:
    result = trial(
        state(11),
        state(12, nominated="n"),
        state(13, nominated="n", deferred=True),
        state(15, cpu=1500),
    ).result(20.0, 30.0)
    assert result.nominations == ("", "n", "")
    assert result.nominated_seconds == 3.0
    assert result.writes == 2
    assert trial(state(11)).result(20.0, 30.0).writes == 0


def test_states_before_the_trial_do_not_count() -> None:
    result = trial(state(9, nominated="n"), state(11)).result(20.0, 3.0)
    assert result.nominations == ("",)
