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
        if revision.kind is None or revision.kind in kinds:
            continue
        last.pop(revision.key, None)
        if revision.is_readable and revision.object is not None:
            metadata = metadata_of(revision.object)
            if metadata.HasField("deletionTimestamp") and metadata.finalizers:
                owners = (each.uid for each in metadata.ownerReferences if each.blockOwnerDeletion)
                last[revision.key] = frozenset(owners)
    return frozenset().union(*last.values())
