"""Deletion and orphaning of an object whose owners are deleted. Pure.

Source: kube-controller-manager 1.36, pkg/controller/garbagecollector (attemptToDeleteItem,
classifyReferences, processDeletingDependentsItem).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeVar

from nominee.machinery.api.kinds import Object
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import meta

T = TypeVar("T", bound=Object)

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"


class Owner(Enum):
    """The state of an owner."""

    SOLID = auto()
    """It exists, or its kind is unknown here, which is never a reason to delete."""
    ABSENT = auto()
    """There is no object of that name with that uid."""
    WAITING = auto()
    """It is being deleted in the foreground and waits for its dependents."""


@dataclass(frozen=True, slots=True)
class DropReferences:
    """Remove the references to these uids; the object has other owners."""

    uids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the object under a deletion propagation policy.

    With `unblock`, its owner references stop blocking the deletion of its owners first.
    """

    policy: str
    unblock: bool = False


@dataclass(frozen=True, slots=True)
class DropFinalizer:
    """Remove the finalizer: the dependents are gone or orphaned."""

    finalizer: str


@dataclass(frozen=True, slots=True)
class DeleteDependents:
    """Queue the dependents, for which the object waits."""


@dataclass(frozen=True, slots=True)
class OrphanDependents:
    """Remove the dependents' references to the object, then its finalizer."""


Action = DropReferences | Delete | DropFinalizer | DeleteDependents | OrphanDependents


def waits_for_dependents(obj: Object) -> bool:
    """Report whether an object is being deleted in the foreground."""
    return is_terminating(obj) and FOREGROUND in obj.metadata.finalizers


def orphans_dependents(obj: Object) -> bool:
    """Report whether an object is being deleted and orphans its dependents."""
    return is_terminating(obj) and ORPHAN in obj.metadata.finalizers


def _policy(obj: Object) -> str:
    if ORPHAN in obj.metadata.finalizers:
        return "Orphan"
    if FOREGROUND in obj.metadata.finalizers:
        return "Foreground"
    return "Background"


def blocking(dependents: Iterable[T], owner_uid: str) -> list[T]:
    """Return the dependents that must be deleted before the owner that waits for them."""
    return [
        obj
        for obj in dependents
        if any(r.uid == owner_uid and r.blockOwnerDeletion for r in obj.metadata.ownerReferences)
    ]


def decide(
    obj: Object, owner_of: Callable[[meta.OwnerReference], Owner], dependents: Iterable[Object]
) -> Action | None:
    """Return the action for an object, None for none; `dependents` are the objects that it owns."""
    if is_terminating(obj):
        if orphans_dependents(obj):
            return OrphanDependents()
        if waits_for_dependents(obj):
            waits = blocking(dependents, obj.metadata.uid)
            return DeleteDependents() if waits else DropFinalizer(FOREGROUND)
        return None
    references = obj.metadata.ownerReferences
    if not references:
        return None
    states = {reference.uid: owner_of(reference) for reference in references}
    lost = frozenset(uid for uid, state in states.items() if state is not Owner.SOLID)
    if len(lost) < len(states):
        return DropReferences(lost) if lost else None
    owned = list(dependents)
    if Owner.WAITING in states.values() and owned:
        # Its own dependents are deleted first too, before the waiting owner. A dependent that waits for
        # dependents itself may be one of the waiting owners: such a cycle would never be deleted.
        is_cycle = any(waits_for_dependents(dependent) for dependent in owned)
        return Delete("Foreground", unblock=is_cycle and any(r.blockOwnerDeletion for r in references))
    return Delete(_policy(obj))
