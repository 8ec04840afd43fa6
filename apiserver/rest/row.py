"""A row of a Table, and how times are shown in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

NONE, UNKNOWN = "<none>", "<unknown>"


@dataclass(slots=True)
class Row:
    """Cells in the order of the columns, and the row's conditions (finished pods)."""

    cells: list[Any]
    conditions: list[dict[str, str]] = field(default_factory=list)


def balancer_addresses(ingress: Iterable[Any]) -> list[str]:
    """Of a load balancer, each once; by name where there is no address."""
    return sorted({each.ip or each.hostname for each in ingress} - {""})


def or_none(text: str) -> str:
    return text or NONE


def age(metadata: Any, now: float) -> str:
    """How long ago an object was made."""
    return since(metadata.creationTimestamp, now)


def since(time: Any, now: float) -> str:
    """How long ago a Time or MicroTime was."""
    if not time.seconds:
        return UNKNOWN
    return duration(now - time.seconds - time.nanos / 1e9)


def duration(seconds: float) -> str:
    """About two digits of a duration (apimachinery, util/duration: HumanDuration)."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = whole // 3600
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if hours < 24 * 365 * 2:
        return f"{days}d"
    years = days // 365
    if hours < 24 * 365 * 8:
        return f"{years}y{days % 365}d" if days % 365 else f"{years}y"
    return f"{years}y"
