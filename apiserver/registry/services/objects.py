"""IPAddresses and ServiceCIDRs for the allocator, written through the registry as the server's user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Create, Delete
from nominee.apiserver.registry.services import addresses
from nominee.apiserver.registry.services.addresses import AddressRange
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.pb import meta, networking

if TYPE_CHECKING:
    from nominee.apiserver.objects.requests import RegistryAPI
    from nominee.apiserver.registry.store import Cache, Store


class ServerObjects:
    """The IPAddresses and ServiceCIDRs, as the server itself reads and writes them."""

    def __init__(self, registry: RegistryAPI, store: Store, cache: Cache | None) -> None:
        self._registry = registry
        self._store = store
        self._cache = cache

    def ready_ranges(self) -> list[AddressRange]:
        """Return the ranges of the ready ServiceCIDRs."""
        return addresses.ready_ranges(each.message for each in self._known().list(kinds.SERVICE_CIDR))

    def known(self, address: str) -> bool:
        """Report whether the watch cache has an IPAddress of this name."""
        return self._known().get(kinds.IP_ADDRESS, "", address) is not None

    def _known(self) -> Cache:
        if self._cache is None:
            raise errors.service_unavailable("this server cannot give addresses: it has no cache")
        return self._cache

    async def create(self, made: networking.IPAddress) -> None:
        """Create an IPAddress. Raises: StatusError."""
        await self._registry.perform(Create(kinds.IP_ADDRESS, "", made))

    async def find(self, address: str) -> CachedObject | None:
        """Return the newest IPAddress of this name, or None."""
        return await self._store.newest(kinds.IP_ADDRESS, "", address)

    async def delete(self, found: CachedObject) -> None:
        """Delete this version; a version that is gone or has changed belongs to another writer.

        Raises: StatusError.
        """
        metadata, options = found.message.metadata, meta.DeleteOptions()
        options.preconditions.uid = metadata.uid
        options.preconditions.resourceVersion = str(found.revision)
        with errors.ignoring(errors.is_not_found, errors.is_conflict):
            await self._registry.perform(Delete(kinds.IP_ADDRESS, "", found.name, options))
