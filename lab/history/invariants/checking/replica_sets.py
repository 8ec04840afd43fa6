"""The versions of a ReplicaSet or ReplicationController that its controller may still read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from nominee.lab.history.invariants.checking.generations import drop_read
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import REPLICA_SET, REPLICATION_CONTROLLER
from nominee.machinery.api.pb import apps, core

REPLICATED: Final = frozenset({REPLICA_SET, REPLICATION_CONTROLLER})
"""The kinds that are followed: one controller's code acts on both."""
Replicated = apps.ReplicaSet | core.ReplicationController


def before_and_after(revision: Revision) -> tuple[Replicated | None, Replicated | None]:
    """Return an object of one of these kinds before and after its write."""
    return (
        revision.before(REPLICA_SET) or revision.before(REPLICATION_CONTROLLER),
        revision.after(REPLICA_SET) or revision.after(REPLICATION_CONTROLLER),
    )


@dataclass(slots=True)
class ReadableReplicas:
    """A ReplicaSet's newest version, and its replicas by generation that a stale cache may show."""

    newest: Revision
    replicas: dict[int, int] = field(default_factory=dict)

    def follow(self, replica_set: Replicated, revision: Revision) -> None:
        """Note a version; the controller has read the observedGeneration, and reads no older one."""
        self.newest = revision
        self.replicas[replica_set.metadata.generation] = replica_set.spec.replicas
        drop_read(self.replicas, replica_set.status.observedGeneration)
