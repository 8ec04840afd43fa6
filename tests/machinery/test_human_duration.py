"""Durations as kubectl prints them."""

from __future__ import annotations

import pytest

from nominee.machinery.printing.durations import human_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"), (-1.5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (200, "3m20s"),
        (599, "9m59s"),
        (600, "10m"), (3600, "60m"), (10799, "179m"), (10800, "3h"), (3 * 3600 + 60, "3h1m"), (18120, "5h2m"),
        (28800, "8h"), (30 * 3600, "30h"), (172799, "47h"), (172800, "2d"), (180000, "2d2h"), (691200, "8d"),
        (20 * 86400, "20d"), (63072000, "2y"), (64022400, "2y11d"), (800 * 86400, "2y70d"),
        (3000 * 86400, "8y"),
    ],
)  # fmt: skip
def test_human_duration(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text
