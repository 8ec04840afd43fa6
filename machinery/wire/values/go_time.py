"""RFC 3339 as Go reads it, with Go's errors (package time, Parse; Go 1.25)."""

from __future__ import annotations

import re
from collections.abc import Callable

LAYOUT = "2006-01-02T15:04:05Z07:00"
_FRACTION = re.compile(r"[.,]\d+")
_ZONE = re.compile(r"[+-](\d\d):(\d\d)")
_LEAP_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def quote(text: str) -> str:
    """Return a text as package time quotes it: backslash and quote escaped, other than ASCII by bytes."""
    made = []
    for character in text:
        if character in '"\\':
            made.append("\\" + character)
        elif character < " " or character >= "\x80":
            made += [f"\\x{byte:02x}" for byte in character.encode()]
        else:
            made.append(character)
    return f'"{"".join(made)}"'


def problem(text: str) -> str:
    """Return Go's message about a text that is not an RFC 3339 time."""
    rest = text

    def cannot(element: str) -> str:
        how = f"cannot parse {quote(rest)} as {quote(element)}"
        return f"parsing time {quote(text)} as {quote(LAYOUT)}: {how}"

    def outside(what: str) -> str:
        return f"parsing time {quote(text)}: {what} out of range"

    numbers: dict[str, int] = {}
    steps: tuple[tuple[str, str, Callable[[int], bool]], ...] = (
        ("2006", "year", lambda _: True),
        ("01", "month", lambda value: 1 <= value <= 12),
        ("02", "day", lambda _: True),
        ("15", "hour", lambda value: value < 24),
        ("04", "minute", lambda value: value < 60),
        ("05", "second", lambda value: value < 60),
    )
    for (element, name, fits), before in zip(steps, ("", "-", "-", "T", ":", ":"), strict=True):
        if not rest.startswith(before):
            return cannot(before)
        rest = rest.removeprefix(before)
        match = re.match(r"\d\d?" if element == "15" else rf"\d{{{len(element)}}}", rest, re.ASCII)
        if match is None:
            return cannot(element)
        numbers[name] = int(match[0])
        if not fits(numbers[name]):
            return outside(name)
        rest = rest[match.end() :]
    fraction = _FRACTION.match(rest)
    rest = rest[fraction.end() :] if fraction else rest
    zone = _ZONE.match(rest)
    if rest.startswith("Z"):
        rest = rest[1:]
    elif zone is None:
        return cannot("Z07:00")
    elif int(zone[1]) > 24:
        return outside("time zone offset hour")
    elif int(zone[2]) > 60:
        return outside("time zone offset minute")
    else:
        rest = rest[zone.end() :]
    if rest:
        return f"parsing time {quote(text)}: extra text: {quote(rest)}"
    year, month, day = numbers["year"], numbers["month"], numbers["day"]
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 28 if month == 2 and not leap else _LEAP_DAYS[month - 1]
    return "" if 1 <= day <= longest else outside("day")
