"""Every pair of values that is possible occurs in the selection."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from nominee.lab.skew.matrix.pairwise import covering

_ROWS = st.lists(st.integers(1, 4), min_size=1, max_size=4).flatmap(
    lambda sizes: st.lists(
        st.sampled_from(list(product(*([str(value) for value in range(size)] for size in sizes)))),
        unique=True,
        max_size=60,
    )
)


def _pairs(rows: list[tuple[str, ...]]) -> set[object]:
    size = min(2, len(rows[0])) if rows else 0
    return {pair for row in rows for pair in combinations(enumerate(row), size)}


@given(_ROWS)
def test_a_selection_has_every_pair_of_its_rows(rows: list[tuple[str, ...]]) -> None:
    chosen = covering(rows)
    assert chosen == sorted(set(chosen))
    assert _pairs([rows[index] for index in chosen]) == _pairs(rows)


def test_a_selection_is_much_smaller_than_the_product() -> None:
    rows = list(product(*(["a", "b", "c", "d"] for _ in range(4))))
    assert len(rows) == 256
    assert 16 <= len(covering(rows)) <= 24


def test_with_one_factor_every_value_is_chosen() -> None:
    assert covering([("a",), ("b",), ("c",)]) == [0, 1, 2]


def test_a_row_without_factors_is_one_cell() -> None:
    assert covering([()]) == [0]
