"""Times that only protobuf can say."""

from __future__ import annotations

import pytest

from nominee.machinery.wire.values.scalars import format_time


@pytest.mark.parametrize(
    ("seconds", "nanos", "micro", "text"),
    [
        (0, 0, False, "1970-01-01T00:00:00Z"),
        (1_700_000_000, 5_000, True, "2023-11-14T22:13:20.000005Z"),
        (-62_135_596_800, 0, False, "0001-01-01T00:00:00Z"),
        (-62_135_596_801, 0, False, "0000-12-31T23:59:59Z"),
        (253_402_300_799, 0, False, "9999-12-31T23:59:59Z"),
        (253_402_300_800, 0, False, "10000-01-01T00:00:00Z"),
        (2**63 - 1, 0, False, "292277026596-12-04T15:30:07Z"),
        (-(2**63), 0, False, "-292277022657-01-27T08:29:52Z"),
        (5, 2**31 - 1, True, "1970-01-01T00:00:07.147483Z"),
        (5, -5, True, "1970-01-01T00:00:04.999999Z"),
    ],
)
def test_any_moment_has_a_text(seconds: int, nanos: int, micro: bool, text: str) -> None:
    """As Go's Time.AppendFormat: also years that RFC 3339 does not know."""
    assert format_time(seconds, nanos, micro=micro) == text
