"""The versions of a ReplicaSet that its controller may still read."""

from __future__ import annotations

from dataclasses import dataclass, field

from nominee.lab.history.revision import Revision
from nominee.machinery.api.pb import apps


@dataclass(slots=True)
class ReadableReplicas:
    """A ReplicaSet's newest version, and its replicas by generation that a stale cache may show."""

    newest: Revision
    replicas: dict[int, int] = field(default_factory=dict)

    def follow(self, replica_set: apps.ReplicaSet, revision: Revision) -> None:
        """Note a version; the controller has read the observedGeneration, and reads no older one."""
        self.newest = revision
        self.replicas[replica_set.metadata.generation] = replica_set.spec.replicas
        for generation in [each for each in self.replicas if each < replica_set.status.observedGeneration]:
            del self.replicas[generation]
