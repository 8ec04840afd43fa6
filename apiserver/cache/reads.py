"""Get, list and watch: from the watch cache or from etcd, at the requested resourceVersion.

`""` is consistent (it includes every write acknowledged before), `"0"` is the cache's current state, a number
means not older than that; with `Exact`, or with a limit, exactly that revision.

Source: kube-apiserver 1.36 ("Resource versions" of the API concepts); tests/golden (api_list.jsonl).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nominee.apiserver.cache import continue_token
from nominee.apiserver.cache.continue_token import ContinueToken, InvalidToken
from nominee.apiserver.cache.kind_cache import Convert
from nominee.apiserver.cache.watch_cache import WatchCache
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.list_options import (
    EXACT,
    InvalidResourceVersion,
    Predicate,
    check_list,
    parse_revision,
    parse_selectors,
    predicate_of,
)
from nominee.apiserver.objects.requests import ListOptions, ListPage, WatchOptions
from nominee.apiserver.objects.selectable_fields import SelectableFields
from nominee.apiserver.objects.watcher import Watcher
from nominee.apiserver.storage.interface import Compacted, Storage, StorageError, StoredValue
from nominee.apiserver.storage.status import to_status
from nominee.machinery.api import errors
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import meta

# Keys read at once when a selector may drop most of them.
_CHUNK = 500

_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list"
    " without the continue parameter, or use the continue token in this response to retrieve the remainder of"
    " the results. Continuing with the provided token results in an inconsistent list - objects that were"
    " created, modified, or deleted between the time the first chunk was returned and now may show up in the"
    " list."
)


class ContinueExpired(StatusError):
    """The 410 of a list whose first page's revision is compacted, with a token to continue inconsistently."""

    def __init__(self, token: str) -> None:
        super().__init__(410, "Expired", _CONTINUE_EXPIRED)
        self.token = token

    def to_message(self) -> meta.Status:
        status = super().to_message()
        setattr(status.metadata, "continue", self.token)
        return status


class Reads:
    """Reads objects of all kinds. Every method raises StatusError.

    `convert` shows stored objects as another API group's (events.k8s.io). Selectors select stored objects but
    use the fields of the requested kind, which `fields_of` returns.
    """

    def __init__(
        self,
        storage: Storage,
        cache: WatchCache,
        fields_of: Callable[[AnyKind], SelectableFields[Any]],
    ) -> None:
        self._storage = storage
        self._cache = cache
        self._fields_of = fields_of

    async def get(
        self, kind: AnyKind, namespace: str, name: str, *, resource_version: str = ""
    ) -> CachedObject | None:
        """Return an object of a stored kind, or None when it does not exist."""
        if not resource_version:
            try:
                value = await self._storage.get(kind.key(namespace, name))
            except StorageError as error:
                raise to_status(error) from error
            return self._object(kind, value) if value is not None else None
        try:
            revision = parse_revision(resource_version)
        except InvalidResourceVersion as error:
            raise error.status() from None
        await self._cache.wait_until(revision)
        return self._cache.get(kind, namespace, name)

    async def list(
        self, kind: AnyKind, namespace: str, options: ListOptions, *, convert: Convert | None = None
    ) -> ListPage:
        """Return a page of objects in key order."""
        selectors = parse_selectors(options.label_selector, options.field_selector)
        check_list(options)
        predicate = predicate_of(selectors, self._fields_of(kind))
        if options.continue_token:
            page = await self._continued(kind, namespace, options, predicate)
        else:
            page = await self._first_page(kind, namespace, options, predicate)
        if convert is None:
            return page
        items = [obj.converted(convert) for obj in page.items]
        return ListPage(items, page.resource_version, page.continue_token, page.remaining)

    async def watch(
        self, kind: AnyKind, namespace: str, options: WatchOptions, *, convert: Convert | None = None
    ) -> Watcher:
        """Watch from `options.resource_version`; "" begins with a consistent current state."""
        selectors = parse_selectors(options.label_selector, options.field_selector)
        predicate = predicate_of(selectors, self._fields_of(kind))
        try:
            since = parse_revision(options.resource_version)
        except InvalidResourceVersion as error:
            raise error.status() from None
        if not options.resource_version:
            await self._caught_up()
        if options.send_initial_events:
            await self._cache.wait_until(since)
            since = 0
        elif options.send_initial_events is False and since == 0:
            since = self._cache.revision
        return self._cache.watch(
            kind,
            namespace,
            since_revision=since,
            initial_events_end=options.send_initial_events is True and options.allow_bookmarks,
            predicate=predicate,
            convert=convert,
            bookmarks=options.allow_bookmarks,
            timeout_seconds=options.timeout_seconds,
        )

    async def _caught_up(self) -> None:
        """Wait until the cache has every write that was acknowledged before this call."""
        try:
            revision = await self._storage.current_revision()
        except StorageError as error:
            raise to_status(error) from error
        await self._cache.wait_until(revision)

    async def _first_page(
        self, kind: AnyKind, namespace: str, options: ListOptions, predicate: Predicate | None
    ) -> ListPage:
        version, limit = options.resource_version, max(options.limit, 0)
        if version == "0":
            return self._from_cache(kind, namespace, predicate, limit=0)
        if not version:
            try:
                await self._caught_up()
            except StatusError as error:
                if not errors.is_too_large_resource_version(error):
                    raise
                # The cache lags. Source: kube-apiserver 1.36, fallback of ConsistentListFromCache.
                return await self._newest(kind, namespace, predicate, limit=limit)
            return self._from_cache(kind, namespace, predicate, limit=limit)
        try:
            revision = parse_revision(version)
        except InvalidResourceVersion as error:
            raise errors.bad_request(f"invalid resource version: {error}") from None
        await self._cache.wait_until(revision)
        if options.resource_version_match == EXACT or (limit and not options.resource_version_match):
            return await self._exactly(kind, namespace, predicate, revision=revision, limit=limit)
        return self._from_cache(kind, namespace, predicate, limit=limit)

    async def _newest(
        self, kind: AnyKind, namespace: str, predicate: Predicate | None, *, limit: int
    ) -> ListPage:
        try:
            return await self._from_etcd(kind, namespace, predicate, 0, limit, "")
        except StorageError as error:
            raise to_status(error) from error

    async def _continued(
        self, kind: AnyKind, namespace: str, options: ListOptions, predicate: Predicate | None
    ) -> ListPage:
        if options.resource_version not in ("", "0"):
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        try:
            token = continue_token.decode(options.continue_token)
        except InvalidToken as error:
            raise errors.bad_request(f"invalid continue token: {error}") from None
        revision = max(token.revision, 0)
        return await self._exactly(
            kind, namespace, predicate, revision=revision, limit=max(options.limit, 0), start=token.start
        )

    def _from_cache(
        self,
        kind: AnyKind,
        namespace: str,
        predicate: Predicate | None,
        *,
        limit: int,
        start: str = "",
        revision: int = 0,
    ) -> ListPage:
        """Return a page of the current state, labelled with `revision` (0: the cache's)."""
        cache = self._cache.of(kind)
        objects = cache.in_order(namespace, start)
        revision = revision or self._cache.revision
        items: list[CachedObject] = []
        for obj in objects:
            if predicate is None or predicate(obj):
                items.append(obj)
                if len(items) == limit:
                    break
        if not limit or len(items) < limit or next(objects, None) is None:
            return ListPage(items, str(revision))
        after = _below(kind, namespace, items[-1].key) + "\0"
        remaining = cache.count(namespace, after) if predicate is None else None
        return ListPage(items, str(revision), ContinueToken(revision, after).encode(), remaining)

    async def _exactly(
        self,
        kind: AnyKind,
        namespace: str,
        predicate: Predicate | None,
        *,
        revision: int,
        limit: int,
        start: str = "",
    ) -> ListPage:
        """Return a page at `revision` (0: the newest), from the key `start` on."""
        cache = self._cache.of(kind)
        if cache.last_change <= revision <= self._cache.revision:
            # Nothing of this kind has changed since: the current state is that state.
            return self._from_cache(kind, namespace, predicate, limit=limit, start=start, revision=revision)
        try:
            return await self._from_etcd(kind, namespace, predicate, revision, limit, start)
        except Compacted as error:
            if start:
                token = ContinueToken(continue_token.INCONSISTENT, start).encode()
                raise ContinueExpired(token) from error
            raise to_status(error) from error
        except StorageError as error:
            raise to_status(error) from error

    async def _from_etcd(
        self,
        kind: AnyKind,
        namespace: str,
        predicate: Predicate | None,
        revision: int,
        limit: int,
        start: str,
    ) -> ListPage:
        stored = self._cache.of(kind).kind
        prefix = kind.key_prefix(namespace)
        # The token names the first key to show; a range begins after a key.
        after = prefix + start.removesuffix("\0") if start else ""
        items: list[CachedObject] = []
        while True:
            # Without a selector, a page is one read.
            wanted = limit if predicate is None else _CHUNK
            page = await self._storage.range(prefix, revision=revision, limit=wanted, start_after=after)
            revision = revision or page.revision
            for index, value in enumerate(page.items):
                obj = self._object(stored, value)
                if predicate is not None and not predicate(obj):
                    continue
                items.append(obj)
                if len(items) == limit:
                    last = index == len(page.items) - 1
                    if last and not page.more:
                        return ListPage(items, str(revision))
                    token = ContinueToken(revision, _below(kind, namespace, obj.key) + "\0").encode()
                    remaining = page.remaining if predicate is None else None
                    return ListPage(items, str(revision), token, remaining)
            if not page.more:
                return ListPage(items, str(revision))
            after = page.items[-1].key

    def _object(self, kind: AnyKind, value: StoredValue) -> CachedObject:
        namespace, _, name = value.key.removeprefix(kind.key_prefix()).rpartition("/")
        return self._cache.objects.of(kind, namespace, name, value.mod_revision, value.data)


def _below(kind: AnyKind, namespace: str, key: str) -> str:
    return key.removeprefix(kind.key_prefix(namespace))
