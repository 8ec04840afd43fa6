"""Schedules of CronJobs, as the standard parser of robfig/cron v3.0.1 reads them, with its messages."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field

from nominee.machinery.wire.values.scalars import parse_duration

_ATOI = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_INT64_DIGITS_MAX = 19
_EVERY = "@every "
_DESCRIPTORS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
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


def problem(schedule: str) -> str:
    """Return the problem of a schedule that is not empty, "" for a valid one."""
    try:
        _parse(schedule)
    except ValueError as error:
        return str(error)
    return ""


def is_time_zone(name: str) -> bool:
    """Return whether the time zone database has this name (Go: time.LoadLocation)."""
    if name in ("", "UTC", "Local"):
        return True
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _parse(schedule: str) -> None:
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zone, _, schedule = schedule.partition(" ")
        zone = zone.partition("=")[2]
        if not is_time_zone(zone):
            raise ValueError(f"provided bad location {zone}: unknown time zone {zone}")
        schedule = schedule.strip()
    if schedule.startswith("@"):
        _descriptor(schedule)
        return
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        listed = f"[{' '.join(parts)}]"
        raise ValueError(f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: {listed}")
    for part, bounds in zip(parts, _FIELDS, strict=True):
        for expression in part.split(","):
            if expression:
                _range(expression, bounds)


def _descriptor(text: str) -> None:
    if text in _DESCRIPTORS:
        return
    if not text.startswith(_EVERY):
        raise ValueError(f"unrecognized descriptor: {text}")
    try:
        parse_duration(text.removeprefix(_EVERY))
    except ValueError as error:
        raise ValueError(f"failed to parse duration {text}: {error}") from None


def _range(expression: str, bounds: _Field) -> None:
    """`*`, `5`, `mon-fri`, `*/2`, `10-30/5`."""
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
