"""The owners of objects of which the rules read none, as a ConfigMap with a finalizer. No I/O.

An owner that is deleted in the foreground stays until its dependents of all kinds are gone.
Source: kube-controller-manager 1.36, garbagecollector.go, processDeletingDependentsItem.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import metadata_of


def owners_of_others(history: Iterable[Revision], kinds: Container[AnyKind | None]) -> frozenset[str]:
    """Return the uids of the owners whose deletion objects of other kinds than these hold up at the end."""
    last: dict[str, frozenset[str]] = {}
    for revision in history:
        if revision.kind is None or revision.kind in kinds or not revision.is_readable:
            continue
        last.pop(revision.key, None)
        if revision.object is not None:
            owners = metadata_of(revision.object).ownerReferences
            last[revision.key] = frozenset(each.uid for each in owners if each.blockOwnerDeletion)
    return frozenset().union(*last.values())
