"""Recorded decisions of the real cluster autoscaler (README of the golden data), all of them.

A case passes if every field of every step equals one of its recorded answers. Cases with nominated pods are
replayed twice: as 1.36, and as the same code without kubernetes/autoscaler#9607.
"""

from __future__ import annotations

from typing import Any

import pytest

from nominee.autoscaler.options import Compat
from tests.autoscaler import golden
from tests.support.recordings import read

_CASES = [
    (case, compat)
    for case in read("autoscaler.jsonl")
    for compat in (Compat.V1_36, Compat.V1_35)
    if compat is Compat.V1_36 or "expect_1_35" in case
]


@pytest.mark.parametrize(
    ("case", "compat"), [pytest.param(c, v, id=f"{c['name']}@{v.value}") for c, v in _CASES]
)
async def test_decisions_are_as_recorded(case: dict[str, Any], compat: Compat) -> None:
    actual = await golden.replay(case, compat)
    differences = min(
        (golden.differences(actual, recorded) for recorded in golden.expected(case, compat)), key=len
    )
    assert not differences, "\n    ".join([case["name"], *differences])


def test_the_recordings_were_read() -> None:
    assert len(_CASES) > 100
