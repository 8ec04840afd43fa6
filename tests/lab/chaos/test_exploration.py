"""The cases of an exploration, their order, and their identifiers."""

from __future__ import annotations

import pytest

from nominee.lab.chaos.cases.case import Action, AtFailpoint, Case, CaseError, Move, OfWatch, ToServer, View
from nominee.lab.chaos.cases.exploration import Exploration, Scope, pairs, singles
from nominee.lab.chaos.cases.verdict import CaseResult, Verdict

HITS = {"scheduler": {"scheduler.bind.before": 1, "scheduler.bind.after": 4, "scheduler.status.after": 0}}


@pytest.mark.parametrize(
    "text",
    [
        "scheduler:scheduler.bind.after=crash",
        "kubelet-0:kubelet.node-status.before=error@3",
        "scheduler:pods=stale@2",
        "kubelet-0:apiserver-1=travel@3",
        "apiserver:apiserver.write.after=delay+scheduler:nodes=relist",
    ],
)
def test_an_identifier_is_read_as_it_is_written(text: str) -> None:
    assert str(Case.parse(text)) == text


def test_the_order_of_perturbations_does_not_change_a_case() -> None:
    assert Case.parse("b:b.x=crash+a:a.x=error") == Case.parse("a:a.x=error+b:b.x=crash")


@pytest.mark.parametrize("text", ["scheduler", "scheduler:x=explode", "a:b=crash@0", "a:b=crash@x"])
def test_nonsense_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(CaseError, match=r"expected|not one of"):
        Case.parse(text)


def test_a_later_hit_is_reached_by_a_chain() -> None:
    assert AtFailpoint("scheduler", "scheduler.bind.after", Action.CRASH, 3).armed() == "2*off->1*crash"
    assert AtFailpoint("scheduler", "scheduler.bind.after", Action.ERROR).armed() == "1*error(503)"


def test_every_action_at_the_first_hit_then_at_a_later_one() -> None:
    found = singles(HITS, Scope(actions=(Action.CRASH, Action.ERROR), seed=1))
    firsts, laters = found[:4], found[4:]
    assert [str(each) for each in firsts] == [
        "scheduler:scheduler.bind.after=crash",
        "scheduler:scheduler.bind.before=crash",
        "scheduler:scheduler.bind.after=error",
        "scheduler:scheduler.bind.before=error",
    ]
    hits = {each.perturbations[0].hit for each in laters if isinstance(each.perturbations[0], AtFailpoint)}
    assert len(laters) == 2
    assert hits <= {2, 3, 4}
    assert len(hits) == 1


def test_processes_take_turns() -> None:
    hits = {"apiserver": {"a.x": 1, "a.y": 1}, "scheduler": {"s.x": 1}, "kubelet-0": {"k.x": 1, "k.y": 1}}
    found = [str(each).split("=")[0] for each in singles(hits, Scope(actions=(Action.CRASH,)))]
    assert found == ["apiserver:a.x", "scheduler:s.x", "kubelet-0:k.x", "apiserver:a.y", "kubelet-0:k.y"]


def test_more_hits_of_each_failpoint_on_request() -> None:
    hits = {"scheduler": {"scheduler.bind.after": 5, "scheduler.bind.before": 1}}
    found = [str(each) for each in singles(hits, Scope(actions=(Action.CRASH,), hits=9, seed=1))]
    laters = [f"scheduler:scheduler.bind.after=crash@{hit}" for hit in (2, 3, 4, 5)]
    assert found == ["scheduler:scheduler.bind.after=crash", "scheduler:scheduler.bind.before=crash", *laters]


def test_a_pattern_selects_cases() -> None:
    assert [str(each) for each in singles(HITS, Scope(only=("*before=crash",)))] == [
        "scheduler:scheduler.bind.before=crash"
    ]


def test_watches_are_changed_from_each_step_on() -> None:
    scope = Scope(actions=(), views=(View.STALE,), watched={"scheduler": ("pods",)}, steps=(2, 5))
    assert [str(each) for each in singles({}, scope)] == ["scheduler:pods=stale@2", "scheduler:pods=stale@5"]


def run_all(exploration: Exploration, broken: set[str], limit: int = 1000) -> list[str]:
    """Run an exploration in which these cases break; return the identifiers of all cases."""
    ran: list[str] = []
    while (case := exploration.next_case()) is not None and len(ran) < limit:
        ran.append(str(case))
        exploration.record(
            CaseResult(case=case, verdict=Verdict.BROKEN if str(case) in broken else Verdict.HELD)
        )
    return ran


def test_pairs_come_last_and_leave_out_what_breaks_alone() -> None:
    scope = Scope(actions=(Action.CRASH, Action.ERROR), pairs=True)
    bad = "scheduler:scheduler.bind.after=crash"
    ran = run_all(
        Exploration({"scheduler": {"scheduler.bind.before": 1, "scheduler.bind.after": 1}}, scope), {bad}
    )
    assert len(ran[:4]) == len({*ran[:4]}) == 4
    assert all("+" in each for each in ran[4:])
    assert not any(bad in each for each in ran[4:])
    # One of three remaining pairs is of the same failpoint: two actions at one hit.
    assert len(ran[4:]) == 2


def test_the_order_of_pairs_is_drawn_from_the_seed() -> None:
    hits = {"scheduler": {f"scheduler.p{index}": 1 for index in range(6)}}
    cases = singles(hits, Scope(actions=(Action.CRASH,)))
    one, same, other = (list(pairs(cases, Scope(seed=seed))) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    assert {*one} == {*other}


def test_the_smallest_broken_case_is_reported_first() -> None:
    exploration = Exploration({}, Scope())
    texts = ["a:a.x=crash+b:b.x=crash", "a:a.x=crash@7", "b:b.x=crash"]
    for text in texts:
        exploration.record(CaseResult(case=Case.parse(text), verdict=Verdict.BROKEN))
    exploration.record(CaseResult(case=Case.parse("c:c.x=crash"), verdict=Verdict.HELD))
    assert [str(each.case) for each in exploration.broken()] == texts[::-1]


def test_without_pairs_an_exploration_ends() -> None:
    exploration = Exploration(HITS, Scope(actions=(Action.CRASH,)))
    assert len(run_all(exploration, set())) == exploration.single_count == 3
    assert exploration.left == 0


def test_a_watch_has_a_kind_and_a_step() -> None:
    assert Case.parse("scheduler:pods=relist@3").perturbations == (
        OfWatch("scheduler", "pods", View.RELIST, 3),
    )


def test_processes_move_to_the_server_that_lags() -> None:
    scope = Scope(
        actions=(), views=(), steps=(2, 5), served=("scheduler", "kubelet-0"), lagging="apiserver-1"
    )
    found = singles({}, scope)
    assert [str(each) for each in found] == [
        "scheduler:apiserver-1=travel@2",
        "scheduler:apiserver-1=travel@5",
        "kubelet-0:apiserver-1=travel@2",
        "kubelet-0:apiserver-1=travel@5",
        "scheduler:apiserver-1=switch@2",
        "scheduler:apiserver-1=switch@5",
        "kubelet-0:apiserver-1=switch@2",
        "kubelet-0:apiserver-1=switch@5",
    ]
    assert found[-1].perturbations == (ToServer("kubelet-0", "apiserver-1", Move.SWITCH, 5),)
    # A process moves to a server once.
    assert len(list(pairs(found, scope))) == 4 * 4
    assert singles({}, Scope(actions=(), views=(), steps=(2,), served=("scheduler",))) == []
