"""The pods of a trial, and the evictions that it needs."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.lab.study.plans import RESIZER_PRIORITY, draw, draw_four_pods, most_victims, needed_victims
from nominee.lab.study.settings import NODE_CPU

CANDIDATES = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 20)), max_size=7)


def test_more_important_pods_are_put_back_first() -> None:
    assert needed_victims(2, [(10, 2), (5, 1)]) == [0]
    assert needed_victims(1, [(10, 2), (5, 1)]) == [1]


def test_among_pods_of_equal_priority_the_order_decides_how_many_go() -> None:
    assert len(needed_victims(2, [(10, 2), (10, 1), (10, 1)])) == 2
    assert len(needed_victims(2, [(10, 1), (10, 1), (10, 2)])) == 1
    assert most_victims(2, [(10, 1), (10, 1), (10, 2)]) == 2


@pytest.mark.parametrize("missing", [0, -1, 4])
def test_no_victims_when_none_are_needed_or_all_are_not_enough(missing: int) -> None:
    assert needed_victims(missing, [(10, 2), (5, 1)]) == []


@given(CANDIDATES, st.integers(1, 60))
def test_victims_make_room_and_none_of_them_could_stay(
    candidates: list[tuple[int, int]], missing: int
) -> None:
    victims = needed_victims(missing, candidates)
    freed = sum(candidates[index][1] for index in victims)
    if victims:
        assert freed >= missing
        assert all(freed - candidates[index][1] < missing for index in victims)
    else:
        assert not any(
            sum(cpu for _, cpu in chosen) >= missing
            for size in range(len(candidates) + 1)
            for chosen in combinations(candidates, size)
        )


@pytest.mark.parametrize("seed", range(50))
def test_a_plan_fits_its_node_and_its_resize_needs_victims(seed: int) -> None:
    plan = draw(seed, "x", (1.0, 2.0))
    present = sum(pod.cpu for pod in plan.pods)
    assert present <= NODE_CPU
    grown = present + plan.resizer.desired_cpu - plan.resizer.cpu
    assert grown > NODE_CPU
    assert grown - sum(pod.cpu for pod in plan.candidates) <= NODE_CPU
    assert plan.needed >= 1
    assert all(pod.priority < RESIZER_PRIORITY for pod in plan.candidates)
    assert plan == draw(seed, "x", (1.0, 2.0))


@pytest.mark.parametrize("seed", range(50))
def test_one_of_four_pods_has_to_go(seed: int) -> None:
    plan = draw_four_pods(seed, "x")
    x = plan.resizer.desired_cpu
    assert [pod.desired_cpu for pod in plan.candidates] == [2 * x] * 3
    assert sum(pod.cpu for pod in plan.pods) == NODE_CPU
    assert plan.needed == 1
