"""The owners of fields after an update or an apply: the core of server-side apply.

Documents are JSON, owners are sets; there are no objects and no times here. All owners have one version, so
nothing is converted between versions.

Source: structured-merge-diff v6, merge/update.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nominee.apiserver.managed_fields.fields.field_set import EMPTY, FieldSet
from nominee.apiserver.managed_fields.fields.paths import Path
from nominee.apiserver.managed_fields.fields.schema import Type
from nominee.apiserver.managed_fields.fields.typed import MISSING, field_set
from nominee.apiserver.managed_fields.merge.comparing import Comparison, compare, same
from nominee.apiserver.managed_fields.merge.merging import merge
from nominee.apiserver.managed_fields.merge.pruning import with_named_fields, without

Keep = Callable[[FieldSet], FieldSet]
"""Return the part of a set that this endpoint can change."""


@dataclass(frozen=True, slots=True, order=True)
class Manager:
    """The identity of one entry of managedFields. An applier is the same manager in every version."""

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Owned:
    """The fields that a manager owns, the API version, and whether it owns them by applying."""

    fields: FieldSet
    api_version: str
    applied: bool


Owners = dict[Manager, Owned]


class Conflicts(Exception):
    """Other managers own fields that would change: (owner, path)."""

    def __init__(self, found: list[tuple[Manager, Path]]) -> None:
        super().__init__(f"{len(found)} conflicts")
        self.found = found

    def fields(self) -> FieldSet:
        return FieldSet.of(*(path for _, path in self.found))


@dataclass(frozen=True, slots=True)
class Engine:
    """The merge rules of one type at one endpoint."""

    declared: Type
    api_version: str
    keep: Keep

    def update(self, old: Any, new: Any, owners: Mapping[Manager, Owned], who: Manager) -> Owners:
        """Return the owners after `who` wrote `new` over `old`: the writer alone owns each changed field."""
        left, change = self._take(old, new, owners, who, force=True)
        mine = left.get(who)
        fields = ((mine.fields if mine else EMPTY) - change.removed) | change.modified | change.added
        fields = self.keep(fields)
        left.pop(who, None)
        if fields:
            left[who] = Owned(fields, self.api_version, applied=False)
        return left

    def apply(
        self, live: Any, config: Any, owners: Mapping[Manager, Owned], who: Manager, *, force: bool
    ) -> tuple[Any, Owners]:
        """Return the merged document, or None when nothing changes, and its owners.

        Raises: Conflicts.
        """
        last = owners.get(who)
        merged = merge(live, config, self.declared)
        if merged is MISSING:
            merged = None
        mine = self.keep(field_set(config, self.declared))
        after = {**owners, who: Owned(mine, self.api_version, applied=True)}
        if last is not None and last.fields:
            merged = self._prune(merged, after, last.fields)
        after, _ = self._take(live, merged, after, who, force=force)
        return None if same(live, merged) else merged, after

    def _take(
        self, old: Any, new: Any, owners: Mapping[Manager, Owned], who: Manager, *, force: bool
    ) -> tuple[Owners, Comparison]:
        """Take the changed fields from all other owners.

        Raises: Conflicts unless `force`.
        """
        change = compare(old, new, self.declared).filtered(self.keep)
        taken = change.modified | change.added
        conflicts = {
            manager: common
            for manager, owned in owners.items()
            if manager != who and (common := owned.fields & taken)
        }
        if conflicts and not force:
            raise Conflicts(
                [(manager, path) for manager, common in conflicts.items() for path in common.paths()]
            )
        left: Owners = {}
        for manager, owned in owners.items():
            fields = owned.fields
            if manager != who:
                fields = fields - conflicts.get(manager, EMPTY) - change.removed
            if fields:
                left[manager] = owned if fields is owned.fields else replace(owned, fields=fields)
        return left, change

    def _prune(self, merged: Any, owners: Owners, last: FieldSet) -> Any:
        """Remove fields that this applier applied last time and that have no owner now."""
        declared = self.declared

        def all_of(value: Any) -> FieldSet:
            return with_named_fields(field_set(value, declared), declared)

        before = with_named_fields(last, declared)
        everything = all_of(merged)
        pruned = without(merged, before, declared)
        managed = EMPTY
        for owned in owners.values():
            managed |= owned.fields
        kept = all_of(pruned) | with_named_fields(managed, declared)
        pruned = without(merged, everything - kept, declared)
        # Only fields that the applier owned are removed, and none without an owner along with them.
        return without(merged, (everything - all_of(pruned)) & before, declared)
