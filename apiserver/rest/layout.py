"""What a kind's Table is made of: columns, and a function that fills a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apiserver.rest.row import Row
from apiserver.schema import descriptions


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `described` is `schema#field` of Kubernetes' own schemas, or a text of ours."""

    name: str
    described: str
    type: str = "string"
    format: str = ""
    wide: bool = False

    def definition(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": descriptions.of(self.described),
            "priority": int(self.wide),
        }


@dataclass(frozen=True, slots=True)
class Layout:
    """A kind's columns and how an object fills them; `row(message, now)` with seconds since the epoch."""

    columns: tuple[Column, ...]
    row: Callable[[Any, float], Row]
    definitions: list[dict[str, Any]] = field(default_factory=list)


NAME = Column("Name", "objectmeta-meta-v1#name", format="name")
AGE = Column("Age", "objectmeta-meta-v1#creationTimestamp")


def wide(name: str, described: str) -> Column:
    return Column(name, described, wide=True)
