"""The order of single cases: kinds take turns, and what showed something new breeds neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.enumeration import Scope, neighbours
from nominee.lab.chaos.cases.exploration import Exploration
from nominee.lab.chaos.cases.observations import Activity
from nominee.lab.chaos.cases.order import Coverage, Order
from nominee.lab.chaos.cases.perturbations import Loss, Perturbation, View
from nominee.lab.chaos.cases.verdict import CaseResult, Verdict

CRASHES = [f"{process}:x.{name}=crash" for process in ("scheduler", "kubelet-0") for name in "abc"]
STALE = [f"scheduler:pods=stale@{step}" for step in range(2, 8)]
CLOCKS = ["kubelet-0:clock=ahead", "kubelet-0:clock=ahead@2"]


def run(
    cases: list[str], novelty: Mapping[str, int], bred: Mapping[str, list[str]] | None = None
) -> list[str]:
    """Run all cases of an order; return their identifiers."""

    def near(each: Perturbation) -> Iterator[Case]:
        yield from map(Case.parse, (bred or {}).get(str(each), []))

    order = Order([Case.parse(text) for text in cases], 1, near, Coverage())
    ran = []
    while (case := order.next_case()) is not None:
        ran.append(str(case))
        order.record(case, novelty.get(str(case), 0))
    assert order.single_left == 0
    return ran


def kinds(ran: list[str]) -> list[str]:
    return [text.partition("=")[2].partition("@")[0] for text in ran]


def test_every_case_runs_once_and_kinds_take_turns() -> None:
    ran = run([*CRASHES, *STALE, *CLOCKS], {})
    assert sorted(ran) == sorted([*CRASHES, *STALE, *CLOCKS])
    assert set(kinds(ran[:3])) == {"crash", "stale", "ahead"}
    assert kinds(ran[3:4]) == ["crash"], "a crash comes twice in a turn"
    crashes = [text.partition(":")[0] for text in ran if text.endswith("crash")]
    assert crashes[0] != crashes[1]
    assert crashes[2:4] == crashes[:2]


def test_what_was_new_breeds_neighbours_before_others() -> None:
    first = run([*CRASHES, *STALE, *CLOCKS], {})[0]
    near = ["apiserver:x.near=error", "apiserver:x.other=error"]
    ran = run([*CRASHES, *STALE, *CLOCKS], {first: 5}, {first: near})
    assert ran[2] == near[0]
    assert ran[5] == near[1]
    assert sorted(ran) == sorted([*CRASHES, *STALE, *CLOCKS, *near])


def test_a_group_that_shows_new_things_has_more_turns() -> None:
    ran = run([*CRASHES, *STALE, *CLOCKS], dict.fromkeys(STALE, 3))
    began = ran.index(STALE[0])
    assert kinds(ran[began : began + 9]).count("stale") >= 5


def test_the_order_of_kinds_is_drawn_from_the_seed() -> None:
    cases = [Case.parse(text) for text in [*CRASHES, *STALE, *CLOCKS]]
    firsts = {str(Order(cases, seed, lambda _: (), Coverage()).next_case()) for seed in range(20)}
    assert len({kinds([first])[0] for first in firsts}) == 3


ACTIVITY = Activity(
    hits={"scheduler": {"x.a": 9}},
    calls={"scheduler": {"apiserver.Bind.pods": 3, "apiserver.Get.leases.coordination.k8s.io": 2}},
)


def near(text: str, **fields: object) -> list[str]:
    scope = Scope(steps=(2, 4, 7), **fields)  # type: ignore[arg-type]  # fields of several types
    return [str(case) for case in neighbours(Case.parse(text).perturbations[0], ACTIVITY, scope)]


def test_neighbours_are_a_little_earlier_or_later_or_at_the_same_place() -> None:
    assert near("scheduler:x.a=crash@3", actions=()) == [
        "scheduler:x.a=crash@2",
        "scheduler:x.a=crash@4",
        "scheduler:x.a=crash@6",
    ]
    assert "scheduler:x.a=pause@3" in near("scheduler:x.a=crash@3")
    assert near("scheduler:pods=stale@4", views=(View.MERGE,)) == [
        "scheduler:pods=stale@2",
        "scheduler:pods=stale@7",
        "scheduler:pods=merge@4",
    ]
    # The scheduler makes three bindings; the answer of a read is no case of its own.
    assert near("scheduler:apiserver.Bind.pods=hang@3", losses=()) == ["scheduler:apiserver.Bind.pods=hang@2"]
    reads = near("scheduler:apiserver.Get.leases=hang", losses=(Loss.SLOW, Loss.LOSE_RESPONSE))
    assert reads == ["scheduler:apiserver.Get.leases=hang@2", "scheduler:apiserver.Get.leases=slow"]
    assert near("scheduler:apiserver=cut@4") == ["scheduler:apiserver=cut@2", "scheduler:apiserver=cut@7"]
    assert near("apiserver:etcd=stale@4", views=(View.MERGE,)) == [
        "apiserver:etcd=stale@2",
        "apiserver:etcd=stale@7",
    ]


def test_a_pattern_holds_for_neighbours() -> None:
    assert near("scheduler:x.a=crash@3", only=("*=crash@4",)) == ["scheduler:x.a=crash@4"]


def test_new_is_what_no_run_before_had() -> None:
    exploration = Exploration(ACTIVITY, Scope(), {"a"})
    held = CaseResult(case=Case.parse("scheduler:x.a=crash"), verdict=Verdict.HELD)
    assert exploration.record(held, {"a", "b", "c"}).novelty == 2
    assert exploration.record(held, {"b", "c", "d"}).novelty == 1


def test_what_another_scenario_disturbed_comes_last() -> None:
    coverage = Coverage()
    coverage.note(Case.parse("kubelet-7:x.a=crash@3+scheduler:x.a=crash"))
    cases = [Case.parse(text) for text in CRASHES if ".c" not in text]
    order = Order(cases, 1, lambda each: iter(()), coverage)
    found = [order.next_case() for _ in cases]
    assert {str(each) for each in found[:2]} == {"scheduler:x.b=crash", "kubelet-0:x.b=crash"}


def test_of_one_kind_each_subject_comes_once_before_one_comes_again() -> None:
    cases = [f"kubelet-0:x.{name}=crash@{hit}" for name in "ab" for hit in (2, 3, 4)]
    ran = run(cases, {})
    assert [text.partition(":x.")[2][0] for text in ran[:2]] in (["a", "b"], ["b", "a"])
    assert sorted(ran) == sorted(cases)
