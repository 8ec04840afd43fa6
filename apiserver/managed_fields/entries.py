"""managedFields of an object as owners and times, and back.

Source: apimachinery 1.36, util/managedfields/internal/managedfields.go, capmanagers.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from nominee.apiserver.managed_fields.fields import field_set
from nominee.apiserver.managed_fields.fields.field_set import FieldSet
from nominee.apiserver.managed_fields.fields.paths import BadElement
from nominee.apiserver.managed_fields.fields.schema import of_message
from nominee.apiserver.managed_fields.merge.merge_engine import Manager, Owned, Owners
from nominee.apiserver.managed_fields.merge.pruning import reconcile_atomic
from nominee.machinery.api.names import go_quote
from nominee.machinery.api.pb import meta

APPLY: Final = "Apply"
UPDATE: Final = "Update"
UPDATE_MANAGERS_MAX: Final = 10
_ANCIENT: Final = "ancient-changes"
_FIELDS_TYPE: Final = "FieldsV1"


class BadEntries(ValueError):
    """managedFields that cannot be decoded."""


@dataclass(slots=True)
class Managed:
    """The owners, and when each last changed something (None: unknown)."""

    owners: Owners = field(default_factory=dict)
    times: dict[Manager, meta.Time] = field(default_factory=dict)


def identity(name: str, operation: str, api_version: str, subresource: str) -> Manager:
    return Manager(name, operation, "" if operation == APPLY else api_version, subresource)


@lru_cache(maxsize=2048)
def _decoded(raw: bytes, message: str) -> FieldSet:
    return reconcile_atomic(field_set.decode(raw), of_message(message))


def decode(entries: Iterable[meta.ManagedFieldsEntry], message: str) -> Managed:
    """Decode the managedFields of an object of this message.

    Raises: BadEntries.
    """
    managed = Managed()
    for number, entry in enumerate(entries):
        if entry.operation not in (APPLY, UPDATE):
            raise BadEntries("operation must be `Apply` or `Update`")
        if not entry.apiVersion:
            raise BadEntries("apiVersion must not be empty")
        if not entry.fieldsType:
            raise BadEntries(f"missing fieldsType in managed fields entry {number}")
        if entry.fieldsType != _FIELDS_TYPE:
            raise BadEntries(f'invalid fieldsType "{entry.fieldsType}" in managed fields entry {number}')
        manager = identity(entry.manager, entry.operation, entry.apiVersion, entry.subresource)
        try:
            fields = _decoded(entry.fieldsV1.Raw, message)
        except BadElement as error:
            raise BadEntries(f"error decoding set: {error}") from None
        managed.owners[manager] = Owned(fields, entry.apiVersion, entry.operation == APPLY)
        if entry.HasField("time"):
            managed.times[manager] = entry.time
        else:
            managed.times.pop(manager, None)
    return managed


def encode(managed: Managed) -> list[meta.ManagedFieldsEntry]:
    """Return the entries in the server's order: appliers first, each group by time."""
    made = []
    for manager, owned in managed.owners.items():
        entry = meta.ManagedFieldsEntry(
            manager=manager.name,
            operation=APPLY if owned.applied else manager.operation,
            apiVersion=owned.api_version,
            fieldsType=_FIELDS_TYPE,
            subresource=manager.subresource,
        )
        entry.fieldsV1.Raw = field_set.encode(owned.fields)
        time = managed.times.get(manager)
        if time is not None:
            entry.time.CopyFrom(time)
        made.append(entry)
    made.sort(
        key=lambda entry: (
            entry.operation, entry.time.seconds, entry.manager, entry.apiVersion, entry.subresource
        )
    )  # fmt: skip
    return made


def describe_manager(manager: Manager) -> str:
    """Return an owner as conflicts name it."""
    text = go_quote(manager.name)
    if manager.subresource:
        text = f"{text} with subresource {go_quote(manager.subresource)}"
    return f"{text} using {manager.api_version}" if manager.operation == UPDATE else text


def sort_text(manager: Manager) -> str:
    """Return the sort key of owners in messages: their identity as JSON."""
    values = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "subresource": manager.subresource,
    }
    return json.dumps(
        {name: value for name, value in values.items() if value}, separators=(",", ":"), ensure_ascii=False
    )


def limit_entries(managed: Managed) -> Managed:
    """Limit the entries of updates to ten: the oldest of a version become one, "ancient-changes"."""
    updaters = [manager for manager, owned in managed.owners.items() if not owned.applied]
    excess = len(updaters) - UPDATE_MANAGERS_MAX
    if excess <= 0:
        return managed
    owners, times = dict(managed.owners), dict(managed.times)

    def age(manager: Manager) -> tuple[int, str]:
        time = times.get(manager)
        return (time.seconds if time is not None else 0, sort_text(manager))

    first: dict[str, Manager] = {}
    for manager in sorted(updaters, key=age):
        if excess <= 0:
            break
        owned = owners[manager]
        bucket = Manager(_ANCIENT, UPDATE, owned.api_version)
        oldest = first.setdefault(owned.api_version, manager)
        if oldest is manager:
            continue
        if bucket not in owners:
            owners[bucket] = owners.pop(oldest)
        owners[bucket] = replace(owned, fields=owned.fields | owners[bucket].fields)
        if manager != bucket:
            del owners[manager]
        if manager in times:
            times[bucket] = times[manager]
        excess -= 1
    return Managed(owners, times)
