"""Options of components."""

from __future__ import annotations

import click
import pytest

from nominee.machinery.process.option_types import Duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5m", 300.0), ("1h30m", 5400.0), ("0", 0.0), ("500ms", 0.5), ("1.5s", 1.5), ("1m0.5s", 60.5)],
)
def test_durations(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "5mx", "x5m"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no duration; write 500ms"):
        Duration().convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "above_zero", "message"),
    [("-5m", False, "must not be negative"), ("0s", True, "must be positive"), ("-1s", True, "be positive")],
)
def test_durations_out_of_bounds(text: str, above_zero: bool, message: str) -> None:
    with pytest.raises(click.BadParameter, match=message):
        Duration(above_zero=above_zero).convert(text, None, None)
