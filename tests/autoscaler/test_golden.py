"""Recorded decisions of the real cluster autoscaler (README of the golden data).

A case passes if every field of every step equals one of its recorded answers. Cases with nominated pods are
replayed twice: as 1.36, and as the same code without kubernetes/autoscaler#9607.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from autoscaler.options import Compat
from tests.autoscaler import golden

# Cases that are expected to fail, by name, with the reason; each must fail.
NOT_YET: dict[str, str] = {}
_CASES = [
    (case, compat)
    for case in golden.load()
    for compat in (Compat.V1_36, Compat.V1_35)
    if compat is Compat.V1_36 or "expect_1_35" in case
]
_passed: Counter[str] = Counter()
_failed: Counter[str] = Counter()


@pytest.mark.parametrize(
    ("case", "compat"), [pytest.param(c, v, id=f"{c['name']}@{v.value}") for c, v in _CASES]
)
async def test_decisions_are_as_recorded(case: dict[str, Any], compat: Compat) -> None:
    actual = await golden.replay(case, compat)
    differences = min(
        (golden.differences(actual, recorded) for recorded in golden.expected(case, compat)), key=len
    )
    (_failed if differences else _passed)[case["family"]] += 1
    if case["name"] in NOT_YET:
        assert differences, f"{case['name']} passes now: take it off the list"
        pytest.xfail(NOT_YET[case["name"]])
    assert not differences, "\n    ".join([case["name"], *differences])


def test_all_cases_were_replayed() -> None:
    for family in sorted({case["family"] for case, _ in _CASES}):
        print(f"{family:24} passed {_passed[family]:3} failed {_failed[family]:3}")
    print(f"not yet: {NOT_YET}")
    assert sum(_failed.values()) == sum(case["name"] in NOT_YET for case, _ in _CASES)
    assert sum(_passed.values()) + sum(_failed.values()) == len(_CASES)
    assert len(_CASES) > 100
