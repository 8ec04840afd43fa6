"""Keep the writes that a client has seen acknowledged, to look for them in etcd afterwards."""

from __future__ import annotations

from collections import deque
from typing import Final

from cachetools import LRUCache
from google.protobuf.message import Message

from nominee.lab.history.invariants.checking.evidence import Acknowledged
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import STORED_AS, AnyKind
from nominee.machinery.api.objects import metadata_of, resource_version_of

WRITES_MAX: Final = 100_000


class AcknowledgedWrites:
    """The newest acknowledged writes of a client: its `write_observer`.

    A deletion is kept for the object that was written last under the name, since the answer has no uid.
    """

    def __init__(self) -> None:
        self._writes: deque[Acknowledged] = deque(maxlen=WRITES_MAX)
        self._uids: LRUCache[str, str] = LRUCache(WRITES_MAX)

    @property
    def writes(self) -> tuple[Acknowledged, ...]:
        """Return the writes up to now."""
        return tuple(self._writes)

    def wrote(self, obj: Message) -> None:
        """Keep a write."""
        kind, metadata = _stored(kinds.of(obj)), metadata_of(obj)
        self._uids[kind.key(metadata.namespace, metadata.name)] = metadata.uid
        self._writes.append(
            Acknowledged(
                kind=kind,
                namespace=metadata.namespace,
                name=metadata.name,
                uid=metadata.uid,
                resource_version=resource_version_of(obj),
            )
        )

    def deleted(self, kind: AnyKind, namespace: str, name: str) -> None:
        """Keep a deletion, if the object's uid is known."""
        kind = _stored(kind)
        uid = self._uids.pop(kind.key(namespace, name), "")
        if uid:
            self._writes.append(
                Acknowledged(
                    kind=kind, namespace=namespace, name=name, uid=uid, resource_version=0, deleted=True
                )
            )


def _stored(kind: AnyKind) -> AnyKind:
    return STORED_AS.get(kind, kind)
