"""The calls of one pod: one at a time, merged while they wait; awaited ones go first."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.state_table import InvalidTransitionError
from nominee.scheduler.attempts.pod import CLEAR_NOMINATION
from nominee.scheduler.dispatch.api_calls import (
    Lost,
    Outcome,
    PodStatusPatch,
    Purpose,
    Released,
    Renominated,
    nomination,
)
from nominee.scheduler.dispatch.call_queue import UNDER_WAY_MAX, CallQueue
from nominee.scheduler.dispatch.states import CallState, Trigger
from nominee.scheduler.framework.nominations.nominating import NominatingInfo, NominatingMode
from tests.scheduler.builders import pod


def shown(name: str = "p", revision: int = 1, nominated: str = "") -> core.Pod:
    made = pod(name, nominated=nominated).pod
    made.metadata.resourceVersion = str(revision)
    return made


@dataclass
class Stage:
    """A call queue, the pods that the watch shows, and how often the loop was woken."""

    pods: dict[ObjectKey, core.Pod] = field(default_factory=dict)
    woken: int = 0

    def __post_init__(self) -> None:
        self.calls = CallQueue(self.pods.get, wake=self._wake)

    def _wake(self) -> None:
        self.woken += 1

    def show(self, *pods: core.Pod) -> None:
        self.pods.update({key_of(each): each for each in pods})

    def fails(self, message: str = "", node: str | None = None, name: str = "p") -> None:
        info = None if node is None else NominatingInfo(NominatingMode.Override, node)
        found = self.pods.get(ObjectKey("default", name)) or shown(name)
        self.calls.decide(PodStatusPatch(pod=found, reason="Unschedulable", message=message, nominating=info))

    def take(self) -> PodStatusPatch:
        [call] = self.calls.take()
        return call

    def patch(self, call: PodStatusPatch) -> dict[str, object]:
        patch = self.calls.request(call, 0.0).patch
        return {} if patch is None else patch["status"]


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.show(shown())
    return made


def test_one_call_is_under_way_and_the_later_ones_are_merged_into_one(stage: Stage) -> None:
    stage.fails("1", "n1")
    first = stage.take()
    stage.fails("2", "n2")
    stage.fails("3")  # leaves the nomination alone: it takes over the one of the call that waited
    assert stage.calls.take() == []
    assert stage.calls.state("uid-p") is CallState.FOLLOWED
    assert stage.calls.finish([Outcome(first, Trigger.WRITTEN, shown(revision=2, nominated="n1"))]) == []
    second = stage.take()
    assert (second.message, second.node_name) == ("3", "n2")
    written = shown(revision=3, nominated="n2")
    assert stage.calls.finish([Outcome(second, Trigger.WRITTEN, written)]) == [Released("uid-p")]
    assert len(stage.calls) == 0


def test_all_calls_that_can_begin_are_taken_at_once_up_to_the_limit(stage: Stage) -> None:
    names = [f"p{number}" for number in range(UNDER_WAY_MAX + 2)]
    for name in names:
        stage.fails("1", name=name)
    taken = stage.calls.take()
    assert [call.key.name for call in taken] == names[:UNDER_WAY_MAX]
    assert stage.calls.waiting == 2
    stage.calls.finish([Outcome(call, Trigger.WRITTEN, call.pod) for call in taken[:3]])
    assert [call.key.name for call in stage.calls.take()] == names[UNDER_WAY_MAX:]


def test_a_call_that_is_replaced_keeps_its_place_in_line(stage: Stage) -> None:
    for name in ("a", "b", "a"):
        stage.fails(name=name)
    assert [call.key.name for call in stage.calls.take()] == ["a", "b"]


def test_what_a_binding_waits_for_goes_first_and_in_order(stage: Stage) -> None:
    for name in "abcd":
        stage.fails(name=name)
    assert stage.calls.hurry("uid-c")
    stage.calls.decide(nomination(shown("e"), "n1"))
    assert stage.calls.hurry("uid-e")
    assert not stage.calls.hurry("uid-x")
    assert [call.key.name for call in stage.calls.take()] == ["c", "e", "a", "b", "d"]


def test_a_call_waits_again_while_the_server_is_away(stage: Stage) -> None:
    stage.fails("1", "n1")
    first = stage.take()
    woken = stage.woken
    assert stage.calls.finish([Outcome(first, Trigger.UNREACHABLE)]) == []
    assert stage.woken > woken
    assert stage.take() == first
    assert stage.calls.cached(first.key) == shown(nominated="n1")


def test_a_later_call_takes_over_the_nomination_of_one_that_could_not_be_sent(stage: Stage) -> None:
    stage.fails("1", "n1")
    first = stage.take()
    stage.fails("2")
    assert stage.calls.finish([Outcome(first, Trigger.UNREACHABLE)]) == []
    second = stage.take()
    assert (second.message, second.node_name) == ("2", "n1")
    assert stage.calls.cached(first.key) == shown(nominated="n1")


def test_a_binding_does_not_wait_for_a_server_that_is_away(stage: Stage) -> None:
    stage.calls.decide(nomination(shown(), "n1"))
    assert stage.calls.hurry("uid-p")
    call = stage.take()
    assert call.purpose is Purpose.NOMINATE
    outcome = Outcome(call, Trigger.UNREACHABLE, error=OSError("away"))
    old, new = shown(nominated="n1"), shown()
    assert stage.calls.finish([outcome]) == [Lost(outcome), Renominated(old, new), Released("uid-p")]


def test_a_clearing_is_written_after_a_nomination_whose_response_was_lost(stage: Stage) -> None:
    """The watch shows no nomination, but the server may have one."""
    stage.fails("1", "n1")
    first = stage.take()
    stage.fails("2", "")
    stage.calls.finish([Outcome(first, Trigger.UNREACHABLE)])
    second = stage.take()
    patch = stage.patch(second)
    assert patch["nominatedNodeName"] is None
    assert "nominatedNodeName" in patch
    stage.calls.finish([Outcome(second, Trigger.WRITTEN, shown(revision=3))])
    stage.fails("3", "")
    assert "nominatedNodeName" not in stage.patch(stage.take())


@pytest.mark.parametrize("is_bound_before", [False, True])
def test_a_lost_response_does_not_count_once_the_pod_is_bound(stage: Stage, is_bound_before: bool) -> None:
    stage.fails("1", "n1")
    first = stage.take()
    if is_bound_before:
        bound = shown(revision=2)
        bound.spec.nodeName = "n1"
        stage.show(bound)
    stage.calls.finish([Outcome(first, Trigger.UNREACHABLE)])
    if not is_bound_before:
        stage.calls.bound("uid-p")
    stage.calls.finish([Outcome(stage.take(), Trigger.FAILED)])
    stage.fails("2", "")
    assert "nominatedNodeName" not in stage.patch(stage.take())


@pytest.mark.parametrize("is_under_way", [False, True])
def test_a_cleared_nomination_does_not_count_and_keeps_the_condition(
    stage: Stage, is_under_way: bool
) -> None:
    """The failure of the pod is still written, by the call that waits or by the one that is made again."""
    stage.fails("1", "n1")
    first = stage.take() if is_under_way else None
    [renominated] = stage.calls.clear_nomination(shown())
    assert renominated == Renominated(shown(nominated="n1"), shown())
    assert stage.calls.cached(key_of(shown())) == shown()
    if first is not None:
        assert stage.calls.finish([Outcome(first, Trigger.UNREACHABLE)]) == []
    call = stage.take()
    assert (call.purpose, call.message, call.node_name) == (Purpose.STATUS, "1", "")
    assert call.number == 2
    assert stage.patch(call)["conditions"]


def test_a_clearing_alone_is_reported_if_it_is_lost(stage: Stage) -> None:
    stage.show(shown(nominated="n1"))
    stage.calls.clear_nomination(shown(nominated="n1"))
    call = stage.take()
    assert (call.purpose, stage.patch(call)) == (Purpose.CLEAR, {"nominatedNodeName": None})
    outcome = Outcome(call, Trigger.FAILED)
    again = Renominated(shown(), shown(nominated="n1"))
    assert stage.calls.finish([outcome]) == [Lost(outcome), again, Released("uid-p")]


def test_a_binding_does_not_write_the_condition_of_an_earlier_failure(stage: Stage) -> None:
    stage.fails("1")
    stage.calls.decide(nomination(shown(), "n1"))
    assert stage.patch(stage.take()) == {"nominatedNodeName": "n1"}


@pytest.mark.parametrize("is_recreated", [False, True])
def test_no_nomination_of_a_deleted_pod_is_cleared(stage: Stage, is_recreated: bool) -> None:
    stage.pods.clear()
    if is_recreated:
        other = shown()
        other.metadata.uid = "uid-other"
        stage.show(other)
    assert stage.calls.clear_nomination(shown(nominated="n1")) == []
    assert stage.calls.take() == []


def test_a_call_is_compared_with_our_last_write_if_the_watch_is_behind(stage: Stage) -> None:
    stage.fails("1", "n1")
    first = stage.take()
    stage.calls.finish([Outcome(first, Trigger.WRITTEN, shown(revision=5, nominated="n1"))])
    stage.fails("1", "n1")
    assert "nominatedNodeName" not in stage.patch(stage.take())


def test_a_recreated_pod_is_left_alone(stage: Stage) -> None:
    stage.fails("1", "n1")
    first = stage.take()
    other = shown(revision=9)
    other.metadata.uid = "uid-other"
    stage.show(other)
    assert stage.calls.request(first, 0.0).patch is None
    assert stage.calls.finish([Outcome(first, Trigger.WRITTEN, first.pod)]) == [Released("uid-p")]
    assert len(stage.calls.nominations) == 0


def test_a_deleted_pod_leaves_nothing(stage: Stage) -> None:
    stage.fails("1", "n1")
    first = stage.take()
    stage.fails("2", "n2")
    stage.pods.clear()
    assert stage.calls.forget("uid-p") == []
    assert stage.calls.finish([Outcome(first, Trigger.FAILED)])[-1] == Released("uid-p")
    stage.fails("3")
    assert stage.calls.forget("uid-p") == [Released("uid-p")]
    assert (len(stage.calls), len(stage.calls.nominations), stage.calls.take()) == (0, 0, [])


def test_a_transition_that_is_not_in_the_table_shows_the_log(stage: Stage) -> None:
    stage.fails("1")
    stage.fails("2", CLEAR_NOMINATION.node_name)
    with pytest.raises(InvalidTransitionError) as caught:
        stage.calls.finish([Outcome(PodStatusPatch(pod=shown()), Trigger.WRITTEN, shown())])
    assert str(caught.value) == (
        'pod uid-p: no transition from "a call waits" for "written"; '
        "before: a write is decided, a write is decided"
    )
