"""A daemon set's revisions: the one of its template, its duplicates, and those to delete. Pure.

Source: kube-controller-manager 1.36, pkg/controller/daemon (constructHistory, cleanupHistory).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from nominee.controllers.revisions.history import (
    REVISION_LABEL,
    data_hash,
    in_order,
    new_revision,
    next_number,
    restores,
)
from nominee.machinery.api.pb import apps


def digest_of(revision: apps.ControllerRevision) -> str:
    """Return the hash that the revision's pods have in their label."""
    return revision.metadata.labels.get(REVISION_LABEL) or revision.metadata.name


@dataclass(frozen=True, slots=True)
class History:
    """A daemon set's revisions: its template's (None before there is one), the duplicates, and others."""

    current: apps.ControllerRevision | None
    duplicates: Sequence[apps.ControllerRevision]
    old: Sequence[apps.ControllerRevision]

    @classmethod
    def of(
        cls, daemon_set: apps.DaemonSet, data: bytes, revisions: Sequence[apps.ControllerRevision]
    ) -> History:
        """Find the revision of the template, whose data are `data`; the latest of several is the current."""
        ordered = in_order(revisions)
        equal = [each for each in ordered if each.data.raw == data]
        if not equal:
            equal = [each for each in ordered if restores(each, daemon_set.spec.template)]
        names = {each.metadata.name for each in equal}
        old = [each for each in ordered if each.metadata.name not in names]
        return cls(equal[-1] if equal else None, equal[:-1], old)

    @property
    def number(self) -> int:
        """The number that the current revision must have: it is the latest, also after a roll-back."""
        return next_number(self.old)

    def first(self, daemon_set: apps.DaemonSet, data: bytes) -> apps.ControllerRevision:
        """Return a new revision for the template."""
        digest = data_hash(data, daemon_set.status.collisionCount)
        return new_revision(daemon_set, self.number, digest, hash_label=REVISION_LABEL)

    def to_delete(self, live: Collection[str], limit: int) -> list[apps.ControllerRevision]:
        """Return the oldest revisions beyond the limit, but none whose hash a pod has."""
        unused = [each for each in self.old if digest_of(each) not in live]
        return unused[: max(0, len(self.old) - limit)]
