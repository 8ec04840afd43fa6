"""The result of an import: how many objects came, and which did not, with their reasons. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from nominee.importing.sources import Document, identity

_NAMES_MAX = 8
"""So many names of a group are printed."""


@dataclass(slots=True)
class Report:
    """The fates of all objects; `refusals` and `losses` have names of objects by kind and reason.

    `dry_run`: the objects were written into a cluster that exists for this only.
    """

    dry_run: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    """Objects that exist already, and stay as they are."""
    left_out: Counter[str] = field(default_factory=Counter)
    additions: list[str] = field(default_factory=list)
    refusals: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    losses: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    """Objects that came without a part of them."""

    def refuse(self, document: Document, message: str, where: Callable[[], str] = str) -> None:
        """Add an object that did not come; `where` is called for the first one with this message."""
        self._add(self.refusals, document, message, where)

    def lose_part(self, document: Document, message: str) -> None:
        self._add(self.losses, document, message)

    def _add(
        self,
        groups: dict[tuple[str, str], list[str]],
        document: Document,
        message: str,
        where: Callable[[], str] = str,
    ) -> None:
        _, kind, namespace, name = identity(document)
        names = groups[kind or "(no kind)", reason(message, name)]
        place = "" if names else where()
        title = (f"{namespace}/{name}" if namespace else name) or "(no name)"
        names.append(f"{title} ({place})" if place else title)

    @property
    def is_empty(self) -> bool:
        """Return whether the sources had nothing that could be imported."""
        return not self.counts and not self.present

    @property
    def is_complete(self) -> bool:
        """Return whether all came as they were."""
        return not self.refusals and not self.losses

    def lines(self) -> Iterator[str]:
        """Yield the report; the objects that did not come are at its end."""
        would = "would be " if self.dry_run else ""
        yield f"{sum(self.counts.values())} objects {would}imported: {_counts(self.counts)}"
        if self.additions:
            yield f"{would}made, since the objects need them: {', '.join(self.additions)}"
        if self.present:
            yield f"exist already, and stay as they are: {_counts(self.present)}"
        if self.left_out:
            yield f"left out, since processes make them again: {_counts(self.left_out)}"
        came, did_not_come = ("would come", "would not come") if self.dry_run else ("came", "did not come")
        yield from _group_lines(f"{came} without a part", self.losses)
        yield from _group_lines(did_not_come, self.refusals)

    def to_json(self) -> dict[str, object]:
        """Return the whole report, with all names."""
        return {
            "dryRun": self.dry_run,
            "imported": dict(self.counts),
            "present": dict(self.present),
            "leftOut": dict(self.left_out),
            "made": self.additions,
            "changed": _group_rows(self.losses),
            "refused": _group_rows(self.refusals),
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


def _group_rows(groups: dict[tuple[str, str], list[str]]) -> list[dict[str, object]]:
    return [
        {"kind": kind, "reason": text, "objects": sorted(names)}
        for (kind, text), names in sorted(groups.items())
    ]
