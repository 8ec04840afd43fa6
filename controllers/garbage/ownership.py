"""What happens to an object when its owners go. Pure.

Source: kube-controller-manager 1.36, pkg/controller/garbagecollector (attemptToDeleteItem,
classifyReferences, processDeletingDependentsItem).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from machinery.api.objects import is_terminating
from machinery.api.pb import meta

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"


class Owner(Enum):
    """What is known of an owner."""

    SOLID = auto()
    """It is there (or of a kind that is not known here, which is never a reason to delete)."""
    ABSENT = auto()
    """There is no such object: none of that name, or one with another uid."""
    WAITING = auto()
    """It is being deleted and waits for its dependents to go first."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing to do."""


@dataclass(frozen=True, slots=True)
class DropReferences:
    """The object has other owners: take these uids from its references."""

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
    """Its dependents are gone or orphaned: let it go."""

    finalizer: str


@dataclass(frozen=True, slots=True)
class DeleteDependents:
    """It waits for its dependents: have them looked at."""


@dataclass(frozen=True, slots=True)
class OrphanDependents:
    """Its dependents stay: take the references to it from them, then its finalizer."""


Action = Keep | DropReferences | Delete | DropFinalizer | DeleteDependents | OrphanDependents


def waits_for_dependents(obj: Any) -> bool:
    return is_terminating(obj) and FOREGROUND in obj.metadata.finalizers


def orphans_dependents(obj: Any) -> bool:
    return is_terminating(obj) and ORPHAN in obj.metadata.finalizers


def _policy(obj: Any) -> str:
    if ORPHAN in obj.metadata.finalizers:
        return "Orphan"
    if FOREGROUND in obj.metadata.finalizers:
        return "Foreground"
    return "Background"


def blocking(dependents: Iterable[Any], owner_uid: str) -> list[Any]:
    """The dependents that must go before an owner which waits for them."""
    return [
        obj
        for obj in dependents
        if any(r.uid == owner_uid and r.blockOwnerDeletion for r in obj.metadata.ownerReferences)
    ]


def decide(obj: Any, owner_of: Callable[[meta.OwnerReference], Owner], dependents: Iterable[Any]) -> Action:
    """What to do about an object now; `dependents` are the objects that it owns."""
    if is_terminating(obj):
        if orphans_dependents(obj):
            return OrphanDependents()
        if waits_for_dependents(obj):
            waits = blocking(dependents, obj.metadata.uid)
            return DeleteDependents() if waits else DropFinalizer(FOREGROUND)
        return Keep()
    references = obj.metadata.ownerReferences
    if not references:
        return Keep()
    states = {reference.uid: owner_of(reference) for reference in references}
    lost = frozenset(uid for uid, state in states.items() if state is not Owner.SOLID)
    if len(lost) < len(states):
        return DropReferences(lost) if lost else Keep()
    owned = list(dependents)
    if Owner.WAITING in states.values() and owned:
        # Its own dependents go first too, or the owner that waits would be gone before them. A dependent that
        # waits for dependents itself may be one of the owners that wait: a circle, which would never end.
        circle = any(waits_for_dependents(dependent) for dependent in owned)
        return Delete("Foreground", unblock=circle and any(r.blockOwnerDeletion for r in references))
    return Delete(_policy(obj))
