"""Schedules of CronJobs, as the standard parser of robfig/cron v3.0.1 reads them, with its messages.

`parse` returns a schedule, which says when a time is followed by the next one.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol

from nominee.machinery.wire.values.scalars import parse_duration

_ATOI = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_INT64_DIGITS_MAX = 19
_EVERY = "@every "
_UTC_NAMES = ("", "UTC", "Local")
"""The controllers run in UTC, as upstream's image does."""
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
NEVER: Final = -62135596800.0
"""Go's zero time: there is no next time within five years."""
_YEARS_MAX = 5
_MINUTE, _HOUR = 60, 3600
_NANOS = 1_000_000_000
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class _Field:
    least: int
    most: int
    names: Mapping[str, int] = field(default_factory=dict)


_FIELDS = (
    _Field(0, 59),  # minute
    _Field(0, 23),  # hour
    _Field(1, 31),  # day of the month
    _Field(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


class Schedule(Protocol):
    """The times at which a job is due, in seconds since the epoch."""

    def next(self, after: float) -> float:
        """Return the first time after another one, or NEVER."""
        ...


@dataclass(frozen=True, slots=True)
class _Every:
    """A fixed delay of whole seconds, 1 at least (@every)."""

    seconds: int

    def next(self, after: float) -> float:
        return after // 1 + self.seconds


@dataclass(frozen=True, slots=True)
class _Times:
    """Fields that the local time must match.

    An hour that the clocks skip has no times, and one that they repeat has its times twice.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    """Whether days or weekdays are `*`: then both must match, else one of them."""
    zone: tzinfo

    def next(self, after: float) -> float:
        at = (after // _MINUTE + 1) * _MINUTE
        last_year = datetime.fromtimestamp(at, self.zone).year + _YEARS_MAX
        while True:
            local = datetime.fromtimestamp(at, self.zone)
            if local.year > last_year:
                return NEVER
            if not self._is_day(local):
                midnight = datetime(local.year, local.month, local.day, tzinfo=self.zone) + timedelta(days=1)
                at = max(midnight.timestamp(), at + _MINUTE)
            elif local.hour not in self.hours:
                later = (hour for hour in self.hours if hour > local.hour)
                hours = min(later, default=24) - local.hour - 1  # one less, for a change of the clocks
                at += max(hours, 1) * _HOUR - local.minute * _MINUTE
            elif local.minute not in self.minutes:
                later = (minute for minute in self.minutes if minute > local.minute)
                at += (min(later, default=60) - local.minute) * _MINUTE
            else:
                return at

    def _is_day(self, local: datetime) -> bool:
        if local.month not in self.months:
            return False
        day, weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return (day and weekday) if self.any_day else (day or weekday)


def problem(schedule: str) -> str:
    """Return the problem of a schedule that is not empty, "" for a valid one."""
    try:
        parse(schedule)
    except ValueError as error:
        return str(error)
    return ""


def is_time_zone(name: str) -> bool:
    """Return whether the time zone database has this name (Go: time.LoadLocation)."""
    if name in _UTC_NAMES:
        return True
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def parse(schedule: str) -> Schedule:
    """Return the schedule of a text, which is in UTC unless it names a time zone.

    Raises:
        ValueError: the text is not a schedule, in the library's words.
    """
    zone: tzinfo = UTC
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        name, _, schedule = schedule.partition(" ")
        name = name.partition("=")[2]
        if not is_time_zone(name):
            raise ValueError(f"provided bad location {name}: unknown time zone {name}")
        zone = UTC if name in _UTC_NAMES else zoneinfo.ZoneInfo(name)
        schedule = schedule.strip()
    if schedule.startswith(_EVERY):
        return _Every(_every(schedule))
    if schedule.startswith("@"):
        if schedule not in _DESCRIPTORS:
            raise ValueError(f"unrecognized descriptor: {schedule}")
        schedule = _DESCRIPTORS[schedule]
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        listed = f"[{' '.join(parts)}]"
        raise ValueError(f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: {listed}")
    numbers: list[frozenset[int]] = []
    for part, bounds in zip(parts, _FIELDS, strict=True):
        ranges = [_range(expression, bounds) for expression in part.split(",") if expression]
        numbers.append(frozenset(number for each in ranges for number in each))
    minutes, hours, days, months, weekdays = numbers
    return _Times(
        minutes, hours, days, months, weekdays, any_day=_has_star(parts[2]) or _has_star(parts[4]), zone=zone
    )


def _has_star(part: str) -> bool:
    """Report whether a field has all values: `*`, also as `*/1`, but not as `*/2`."""
    expressions = (each.partition("/") for each in part.split(","))
    return any(
        first.partition("-")[0] in ("*", "?") and _number(step or "1") == 1 for first, _, step in expressions
    )


def _every(text: str) -> int:
    """Return the seconds of `@every 1h30m`."""
    try:
        return max(parse_duration(text.removeprefix(_EVERY)) // _NANOS, 1)
    except ValueError as error:
        raise ValueError(f"failed to parse duration {text}: {error}") from None


def _range(expression: str, bounds: _Field) -> range:
    """Return the numbers of `*`, `5`, `mon-fri`, `*/2` or `10-30/5`."""
    steps = expression.split("/")
    ends = steps[0].split("-")
    if ends[0] in ("*", "?"):
        start, end = bounds.least, bounds.most
    else:
        start = end = _number_or_name(ends[0], bounds)
        if len(ends) == 2:
            end = _number_or_name(ends[1], bounds)
        elif len(ends) > 2:
            raise ValueError(f"too many hyphens: {expression}")
    step = 1
    if len(steps) == 2:
        step = _number(steps[1])
        if len(ends) == 1:
            end = bounds.most
    elif len(steps) > 2:
        raise ValueError(f"too many slashes: {expression}")
    if start < bounds.least:
        raise ValueError(f"beginning of range ({start}) below minimum ({bounds.least}): {expression}")
    if end > bounds.most:
        raise ValueError(f"end of range ({end}) above maximum ({bounds.most}): {expression}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {expression}")
    return range(start, end + 1, step)


def _number_or_name(text: str, bounds: _Field) -> int:
    named = bounds.names.get(text.lower())
    return named if named is not None else _number(text)


def _number(text: str) -> int:
    failed = f'failed to parse int from {text}: strconv.Atoi: parsing "{text}"'
    if not _ATOI.fullmatch(text):
        raise ValueError(f"{failed}: invalid syntax")
    digits = text.lstrip("+-0") or "0"
    if len(digits) > _INT64_DIGITS_MAX:
        raise ValueError(f"{failed}: value out of range")
    number = -int(digits) if text[0] == "-" else int(digits)
    if not _INT64_MIN <= number <= _INT64_MAX:
        raise ValueError(f"{failed}: value out of range")
    if number < 0:
        raise ValueError(f"negative number ({number}) not allowed: {text}")
    return number
