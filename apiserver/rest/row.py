"""A row of a Table, and how times are shown in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from machinery.printing.durations import human_duration

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
    return human_duration(now - time.seconds - time.nanos / 1e9)
