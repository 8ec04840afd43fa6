"""Make revisions from changes of keys: each has the former value of its key. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from google.protobuf.message import Message

from nominee.lab.history.revision import Revision, StoredObject
from nominee.machinery.api.kinds import EVENT, LEASE, NODE, POD
from nominee.machinery.api.pb import coordination, core
from nominee.machinery.api.storage_keys import parse_key
from nominee.machinery.runtime.clock import from_time

_DATED = (LEASE, EVENT, POD, NODE)


class Fold:
    """The newest value of every key, and from it the revisions.

    `time` of a change is when it was seen; None takes the newest time that leases, events, pods and nodes
    state up to there, for a history that is read afterwards.
    """

    def __init__(self) -> None:
        self._newest: dict[str, StoredObject] = {}
        self.revision = 0
        """The newest revision so far."""
        self.time = 0.0
        """The newest time so far, in seconds since the epoch."""

    def change(self, key: str, data: bytes | None, revision: int, time: float | None = None) -> Revision:
        """Return the revision of a write; `data` None is a deletion."""
        self.revision = revision
        return self._enter(key, data, revision, time, is_state=False)

    def state(self, key: str, data: bytes | None, revision: int, time: float | None = None) -> Revision:
        """Return the state of a key at the beginning, or after a gap."""
        self.revision = max(self.revision, revision)
        return self._enter(key, data, revision, time, is_state=True)

    def state_of_all(
        self, items: Mapping[str, tuple[bytes, int]], revision: int, time: float | None = None
    ) -> Iterator[Revision]:
        """Yield the state of every key (data, revision of its last write) as of `revision`.

        A key that is not in `items` any more was deleted in a gap. A key that the gap did not change is
        left out.
        """
        for key in [key for key in self._newest if key not in items]:
            yield self.state(key, None, revision, time)
        for key, (data, written) in items.items():
            former = self._newest.get(key)
            if former is None or former.data != data:
                yield self.state(key, data, written, time)
        self.revision = revision

    def _enter(
        self, key: str, data: bytes | None, revision: int, time: float | None, *, is_state: bool
    ) -> Revision:
        previous = self._newest.get(key)
        kind, namespace, name = parse_key(key)
        value = None if data is None else StoredObject(key, kind, data)
        if value is None:
            self._newest.pop(key, None)
        else:
            self._newest[key] = value
            if time is None and kind in _DATED and value.is_readable and value.message is not None:
                self.time = max(self.time, newest_time(value.message))
        if time is not None:
            self.time = max(self.time, time)
        return Revision(
            revision=revision,
            key=key,
            kind=kind,
            namespace=namespace,
            name=name,
            value=value,
            previous_value=previous,
            time=self.time if time is None else time,
            is_state=is_state,
        )


def newest_time(obj: Message) -> float:
    """Return the newest time in an object of a dated kind, in seconds since the epoch; 0.0 without one."""
    match obj:
        case coordination.Lease():
            return from_time(obj.spec.renewTime)
        case core.Event():
            return max(
                from_time(obj.eventTime), from_time(obj.lastTimestamp), from_time(obj.series.lastObservedTime)
            )
        case core.Pod() | core.Node():
            times = [from_time(entry.time) for entry in obj.metadata.managedFields]
            return max([from_time(obj.metadata.creationTimestamp), *times])
    return 0.0
