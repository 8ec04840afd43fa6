"""Statuses as authors of plugins write them."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.scheduler.framework.interface import Code, Status


@pytest.mark.parametrize(
    ("given", "reasons"),
    [
        ("3 errors", ("3 errors",)),
        (["a", "b"], ("a", "b")),
        (("a", "b"), ("a", "b")),
        ((each for each in "ab"), ("a", "b")),
        ((), ()),
    ],
)
def test_reasons_are_a_string_or_several(given: Any, reasons: tuple[str, ...]) -> None:
    status = Status(Code.Unschedulable, given)
    assert status.reasons == reasons
    assert status == Status(Code.Unschedulable, reasons)
    assert hash(status) == hash(Status(Code.Unschedulable, reasons))


def test_a_reason_is_a_string() -> None:
    given: Any = ["a", 3]
    with pytest.raises(TypeError, match="the reason 3 of a Status is not a string"):
        Status(Code.Unschedulable, given)


def test_a_wrong_code_names_the_codes() -> None:
    names = "Success, Error, Unschedulable, UnschedulableAndUnresolvable, Wait, Skip, Pending"
    codes: Any = Code
    with pytest.raises(AttributeError, match=f"there is no Code.Unscheduled; the codes are {names}"):
        _ = codes.Unscheduled
    wrong: Any = "Unschedulable"
    with pytest.raises(ValueError, match="'Unschedulable' is no Code"):
        Status(wrong)
    number: Any = 2
    assert Status(number).code is Code.Unschedulable
