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

    def uid_of(self, kind: AnyKind, namespace: str, name: str) -> str:
        """Return the uid of the object that was written last under a name, "" if it is not known."""
        uid: str = self._uids.get(_stored(kind).key(namespace, name), "")
        return uid

    def deleted(self, kind: AnyKind, namespace: str, name: str, uid: str) -> None:
        """Keep a deletion, if the uid that the object had when it was sent is known.

        If another one was written meanwhile, it is not known which of them was deleted.
        """
        kind = _stored(kind)
        if uid and uid == self.uid_of(kind, namespace, name):
            del self._uids[kind.key(namespace, name)]
            self._writes.append(
                Acknowledged(
                    kind=kind, namespace=namespace, name=name, uid=uid, resource_version=0, deleted=True
                )
            )


def _stored(kind: AnyKind) -> AnyKind:
    return STORED_AS.get(kind, kind)
