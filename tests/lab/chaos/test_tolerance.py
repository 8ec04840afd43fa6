"""Which expectations of a scenario count in a disturbed run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.perturbations import AWAY_SECONDS, JUMP_SECONDS, SILENCE_SECONDS
from nominee.lab.chaos.cases.tolerance import (
    BACK_OFF_SECONDS,
    HANG_SECONDS,
    RECOVERY_SECONDS,
    absences,
    changes,
    controlled,
    hang_seconds,
    only,
    only_rules_count,
    relaxed,
    rules_alone,
    states,
)
from nominee.lab.scenario.conditions.combined import AllOf
from nominee.lab.scenario.conditions.failpoint import FailpointCondition
from nominee.lab.scenario.conditions.metric import MetricCondition
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.fields.comparison import Comparison
from nominee.lab.scenario.fields.options import ComponentOptions
from nominee.lab.scenario.format.model import Background, Scenario, Step
from nominee.lab.scenario.observing.base import Condition
from nominee.lab.scenario.steps.expect import Expect, Mode, WhenDisturbed
from nominee.lab.scenario.steps.faults.failpoint import ArmFailpoint
from nominee.lab.scenario.steps.node_group import ResizeGroup
from nominee.lab.scenario.steps.objects.apply import Apply
from nominee.lab.scenario.steps.processes.start import Start
from nominee.lab.scenario.steps.processes.stop import Stop
from nominee.lab.scenario.steps.wait import Wait

POD = ObjectCondition(kind="Pod", name="p")
NODE = ObjectCondition(kind="Node", name="n")
METRIC = MetricCondition(component="kubelet", name="m", value=Comparison(at_least=1.0))


def step(action: Wait | Expect | Apply | ArmFailpoint, verb: str = "expect") -> Step:
    return Step(action=action, verb=verb, line=1)


SCENARIO = Scenario(
    name="s",
    steps=(
        step(ArmFailpoint(component="scheduler", name="scheduler.bind.before", action="pause"), "failpoint"),
        step(Apply(manifests=()), "apply"),
        step(Wait(condition=FailpointCondition(component="scheduler", name="scheduler.bind.before")), "wait"),
        step(Expect(mode=Mode.NOW, condition=POD, seconds=0.0)),
        step(Expect(mode=Mode.EVENTUALLY, condition=POD, seconds=30.0)),
        step(Expect(mode=Mode.NEVER, condition=POD, seconds=5.0)),
        step(Expect(mode=Mode.EVENTUALLY, condition=METRIC, seconds=30.0)),
    ),
    background=(
        Background(mode=Mode.NEVER, condition=POD, name="pods", line=1),
        Background(mode=Mode.NEVER, condition=METRIC, name="metric", line=1),
    ),
)


def test_a_step_that_may_fail_keeps_its_time() -> None:
    wait = step(Wait(condition=POD, seconds=2.0), "wait")
    check = step(Expect(mode=Mode.NOW, condition=POD, seconds=0.0))
    found = relaxed(
        Scenario(name="s", steps=(wait, check), steps_may_fail=True), Case.parse("apiserver:a.x=error"), {}
    )
    assert found.scenario.steps[0] == wait
    assert found.scenario.steps[1] != check


def test_checks_of_a_moment_must_hold_eventually() -> None:
    found = relaxed(SCENARIO, Case.parse("apiserver:a.x=error"), {4: 0.1, 5: 2.0})
    assert found.numbers == (1, 2, 3, 4, 5, 7)
    modes = [each.action.mode for each in found.scenario.steps if isinstance(each.action, Expect)]
    assert modes == [Mode.EVENTUALLY] * 3
    limits = [each.action.seconds for each in found.scenario.steps if isinstance(each.action, Expect)]
    assert limits == pytest.approx([RECOVERY_SECONDS + 0.2, RECOVERY_SECONDS + 4.0, RECOVERY_SECONDS])


@pytest.mark.parametrize(
    ("case", "seconds"),
    [
        ("scheduler:pods=silent", SILENCE_SECONDS),
        ("scheduler:pods=silent+kubelet-0:pods=silent@2", 2 * SILENCE_SECONDS),
        ("scheduler:process=away", AWAY_SECONDS),
        ("scheduler:pods=stale", 0.0),
    ],
)
def test_how_late_a_process_may_be(case: str, seconds: float) -> None:
    assert hang_seconds(Case.parse(case)) == seconds


def test_a_call_that_hangs_has_its_deadline() -> None:
    case = Case.parse("scheduler:apiserver.Bind.pods=hang+scheduler:apiserver.Patch.pods=slow")
    found = relaxed(SCENARIO, case, {5: 2.0})
    limits = [each.action.seconds for each in found.scenario.steps if isinstance(each.action, Expect)]
    assert limits[1] == pytest.approx(RECOVERY_SECONDS + HANG_SECONDS + 4.0)


@pytest.mark.parametrize(
    ("case", "seconds"),
    [
        ("scheduler:apiserver.Bind.pods=lose-requests@5", BACK_OFF_SECONDS),
        ("scheduler:apiserver.Bind.pods=lose-responses+kubelet-0:process=crash-loop@5", 45.0),
        ("scheduler:apiserver.Bind.pods=lose-request", 0.0),
    ],
)
def test_what_fails_again_and_again_has_the_time_of_its_repetitions(case: str, seconds: float) -> None:
    found = relaxed(SCENARIO, Case.parse(case), {5: 2.0})
    limits = [each.action.seconds for each in found.scenario.steps if isinstance(each.action, Expect)]
    assert limits[1] == pytest.approx(RECOVERY_SECONDS + seconds + 4.0)


def test_a_step_that_waits_for_nodes_has_more_time() -> None:
    grown = Step(action=ResizeGroup(group="g", increase=1), verb="nodeGroup", line=1)
    case = Case.parse("controllers:clock=behind")
    (found,) = relaxed(Scenario(name="s", steps=(grown,)), case, {1: 2.0}).scenario.steps
    assert found.action == ResizeGroup(group="g", increase=1, seconds=RECOVERY_SECONDS + JUMP_SECONDS + 4.0)


def test_a_killed_process_is_not_asked_for_its_memory() -> None:
    found = relaxed(SCENARIO, Case.parse("kubelet-0:k.x=crash"), {})
    assert 7 not in found.numbers
    assert [each.name for each in found.scenario.background] == ["pods"]
    assert 3 not in relaxed(SCENARIO, Case.parse("scheduler:s.x=crash"), {}).numbers
    assert 3 in found.numbers


@pytest.mark.parametrize(
    ("condition", "case", "counts"),
    [
        (POD, "apiserver:a.x=crash", True),
        (AllOf(conditions=(POD, POD)), "apiserver:a.x=crash", True),
        (AllOf(conditions=(POD, NODE)), "scheduler:s.x=crash", True),
        # Their watches come back one after the other.
        (AllOf(conditions=(POD, NODE)), "apiserver-1:a.x=crash", False),
    ],
)
def test_kinds_are_compared_with_each_other_while_all_are_watched(
    condition: Condition, case: str, counts: bool
) -> None:
    scenario = replace(
        SCENARIO, background=(Background(mode=Mode.NEVER, condition=condition, name="n", line=1),)
    )
    assert bool(relaxed(scenario, Case.parse(case), {}).scenario.background) is counts


@pytest.mark.parametrize(
    ("mode", "condition", "says", "case", "expected"),
    [
        # Through the API server, which is disturbed, an old state may be seen.
        (Mode.NEVER, POD, WhenDisturbed.BY_CASE, "scheduler:s.x=crash", Mode.NEVER),
        (Mode.ALWAYS, POD, WhenDisturbed.BY_CASE, "scheduler:pods=stale", Mode.ALWAYS),
        (Mode.NEVER, POD, WhenDisturbed.BY_CASE, "apiserver-1:a.x=delay", None),
        (Mode.ALWAYS, POD, WhenDisturbed.BY_CASE, "apiserver:a.x=delay", Mode.EVENTUALLY),
        # A counter is compared with that of the undisturbed run.
        (Mode.NEVER, METRIC, WhenDisturbed.BY_CASE, "scheduler:s.x=error", None),
        (Mode.NOW, POD, WhenDisturbed.BY_CASE, "scheduler:s.x=error", Mode.EVENTUALLY),
        # The pod that this disturbance deletes may be the one of the check.
        (Mode.NEVER, POD, WhenDisturbed.BY_CASE, "scheduler:scheduler.bind.after=recreate", None),
        (Mode.ALWAYS, POD, WhenDisturbed.BY_CASE, "scheduler:scheduler.bind.after=recreate", Mode.EVENTUALLY),
        # What the scenario says.
        (Mode.NOW, POD, WhenDisturbed.STRICT, "apiserver:a.x=delay", Mode.NOW),
        (Mode.NEVER, POD, WhenDisturbed.STRICT, "apiserver:a.x=delay", Mode.NEVER),
        (Mode.NEVER, POD, WhenDisturbed.RELAXED, "scheduler:s.x=error", None),
        (Mode.ALWAYS, POD, WhenDisturbed.RELAXED, "scheduler:s.x=error", Mode.EVENTUALLY),
    ],
)
def test_always_and_never_are_strict_where_nothing_touches_them(
    mode: Mode, condition: Condition, says: WhenDisturbed, case: str, expected: Mode | None
) -> None:
    check = Expect(mode=mode, condition=condition, seconds=1.0, when_disturbed=says)
    found = relaxed(Scenario(name="s", steps=(step(check),)), Case.parse(case), {}).scenario.steps
    modes = [each.action.mode for each in found if isinstance(each.action, Expect)]
    assert modes == ([] if expected is None else [expected])
    if expected is mode:
        assert [each.action for each in found] == [check]


def test_checks_of_objects_may_last() -> None:
    assert states(SCENARIO) == (4, 5)
    chosen = only(SCENARIO, (5, 7), 2.0)
    assert [each.action for each in chosen.steps if isinstance(each.action, Expect)] == [
        Expect(mode=Mode.EVENTUALLY, condition=POD, seconds=2.0),
        Expect(mode=Mode.EVENTUALLY, condition=METRIC, seconds=2.0),
    ]
    assert chosen.background == ()


def test_failpoints_of_the_scenario_and_its_changes() -> None:
    assert controlled(SCENARIO) == {("scheduler", "scheduler.bind.before")}
    assert changes(SCENARIO) == [2]


def test_a_process_is_absent_from_its_stop_to_its_start() -> None:
    stop = Step(action=Stop(component="scheduler"), verb="stop", line=1)
    start = Step(action=Start(component="scheduler", options=ComponentOptions()), verb="start", line=1)
    apply = step(Apply(manifests=()), "apply")
    scenario = Scenario(name="s", steps=(apply, stop, apply, start, apply))
    assert absences(scenario) == {("scheduler", 3), ("scheduler", 4)}


def test_with_rules_alone_no_check_counts() -> None:
    loose = rules_alone(SCENARIO)
    assert (loose.steps_may_fail, loose.checks_may_fail, loose.background) == (True, True, ())
    assert states(loose) == ()
    found = relaxed(loose, Case.parse("kubelet-0:process=away@3"), {5: 1.0}).scenario
    checks = [each.action for each in found.steps if isinstance(each.action, Expect)]
    assert [(each.mode, each.seconds) for each in checks] == [
        (Mode.NOW, 0.0),
        (Mode.EVENTUALLY, 2.0 + RECOVERY_SECONDS + AWAY_SECONDS),
        (Mode.NEVER, 5.0),
    ], "the metric is one of the process that is killed"


def test_pods_are_removed_where_rules_alone_count() -> None:
    assert not only_rules_count(SCENARIO)
    assert not only_rules_count(replace(SCENARIO, steps_may_fail=True)), "it has checks"
    assert only_rules_count(rules_alone(SCENARIO))
    assert only_rules_count(Scenario(name="generated", steps_may_fail=True))
