"""The cases of an exploration, their order, and their identifiers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nominee.lab.chaos.cases.case import Case, CaseError
from nominee.lab.chaos.cases.enumeration import Scope, pairs, singles
from nominee.lab.chaos.cases.exploration import Exploration
from nominee.lab.chaos.cases.observations import Activity
from nominee.lab.chaos.cases.perturbations import (
    Action,
    AtFailpoint,
    Jump,
    Loss,
    Move,
    OfCall,
    OfWatch,
    Partition,
    ToServer,
    View,
)
from nominee.lab.chaos.cases.verdict import CaseResult, Verdict

ACTIVITY = Activity(
    hits={"scheduler": {"scheduler.bind.before": 1, "scheduler.bind.after": 4, "scheduler.status.after": 0}}
)


@pytest.mark.parametrize(
    "text",
    [
        "scheduler:scheduler.bind.after=crash",
        "kubelet-0:kubelet.node-status.before=error@3",
        "scheduler:pods=stale@2",
        "kubelet-0:apiserver-1=travel@3",
        "kubelet-0:process=restart@5",
        "kubelet-0:process=away@2",
        "scheduler:scheduler.bind.before=remove",
        "scheduler:apiserver.Bind.pods=lose-response@2",
        "scheduler:apiserver.Bind.pods=lose-responses",
        "scheduler:apiserver.Bind.pods=conflict@3",
        "kubelet-0:apiserver-1=cut@3",
        "autoscaler:cloud.NodeGroupIncreaseSize=hang",
        "controllers:clock=behind@4",
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
    assert (
        AtFailpoint("scheduler", "scheduler.bind.after", Action.CRASH, 3).failpoint_action == "2*off->1*crash"
    )
    assert AtFailpoint("scheduler", "scheduler.bind.after", Action.ERROR).failpoint_action == "1*error(503)"


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_every_action_at_one_hit_then_at_the_other(seed: int) -> None:
    found = list(map(str, singles(ACTIVITY, Scope(actions=(Action.CRASH, Action.ERROR), seed=seed))))
    before, after = "scheduler:scheduler.bind.before", "scheduler:scheduler.bind.after"
    texts = [each.partition("@")[0] for each in found]
    assert sorted(texts[:4]) == [f"{after}=crash", f"{after}=error", f"{before}=crash", f"{before}=error"]
    assert texts[4:] == [f"{after}=crash", f"{after}=error"]
    hits = {each.partition("@")[2] for each in found if each.startswith(after)}
    assert hits in ({"", "2"}, {"", "3"}, {"", "4"}), "the first hit, and a later one"


def test_which_hit_comes_first_is_drawn() -> None:
    runs = [list(map(str, singles(ACTIVITY, Scope(actions=(Action.CRASH,), seed=n))))[:2] for n in range(40)]
    firsts = [each.partition("@")[2] for run in runs for each in run if "bind.after" in each]
    assert set(firsts) == {"", "2", "3", "4"}


def test_processes_take_turns() -> None:
    hits = {"apiserver": {"a.x": 1, "a.y": 1}, "scheduler": {"s.x": 1}, "kubelet-0": {"k.x": 1, "k.y": 1}}
    found = [str(each).split("=")[0] for each in singles(Activity(hits=hits), Scope(actions=(Action.CRASH,)))]
    assert [each.split(":")[0] for each in found] == [
        "apiserver",
        "scheduler",
        "kubelet-0",
        "apiserver",
        "kubelet-0",
    ]


def test_more_hits_of_each_failpoint_on_request() -> None:
    hits = {"scheduler": {"scheduler.bind.after": 5, "scheduler.bind.before": 1}}
    found = [
        str(each) for each in singles(Activity(hits=hits), Scope(actions=(Action.CRASH,), hits=9, seed=1))
    ]
    each = [f"scheduler:scheduler.bind.after=crash{at}" for at in ("", "@2", "@3", "@4", "@5")]
    assert sorted(found) == [*each, "scheduler:scheduler.bind.before=crash"]


def test_a_pattern_selects_cases() -> None:
    assert [str(each) for each in singles(ACTIVITY, Scope(only=("*before=crash",)))] == [
        "scheduler:scheduler.bind.before=crash"
    ]


CALLS = {
    "apiserver": {"etcd.Txn": 9, "etcd.Watch": 1},
    "scheduler": {
        "apiserver.Bind.pods": 1,
        "apiserver.Watch.pods": 1,
        "apiserver.Watch.csinodes.storage.k8s.io": 1,
    },
    "autoscaler": {"apiserver.Watch.nodes": 1, "cloud.NodeGroups": 3},
}
RUN = Activity(calls=CALLS, kinds=("pods", "nodes"), launches={"autoscaler": 2})


def scope(**fields: object) -> Scope:
    """Return a scope of these kinds of disturbance alone."""
    kinds = ("actions", "views", "losses", "partitions", "jumps", "moves")
    empty: dict[str, object] = {**dict.fromkeys(kinds, ()), "hits": 1}
    return Scope(**{**empty, **fields})  # type: ignore[arg-type]  # fields of several types


def test_watches_of_what_changed_are_changed_from_each_step_on() -> None:
    found = singles(RUN, scope(views=(View.STALE, View.MERGE, View.SILENT), steps=(2, 5)))
    assert {str(each) for each in found} == {
        "apiserver:etcd=stale@2",
        "apiserver:etcd=stale@5",
        "scheduler:pods=stale@2",
        "scheduler:pods=stale@5",
        # It is started by step 2.
        "autoscaler:nodes=stale@5",
        "scheduler:pods=merge@2",
        "scheduler:pods=merge@5",
        "autoscaler:nodes=merge@5",
        "scheduler:pods=silent@2",
        "scheduler:pods=silent@5",
        "autoscaler:nodes=silent@5",
    }
    orders = [
        list(map(str, singles(RUN, scope(views=(View.STALE,), steps=(2, 5), seed=n)))) for n in (1, 1, 2)
    ]
    assert orders[0] == orders[1] != orders[2], "drawn from the seed"


def test_a_process_that_the_scenario_has_stopped_is_not_disturbed() -> None:
    absent = frozenset({("scheduler", 3)})
    found = singles(RUN, scope(views=(View.STALE,), jumps=(Jump.AHEAD,), steps=(2, 3, 5), absent=absent))
    steps = {str(each).partition("@")[2] for each in found if str(each).startswith("scheduler:")}
    assert steps == {"2", "5"}


def test_each_sort_of_calls_fails() -> None:
    found = singles(RUN, scope(losses=(Loss.HANG, Loss.LOSE_RESPONSE)))
    assert {str(each).partition("@")[0] for each in found} == {
        "apiserver:etcd.Txn=hang",
        "scheduler:apiserver.Bind.pods=hang",
        "autoscaler:cloud.NodeGroups=hang",
        "apiserver:etcd.Txn=lose-response",
        # A read whose answer is lost is as one that was lost itself.
        "scheduler:apiserver.Bind.pods=lose-response",
    }
    (later,) = singles(RUN, scope(losses=(Loss.SLOW,), hits=2, only=("*Txn=slow@*",)))
    (call,) = later.perturbations
    assert isinstance(call, OfCall)
    assert call.fault_action == f"{call.number - 1}*off->1*delay(1500)"


def test_repetitions_of_a_call_fail_with_it() -> None:
    losses = (Loss.LOSE_REQUESTS, Loss.LOSE_RESPONSES)
    found = singles(RUN, scope(losses=losses, only=("*Bind*", "*NodeGroups=*")))
    calls = [each for case in found for each in case.perturbations if isinstance(each, OfCall)]
    assert {str(each): each.fault_action for each in calls} == {
        "scheduler:apiserver.Bind.pods=lose-requests": "6*cut",
        "scheduler:apiserver.Bind.pods=lose-responses": "6*cut-response",
        "autoscaler:cloud.NodeGroups=lose-requests": "6*cut",
    }


def test_calls_that_write_an_object_are_overtaken() -> None:
    assert [str(each) for each in singles(RUN, scope(losses=(Loss.CONFLICT,)))] == [
        "scheduler:apiserver.Bind.pods=conflict",
    ]


def test_each_process_is_cut_off_from_each_server_that_it_calls() -> None:
    found = singles(RUN, scope(partitions=(Partition.CUT,), steps=(2, 5)))
    assert [str(each) for each in found] == [
        "apiserver:etcd=cut@2",
        "apiserver:etcd=cut@5",
        "scheduler:apiserver=cut@2",
        "scheduler:apiserver=cut@5",
        # It is started by step 2.
        "autoscaler:apiserver=cut@5",
        "autoscaler:cloud=cut@5",
    ]


def test_clocks_of_all_processes_but_the_api_servers_and_the_cloud_jump() -> None:
    run = replace(RUN, calls={**CALLS, "cloud": {"apiserver.Watch.nodes": 1}})
    assert [str(each) for each in singles(run, scope(jumps=(Jump.AHEAD,), steps=(1, 3)))] == [
        "scheduler:clock=ahead",
        "scheduler:clock=ahead@3",
        "autoscaler:clock=ahead@3",
    ]


def test_processes_are_restarted_before_later_steps_than_their_first() -> None:
    found = singles(RUN, scope(actions=(Action.CRASH,), steps=(1, 3, 5), only=("*=restart*",)))
    assert {str(each) for each in found[:3]} == {
        "apiserver:process=restart@5",
        "scheduler:process=restart@5",
        "autoscaler:process=restart@5",
    }, "later steps come first"
    assert {str(each) for each in found[3:]} == {
        "apiserver:process=restart@3",
        "scheduler:process=restart@3",
    }, "the autoscaler is started by step 2"
    assert all(each.killed == each.components for each in found)
    assert singles(RUN, scope(actions=(), steps=(1, 3, 5), only=("*=restart*",))) == []


def test_failpoints_that_the_scenario_arms_are_left_to_it() -> None:
    own = frozenset({("scheduler", "scheduler.bind.after")})
    found = singles(ACTIVITY, scope(actions=(Action.CRASH,), except_failpoints=own))
    assert [str(each) for each in found] == ["scheduler:scheduler.bind.before=crash"]


def test_pairs_of_two_processes_come_first() -> None:
    hits = {"scheduler": {"s.a": 1, "s.b": 1, "s.c": 1}, "kubelet-0": {"k.a": 1, "k.b": 1}}
    found = list(pairs(singles(Activity(hits=hits), scope(actions=(Action.CRASH,))), scope(seed=3)))
    assert [len(each.components) for each in found] == [2] * 6 + [1] * 4


def run_all(exploration: Exploration, broken: set[str], limit: int = 1000) -> list[str]:
    """Run an exploration in which these cases break; return the identifiers of all cases."""
    ran: list[str] = []
    while (case := exploration.next_case()) is not None and len(ran) < limit:
        ran.append(str(case))
        exploration.record(
            CaseResult(case=case, verdict=Verdict.BROKEN if str(case) in broken else Verdict.HELD)
        )
    return ran


def test_perturbations_of_several_processes_share_a_run() -> None:
    hits = {name: {f"{name}.x{number}": 1 for number in range(9)} for name in ("a", "b", "c")}
    exploration = Exploration(Activity(hits=hits), scope(actions=(Action.CRASH,), together=2))
    ran = run_all(exploration, set())
    parts = [part for each in ran for part in each.split("+")]
    assert sorted(parts) == sorted(set(parts)), "each once"
    assert len(parts) == 27
    assert all("+" not in each for each in ran[:6])
    assert 5 < sum("+" in each for each in ran) < 15
    assert all(len({part.split(":")[0] for part in each.split("+")}) == len(each.split("+")) for each in ran)


@pytest.mark.parametrize("verdict", [Verdict.UNREACHED, Verdict.ACCEPTED])
def test_the_parts_of_a_run_that_says_nothing_about_them_are_run_alone(verdict: Verdict) -> None:
    hits = {name: {f"{name}.x{number}": 1 for number in range(9)} for name in ("a", "b", "c")}
    exploration = Exploration(Activity(hits=hits), scope(actions=(Action.CRASH,), together=2))
    for _ in range(6):
        case = exploration.next_case()
        assert case is not None
        exploration.record(CaseResult(case=case, verdict=Verdict.HELD))
    both = exploration.next_case()
    assert both is not None
    assert len(both.perturbations) == 2
    exploration.record(CaseResult(case=both, verdict=verdict))
    following = [exploration.next_case() for _ in range(2)]
    assert [str(each) for each in following] == str(both).split("+")


def test_pairs_come_last_and_leave_out_what_breaks_alone() -> None:
    allowed = Scope(actions=(Action.CRASH, Action.ERROR), pairs=True)
    bad = "scheduler:scheduler.bind.after=crash"
    ran = run_all(
        Exploration(
            Activity(hits={"scheduler": {"scheduler.bind.before": 1, "scheduler.bind.after": 1}}), allowed
        ),
        {bad},
    )
    assert len(ran[:4]) == len({*ran[:4]}) == 4
    assert all("+" in each for each in ran[4:])
    assert not any(bad in each for each in ran[4:])
    # One of three remaining pairs is of the same failpoint: two actions at one hit.
    assert len(ran[4:]) == 2


def test_the_order_of_pairs_is_drawn_from_the_seed() -> None:
    hits = {"scheduler": {f"scheduler.p{index}": 1 for index in range(6)}}
    cases = singles(Activity(hits=hits), Scope(actions=(Action.CRASH,)))
    one, same, other = (list(pairs(cases, Scope(seed=seed))) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    assert {*one} == {*other}


def test_the_smallest_broken_case_is_reported_first() -> None:
    exploration = Exploration(Activity(), Scope())
    texts = ["a:a.x=crash+b:b.x=crash", "a:a.x=crash@7", "b:b.x=crash"]
    for text in texts:
        exploration.record(CaseResult(case=Case.parse(text), verdict=Verdict.BROKEN))
    exploration.record(CaseResult(case=Case.parse("c:c.x=crash"), verdict=Verdict.HELD))
    assert [str(each.case) for each in exploration.broken()] == texts[::-1]


def test_without_pairs_an_exploration_ends() -> None:
    exploration = Exploration(ACTIVITY, Scope(actions=(Action.CRASH,)))
    assert len(run_all(exploration, set())) == exploration.single_count == 3
    assert exploration.left == 0


def test_a_watch_has_a_kind_and_a_step() -> None:
    assert Case.parse("scheduler:pods=relist@3").perturbations == (
        OfWatch("scheduler", "pods", View.RELIST, 3),
    )


def test_processes_move_to_the_server_that_lags() -> None:
    moves = Scope(
        actions=(), views=(), steps=(2, 5), served=("scheduler", "kubelet-0"), lagging="apiserver-1"
    )
    found = singles(Activity(), moves)
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
    assert len(list(pairs(found, moves))) == 4 * 4
    assert singles(Activity(), Scope(actions=(), views=(), steps=(2,), served=("scheduler",))) == []
