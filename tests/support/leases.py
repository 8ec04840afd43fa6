"""An API server in memory that knows leases only, for tests with a clock of their own."""

from __future__ import annotations

from typing import cast

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import coordination
from nominee.machinery.client.api_client import Client


class LeaseServer:
    """Get, create and update with optimistic locking; every request raises `failing` while it is set."""

    def __init__(self) -> None:
        self.lease: coordination.Lease | None = None
        self.failing: StatusError | None = None
        self.requests: list[str] = []
        self._revision = 0

    @property
    def client(self) -> Client:
        return cast("Client", self)

    async def get(self, kind: object, name: str, namespace: str) -> coordination.Lease:
        self._begin("get")
        if self.lease is None:
            raise errors.not_found(kinds.LEASE, name)
        return self._copy(self.lease)

    async def create(self, lease: coordination.Lease) -> coordination.Lease:
        self._begin("create")
        if self.lease is not None:
            raise errors.already_exists(kinds.LEASE, lease.metadata.name)
        return self._store(lease)

    async def update(self, lease: coordination.Lease) -> coordination.Lease:
        """Replace the Lease; 404 where there is no Lease, 409 where its resourceVersion is another."""
        self._begin("update")
        current = self.lease
        if current is None:
            raise errors.not_found(kinds.LEASE, lease.metadata.name)
        if current.metadata.resourceVersion != lease.metadata.resourceVersion:
            raise errors.conflict(kinds.LEASE, lease.metadata.name)
        return self._store(lease)

    def _begin(self, verb: str) -> None:
        self.requests.append(verb)
        if self.failing is not None:
            raise self.failing

    def _store(self, lease: coordination.Lease) -> coordination.Lease:
        self._revision += 1
        self.lease = self._copy(lease)
        self.lease.metadata.resourceVersion = str(self._revision)
        return self._copy(self.lease)

    @staticmethod
    def _copy(lease: coordination.Lease) -> coordination.Lease:
        copy = coordination.Lease()
        copy.CopyFrom(lease)
        return copy
