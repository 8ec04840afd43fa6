"""How admission and Service allocation read other objects: from the cache, with etcd behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.registry.store import Cache, Store
from nominee.machinery.api.kinds import AnyKind


class Lookups:
    """Implements `nominee.apiserver.admission.interface.Lookup`."""

    def __init__(self, store: Store, cache: Cache | None) -> None:
        self._store = store
        self._cache = cache

    async def find(self, kind: AnyKind, namespace: str, name: str) -> CachedObject | None:
        """Return an object from the cache, or from etcd when the cache does not have it."""
        return await self._store.find(kind, namespace, name)

    async def known(self, kind: AnyKind) -> Sequence[CachedObject]:
        """Return all cached objects of a cluster-scoped kind."""
        return self._cache.list(kind) if self._cache is not None else await self._store.list(kind)

    def listed(self, kind: AnyKind, namespace: str) -> Sequence[CachedObject]:
        """Return the cached objects of a namespace; none without a cache."""
        return self._cache.list(kind, namespace) if self._cache is not None else ()

    async def change(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        mutate: Callable[[CachedObject], Awaitable[Any]],
    ) -> None:
        """Update an object without strategy and admission.

        Raises: StatusError 404, 409.
        """
        await self._store.update(kind, namespace, name, mutate)
