"""The scheduling cycle decides, assumes and undoes as upstream's does."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from nominee.scheduler.attempts import pod as cycle
from nominee.scheduler.attempts.pod import CLEAR_NOMINATION, Failed, Reason, Scheduled, nomination_after
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    FilterPlugin,
    NominatingInfo,
    NominatingMode,
    PostFilterResult,
    Status,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from tests.scheduler.builders import Desk, Scripted, desk, node, pod

NOMINATE_N1 = NominatingInfo(NominatingMode.Override, "n1")


def run(at: Desk, what: PodInfo, seed: int = 1) -> Scheduled | Failed:
    rng = random.Random(seed)
    return cycle.run(at.framework, at.cache, CycleState(), what, start=0, percentage=None, rng=rng)


def failed(outcome: Scheduled | Failed) -> Failed:
    assert isinstance(outcome, Failed), outcome
    return outcome


def scheduled(outcome: Scheduled | Failed) -> Scheduled:
    assert isinstance(outcome, Scheduled), outcome
    return outcome


def test_the_pod_is_assumed_and_leaves_the_nominator() -> None:
    at = desk()
    at.add_nodes(node("n1"))
    what = pod("p", nominated="n1")
    at.nominator.add(what)
    assert scheduled(run(at, what)).node_name == "n1"
    assert at.cache.is_assumed(what.uid)
    assert at.cache.node_of(what.uid) == "n1"
    assert len(at.nominator) == 0


def test_assumed_pods_fill_their_nodes_for_the_next() -> None:
    at = desk()
    at.add_nodes(node("n1", cpu="1"), node("n2", cpu="1"))
    chosen = {scheduled(run(at, pod(name))).node_name for name in ("a", "b")}
    assert chosen == {"n1", "n2"}
    assert failed(run(at, pod("c"))).message == "0/2 nodes are available: 2 Insufficient cpu."


def test_equal_nodes_are_chosen_by_the_given_randomness() -> None:
    def choices(seed: int) -> str:
        at = desk()
        at.add_nodes(*(node(f"n{i}") for i in range(8)))
        return scheduled(run(at, pod("p"), seed)).node_name

    assert choices(3) == choices(3)
    assert len({choices(seed) for seed in range(30)}) > 3


@dataclass(frozen=True)
class Nominated:
    name: str
    nominated: str
    want: str


@pytest.mark.parametrize(
    "case",
    [
        # n2 is the better node for every pod: n1 is half full.
        Nominated("the nominated node is taken though another one is better", "n1", "n1"),
        Nominated("a missing nominated node is ignored", "n9", "n2"),
        Nominated("a nominated node that is full is left for the others", "n3", "n2"),
        Nominated("no nomination", "", "n2"),
    ],
    ids=lambda case: case.name,
)
def test_nominated_node_first(case: Nominated) -> None:
    at = desk()
    at.add_nodes(node("n1"), node("n2"), node("n3", cpu="500m"))
    at.cache.add_pod(pod("there", cpu="2", on="n1"))
    outcome = scheduled(run(at, pod("p", nominated=case.nominated)))
    assert outcome.node_name == case.want


def test_room_is_left_for_nominated_pods_of_equal_or_higher_priority() -> None:
    at = desk()
    at.add_nodes(node("n1", cpu="1"))
    at.nominator.add(pod("nominated", nominated="n1", priority=5))
    assert failed(run(at, pod("equal", priority=5))).reason is Reason.UNSCHEDULABLE
    assert failed(run(at, pod("lower", priority=1))).unschedulable_plugins == {"NodeResourcesFit"}
    assert scheduled(run(at, pod("higher", priority=6))).node_name == "n1"


def test_no_nodes_at_all() -> None:
    outcome = failed(run(desk(), pod("p", nominated="n1")))
    assert outcome.message == "no nodes available to schedule pods"
    assert outcome.reason is Reason.UNSCHEDULABLE
    assert outcome.nominating == CLEAR_NOMINATION
    assert not outcome.unschedulable_plugins


def test_the_message_counts_reasons_in_upstreams_order() -> None:
    at = desk()
    taint = {"key": "k", "effect": "NoSchedule"}
    at.add_nodes(
        *(node(f"small{i}", cpu="500m") for i in range(3)),
        *(node(f"tainted{i}", taints=[taint]) for i in range(2)),
    )
    outcome = failed(run(at, pod("p")))
    assert outcome.message == (
        "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu."
    )
    assert outcome.unschedulable_plugins == {"NodeResourcesFit", "TaintToleration"}


@dataclass(frozen=True)
class AfterPostFilter:
    name: str
    result: PostFilterResult | None
    status: Status | None
    want_nominating: NominatingInfo | None
    want_message: str


NO_FIT = "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.parametrize(
    "case",
    [
        AfterPostFilter(
            "success nominates, without a word", PostFilterResult(NOMINATE_N1), None, NOMINATE_N1, NO_FIT
        ),
        AfterPostFilter(
            "no candidate clears",
            PostFilterResult(CLEAR_NOMINATION),
            Status(Code.Unschedulable, ("preemption: no",)),
            CLEAR_NOMINATION,
            f"{NO_FIT} preemption: no",
        ),
        AfterPostFilter(
            "not eligible (preemptionPolicy Never, victims terminating) keeps",
            None,
            Status(Code.Unschedulable, ("not eligible",)),
            None,
            f"{NO_FIT} not eligible",
        ),
        AfterPostFilter("an error keeps", None, Status(Code.Error, ("boom",)), None, f"{NO_FIT} boom"),
    ],
    ids=lambda case: case.name,
)
def test_post_filter(case: AfterPostFilter) -> None:
    scripted = Scripted(post=(case.result, case.status))
    at = desk(scripted)
    at.add_nodes(node("n1", cpu="500m"))
    outcome = failed(run(at, pod("p")))
    assert outcome.nominating == case.want_nominating
    assert outcome.message == case.want_message
    assert outcome.reason is Reason.UNSCHEDULABLE


def test_without_post_filter_a_failure_clears() -> None:
    at = desk()
    at.add_nodes(node("n1", cpu="500m"))
    assert failed(run(at, pod("p"))).nominating == CLEAR_NOMINATION


@dataclass(frozen=True)
class Rejected:
    name: str
    plugin: Scripted
    want: Failed


@pytest.mark.parametrize(
    "case",
    [
        Rejected(
            "reserve rejects",
            Scripted(reserve_status=Status(Code.Unschedulable, ("taken",))),
            Failed(
                Reason.UNSCHEDULABLE,
                "0/1 nodes are available: 1 taken.",
                CLEAR_NOMINATION,
                frozenset({"Scripted"}),
            ),
        ),
        Rejected(
            "reserve errs",
            Scripted(reserve_status=Status(Code.Error, ("boom",))),
            Failed(Reason.SCHEDULER_ERROR, 'running Reserve plugin "Scripted": boom', CLEAR_NOMINATION),
        ),
        Rejected(
            "permit rejects as pending",
            Scripted(permit_status=(Status(Code.Pending, ("later",)), 0.0)),
            Failed(
                Reason.UNSCHEDULABLE,
                "0/1 nodes are available: 1 later.",
                CLEAR_NOMINATION,
                pending_plugins=frozenset({"Scripted"}),
            ),
        ),
    ],
    ids=lambda case: case.name,
)
def test_a_rejection_after_the_choice_is_undone(case: Rejected) -> None:
    at = desk(case.plugin)
    at.add_nodes(node("n1"))
    what = pod("p")
    assert run(at, what) == case.want
    assert case.plugin.calls[-1] == "unreserve n1"
    assert not at.cache.is_assumed(what.uid)


def test_permit_may_wait() -> None:
    at = desk(Scripted(permit_status=(Status(Code.Wait), 7.0)))
    at.add_nodes(node("n1"))
    outcome = scheduled(run(at, pod("p")))
    assert outcome.waits == {"Scripted": 7.0}
    assert at.cache.is_assumed("uid-p")


@pytest.mark.parametrize(
    ("nominating", "keeps", "want"),
    [
        (CLEAR_NOMINATION, False, CLEAR_NOMINATION),
        (CLEAR_NOMINATION, True, None),  # 1.34 never clears
        (NOMINATE_N1, True, NOMINATE_N1),  # but moves
        (None, False, None),
    ],
)
def test_nomination_after_a_failure(
    nominating: NominatingInfo | None, keeps: bool, want: NominatingInfo | None
) -> None:
    assert nomination_after(nominating, keeps_nominations=keeps) == want


class Broken(FilterPlugin):
    name = "Broken"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        raise AttributeError("nodeNam")


def test_an_exception_of_a_plugin_is_an_error_status_with_its_name() -> None:
    at = desk(Broken())
    at.add_nodes(node("n1"))
    outcome = failed(run(at, pod("p")))
    assert outcome.reason is Reason.SCHEDULER_ERROR
    assert "AttributeError: nodeNam" in outcome.message
    assert isinstance(outcome.error, AttributeError)
    assert outcome.error.__traceback__ is not None


class Failing(FilterPlugin):
    name = "Failing"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return Status(Code.Error, ("CEL runtime error: no such key: x",))


def test_an_error_status_leaves_no_traceback() -> None:
    at = desk(Failing())
    at.add_nodes(node("n1"))
    outcome = failed(run(at, pod("p")))
    assert outcome.message == 'running "Failing" filter plugin: CEL runtime error: no such key: x'
    assert outcome.reason is Reason.SCHEDULER_ERROR
    assert outcome.error is None
