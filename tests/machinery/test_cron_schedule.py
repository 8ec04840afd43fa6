"""Times of schedules, as robfig/cron's (spec_test.go, constantdelay_test.go, parser_test.go)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nominee.machinery.wire.values.cron_schedule import NEVER, parse


def _time(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _after(schedule: str, after: str, count: int) -> list[str]:
    parsed, times, at = parse(schedule), list[str](), _time(after)
    for _ in range(count):
        at = parsed.next(at)
        times.append(datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    return times


@pytest.mark.parametrize(
    ("schedule", "after", "times"),
    [
        ("*/15 * * * *", "2026-01-01T00:00:00", ["2026-01-01T00:15:00", "2026-01-01T00:30:00"]),
        ("*/15 * * * *", "2026-01-01T00:14:59.5", ["2026-01-01T00:15:00"]),
        ("20-35/15 * * * *", "2026-01-01T23:46:00", ["2026-01-02T00:20:00", "2026-01-02T00:35:00"]),
        ("0 9 * * mon-fri", "2026-01-02T09:00:00", ["2026-01-05T09:00:00"]),
        ("0 0 29 2 *", "2026-01-01T00:00:00", ["2028-02-29T00:00:00"]),
        ("0 0 1 jan,jul *", "2026-01-01T00:00:00", ["2026-07-01T00:00:00", "2027-01-01T00:00:00"]),
        # Days and weekdays: one of them, unless one is a star.
        ("0 0 13 * fri", "2026-01-09T00:00:00", ["2026-01-13T00:00:00", "2026-01-16T00:00:00"]),
        ("0 0 * * fri", "2026-01-09T00:00:00", ["2026-01-16T00:00:00"]),
        ("0 0 */1 * fri", "2026-01-09T00:00:00", ["2026-01-16T00:00:00"]),
        ("0 0 */20 * fri", "2026-01-09T00:00:00", ["2026-01-16T00:00:00", "2026-01-21T00:00:00"]),
        ("@yearly", "2026-01-01T00:00:00", ["2027-01-01T00:00:00"]),
        ("@monthly", "2026-01-01T00:00:00", ["2026-02-01T00:00:00"]),
        ("@weekly", "2026-01-01T00:00:00", ["2026-01-04T00:00:00"]),
        ("@hourly", "2026-01-01T00:00:00", ["2026-01-01T01:00:00"]),
        ("@every 90s", "2026-01-01T00:00:00.5", ["2026-01-01T00:01:30", "2026-01-01T00:03:00"]),
        ("@every 10ms", "2026-01-01T00:00:00", ["2026-01-01T00:00:01"]),
        ("@every 1h30m1.5s", "2026-01-01T00:00:00", ["2026-01-01T01:30:01"]),
        # Clocks skip 2:30 on 8 March and have 1:30 twice on 1 November.
        ("TZ=America/New_York 30 2 * * *", "2026-03-07T08:00:00", ["2026-03-09T06:30:00"]),
        (
            "CRON_TZ=America/New_York 30 1 * * *",
            "2026-11-01T05:00:00",
            ["2026-11-01T05:30:00", "2026-11-01T06:30:00", "2026-11-02T06:30:00"],
        ),
        ("TZ=Africa/Cairo 0 0 * * *", "2026-04-22T21:00:00", ["2026-04-22T22:00:00", "2026-04-24T21:00:00"]),
        ("TZ=Asia/Kathmandu 0 * * * *", "2026-01-01T00:00:00", ["2026-01-01T00:15:00"]),
        ("TZ=UTC 0 12 * * *", "2026-01-01T00:00:00", ["2026-01-01T12:00:00"]),
    ],
)
def test_the_times_of_a_schedule(schedule: str, after: str, times: list[str]) -> None:
    assert _after(schedule, after, len(times)) == times


def test_a_schedule_may_have_no_times() -> None:
    assert parse("0 0 31 2 *").next(_time("2026-01-01T00:00:00")) == NEVER
