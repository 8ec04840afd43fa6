"""Leases of API servers: a key in etcd for each server that lives.

Where a cluster has several API servers, each writes a key with its endpoint and a TTL, and renews it until it
stops. The key of a server that was killed ends with its TTL. Upstream's key is the server's address alone,
since its servers use one port; ours may share the address and differ in the port, so both are in the key.

Source: kube-apiserver 1.36, pkg/controlplane/reconcilers/lease.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nominee.apiserver.storage.interface import Storage
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.wire import envelope

PREFIX: Final = "/registry/masterleases/"
LEASE_SECONDS: Final = 15
PORT: Final = {"name": "https", "protocol": "TCP"}


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """The port and the address of an API server."""

    port: int
    address: str

    @property
    def key(self) -> str:
        """Return the key of the server's lease."""
        return f"{PREFIX}{self.address}:{self.port}"


class ServerLeases:
    """The leases in one etcd. A method may raise StorageError, and EnvelopeError for an unreadable value."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def renew(self, own: Iterable[Endpoint]) -> None:
        """Write the leases of a server for another LEASE_SECONDS, with the next generation."""
        for each in own:
            stored = await self._storage.get(each.key)
            lease = core.Endpoints() if stored is None else envelope.decode(kinds.ENDPOINTS, stored.data)
            lease.metadata.generation += 1
            del lease.subsets[:]
            subset = lease.subsets.add()
            subset.addresses.add(ip=each.address)
            subset.ports.add(**PORT, port=each.port)
            data = envelope.encode(lease)
            if stored is None:
                await self._storage.create(each.key, data, lease_seconds=LEASE_SECONDS)
            else:
                revision = stored.mod_revision
                await self._storage.update(
                    each.key, data, expected_revision=revision, lease_seconds=LEASE_SECONDS
                )

    async def remove(self, own: Iterable[Endpoint]) -> None:
        """Delete the leases of a server, if there are any."""
        for each in own:
            stored = await self._storage.get(each.key)
            if stored is not None:
                await self._storage.delete(each.key, expected_revision=stored.mod_revision)

    async def live(self) -> list[Endpoint]:
        """Return the endpoints of all servers that have a lease."""
        found = []
        for stored in (await self._storage.range(PREFIX)).items:
            for subset in envelope.decode(kinds.ENDPOINTS, stored.data).subsets:
                found += [
                    Endpoint(port.port, address.ip) for port in subset.ports for address in subset.addresses
                ]
        return found
