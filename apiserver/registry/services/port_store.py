"""The RangeAllocation of node ports in etcd, changed by compare-and-swap."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio

from nominee.apiserver.registry.services.node_ports import PortChange, PortRange, TakenPorts
from nominee.apiserver.storage.interface import KeyExists, RevisionMismatch, Storage
from nominee.machinery.api import errors
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core, meta
from nominee.machinery.wire import envelope

KEY = "/registry/ranges/servicenodeports"
_KIND = Kind("", "v1", "RangeAllocation", "rangeallocations", core.RangeAllocation, meta.Status)
"""Not served: upstream has no endpoint for it, either."""
_ATTEMPTS_MAX = 64


class PortStore:
    """Reads and changes the allocated ports of a range. `new_uid` makes the bytes of each write unique.

    Storage recognizes by its bytes a write that was applied although its response was lost. Two servers that
    take the same port would write the same bits, and only one of them may succeed.
    """

    def __init__(self, storage: Storage, ports: PortRange, new_uid: Callable[[], str]) -> None:
        self._storage = storage
        self._range = ports
        self._new_uid = new_uid
        # Serializes changes of this server; a change of another server causes a conflict and a retry.
        self._changing = anyio.Lock()

    async def read(self) -> tuple[TakenPorts, int]:
        """Return the allocated ports, and their revision; 0 when nothing is stored yet.

        Raises: StorageError.
        """
        found = await self._storage.get(KEY)
        if found is None:
            return TakenPorts(self._range), 0
        stored = envelope.decode(_KIND, found.data)
        return TakenPorts.of_message(stored, self._range), found.mod_revision

    async def change(self, change: Callable[[TakenPorts], PortChange], *, write: bool) -> PortChange:
        """Store the ports that `change` takes; it may run several times.

        Raises: what `change` raises, StorageError, StatusError 409 when other servers always write first.
        """
        async with self._changing:
            for _ in range(_ATTEMPTS_MAX):
                taken, revision = await self.read()
                made = change(taken)
                if not made.allocated or not write or await self.replace(made.taken, revision):
                    return made
        raise errors.conflict(_KIND, "servicenodeports")

    async def release(self, ports: Iterable[int]) -> None:
        """Release ports.

        Raises: StorageError.
        """
        given = list(ports)
        async with self._changing:
            for _ in range(_ATTEMPTS_MAX):
                taken, revision = await self.read()
                if await self.replace(taken.without(given), revision):
                    return

    async def replace(self, taken: TakenPorts, revision: int) -> bool:
        """Store `taken` if the value is at `revision`; return False when another writer was first."""
        message = taken.to_message()
        message.metadata.uid = self._new_uid()
        data = envelope.encode(message, _KIND)
        try:
            if revision:
                await self._storage.update(KEY, data, expected_revision=revision)
            else:
                await self._storage.create(KEY, data)
        except (KeyExists, RevisionMismatch):
            return False
        return True
