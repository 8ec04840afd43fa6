"""The objects of a history that are gone at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from nominee.lab.history.revision import Revision, StoredObject
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.api.pb import core


def names_of_gone(revisions: Iterable[Revision]) -> frozenset[str]:
    """Return the uids of the objects that were deleted, and each `namespace/name` that no object has now.

    The name of a pod group that was deleted is in use as long as a pod belongs to it. Objects without a
    namespace have uids alone: their names are short, and others may have them.
    """
    gone, groups, last = set[str](), set[str](), dict[str, Revision]()
    for revision in revisions:
        if revision.kind is None or not revision.is_readable:
            continue
        last[revision.key] = revision
        if revision.value is None:
            gone |= set(_names(revision, revision.previous_value))
            if revision.kind is kinds.POD_GROUP:
                groups.add(f"{revision.namespace}/{revision.name}")
    in_use = (_names(each, each.value) for each in last.values())
    joined = groups.intersection(chain.from_iterable(_groups(each.value) for each in last.values()))
    return frozenset(gone.difference(joined, *in_use))


def _names(revision: Revision, value: StoredObject | None) -> Iterator[str]:
    if value is None or value.message is None:
        return
    yield metadata_of(value.message).uid
    if revision.namespace:
        yield f"{revision.namespace}/{revision.name}"


def _groups(value: StoredObject | None) -> Iterator[str]:
    """Yield the name of the group to which a pod belongs."""
    pod = None if value is None else value.message
    if isinstance(pod, core.Pod) and pod.spec.HasField("schedulingGroup"):
        yield f"{pod.metadata.namespace}/{pod.spec.schedulingGroup.podGroupName}"
