"""The result of an import: how many objects came, and which did not, with their reasons. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from nominee.importing.sources import Document, identity

_NAMES_MAX = 8
"""So many names of a group are printed."""


@dataclass(slots=True)
class Report:
    """What has become of each object; `refused` and `changed` by kind and reason, with the objects' names."""

    imported: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    """They exist already, and stay as they are."""
    left_out: Counter[str] = field(default_factory=Counter)
    made: list[str] = field(default_factory=list)
    refused: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    changed: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    """They came, without a part of them."""

    def refuse(self, document: Document, message: str) -> None:
        self._add(self.refused, document, message)

    def change(self, document: Document, message: str) -> None:
        self._add(self.changed, document, message)

    def _add(self, groups: dict[tuple[str, str], list[str]], document: Document, message: str) -> None:
        _, kind, namespace, name = identity(document)
        groups[kind, reason(message, name)].append(f"{namespace}/{name}" if namespace else name)

    @property
    def is_complete(self) -> bool:
        """Return whether all came as they were."""
        return not self.refused and not self.changed

    def lines(self) -> Iterator[str]:
        """Yield the report, what could not come at the end."""
        yield f"{sum(self.imported.values())} objects imported: {_counts(self.imported)}"
        if self.made:
            yield f"made, since the objects need them: {', '.join(self.made)}"
        if self.present:
            yield f"exist already, and stay as they are: {_counts(self.present)}"
        if self.left_out:
            yield f"left out, since processes make them again: {_counts(self.left_out)}"
        yield from _group_lines("came without a part", self.changed)
        yield from _group_lines("did not come", self.refused)

    def to_json(self) -> dict[str, Any]:
        """Return the whole report, with all names."""
        return {
            "imported": dict(self.imported),
            "present": dict(self.present),
            "leftOut": dict(self.left_out),
            "made": self.made,
            "changed": _group_rows(self.changed),
            "refused": _group_rows(self.refused),
        }


def reason(message: str, name: str) -> str:
    """Return a server's message without the object's name, so that those of many objects are equal.

    `pods "web-1" is forbidden: no PriorityClass ...` is `forbidden: no PriorityClass ...`.
    """
    return re.sub(rf'^\S+ "{re.escape(name)}" is ', "", message).replace(f'"{name}"', '"…"')


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "none"


def _group_lines(title: str, groups: dict[tuple[str, str], list[str]]) -> Iterator[str]:
    if groups:
        yield f"{title}: {sum(map(len, groups.values()))}"
    for (kind, text), names in sorted(groups.items()):
        more = f", and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
        yield f"  {len(names)} {kind}: {text}"
        yield f"    {', '.join(sorted(names)[:_NAMES_MAX])}{more}"


def _group_rows(groups: dict[tuple[str, str], list[str]]) -> list[dict[str, Any]]:
    return [
        {"kind": kind, "reason": text, "objects": sorted(names)}
        for (kind, text), names in sorted(groups.items())
    ]
