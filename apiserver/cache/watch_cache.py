"""The watch cache: the current state of every kind in memory, fed by one etcd watch, sent to all watchers.

One watch over all keys, instead of one for each kind as in kube-apiserver, makes the revision common to all
kinds: a bookmark of a quiet kind is as fresh as any.

Source: kube-apiserver 1.36's cacher (events of selectors, bookmarks, 410 for revisions older than the
window).
"""

from __future__ import annotations

import heapq
import itertools
from asyncio import Future, get_running_loop
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import anyio
import grpc.aio

from nominee.apiserver.cache.kind_cache import Convert, KindCache, Predicate, Subscription, Transition
from nominee.apiserver.cache.pace import Pace
from nominee.apiserver.cache.stored_objects import StoredObjects
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.watcher import EventType, Watcher, WatchEvent
from nominee.apiserver.schema.version_fields import TABLE_VERSION
from nominee.apiserver.storage.etcd_watch import Change, watch
from nominee.apiserver.storage.interface import Compacted, Storage, StorageError
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.features.gates import Version
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.runtime.queues.backoff import ExponentialBackoff, Retries
from nominee.machinery.wire import envelope

ROOT = "/registry/"
_log = logs.get()
_LOAD_PAGE = 2000
_RETRY = ExponentialBackoff(initial_seconds=0.05, max_seconds=1.0)
_HOUSEKEEPING_SECONDS = 0.25

# A key of etcd: its kind's cache, the key below the kind's prefix, and the object.
_Found = tuple[KindCache, str, CachedObject | None]


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """The sizes of the cache and its time limits, in seconds."""

    # Past events of each kind, from which a watch can start.
    history_per_kind: int = 5000
    # Events queued for one watcher; a watcher that falls further behind is ended.
    queue_per_watcher: int = 10_000
    # Events in one batch.
    batch: int = 500
    # The wait for a revision (kube-apiserver's cacher: 3 s).
    wait_seconds: float = 3.0
    bookmark_seconds: float = 60.0
    # The length of a watch without timeoutSeconds (kube-apiserver: 30 to 60 minutes).
    watch_seconds: float = 2700.0


class WatchCache:
    """See the module. `run()` must run all the time; `wait_loaded()` waits for the first state."""

    def __init__(
        self,
        storage: Storage,
        channel: grpc.aio.Channel,
        clock: Clock,
        *,
        limits: CacheLimits | None = None,
        version: Version = TABLE_VERSION,
    ) -> None:
        self.objects = StoredObjects(version)
        self._storage = storage
        self._channel = channel
        self._clock = clock
        self._pace = Pace(clock)
        self._limits = limits or CacheLimits()
        # events.k8s.io's Events are core Events under another name: their prefix is the core kind's.
        stored = [kind for kind in kinds.KINDS if kind not in kinds.STORED_AS]
        self._kinds = {kind: KindCache(kind, history_max=self._limits.history_per_kind) for kind in stored}
        self._stored = tuple(self._kinds.values())
        # A key's first part names its kind, or the few that share it (services/specs, services/endpoints).
        self._places: dict[str, tuple[tuple[KindCache, int, str], ...]] = {}
        for cache in self._stored:
            prefix = cache.kind.key_prefix()
            part = prefix.split("/")[2]
            self._places[part] = (*self._places.get(part, ()), (cache, len(prefix), prefix))
        for kind, other in kinds.STORED_AS.items():
            self._kinds[kind] = self._kinds[other]
        self._revision = 0
        # Whether etcd has dropped changes after the revision. That one stays until everything is listed
        # again: it is the revision of a list of the state in the cache.
        self._lacks_changes = False
        self._loaded = anyio.Event()
        self._order = itertools.count()
        self._waiters: list[tuple[int, int, Future[None]]] = []
        # Whether the etcd watch is established; without it the state may be old.
        self.connected = False

    # State.

    @property
    def revision(self) -> int:
        """The revision up to which every change is in the cache."""
        return self._revision

    @property
    def loaded(self) -> bool:
        return self._loaded.is_set()

    def of(self, kind: AnyKind) -> KindCache:
        """Return the cache of one kind."""
        return self._kinds[kind]

    def get(self, kind: AnyKind, namespace: str, name: str) -> CachedObject | None:
        """Return the newest version that the watch has received; it may be behind etcd."""
        return self._kinds[kind].get(f"{namespace}/{name}" if kind.namespaced else name)

    def list(self, kind: AnyKind, namespace: str = "") -> list[CachedObject]:
        """Return all objects in key order, at `revision`."""
        return [*self._kinds[kind].in_order(namespace)]

    @property
    def watchers(self) -> int:
        """The number of watches."""
        return sum(len(cache.subscriptions) for cache in set(self._kinds.values()))

    def counts(self) -> Iterator[tuple[AnyKind, int]]:
        """Yield each stored kind and its number of objects."""
        for cache in self._stored:
            yield cache.kind, len(cache)

    # Waiting.

    async def wait_loaded(self) -> None:
        await self._loaded.wait()

    async def wait_until(self, revision: int) -> None:
        """Wait until the cache has seen `revision`.

        Raises: StatusError 504 when that takes longer than `wait_seconds`.
        """
        if self._revision >= revision:
            return
        arrived: Future[None] = get_running_loop().create_future()
        heapq.heappush(self._waiters, (revision, next(self._order), arrived))
        with anyio.move_on_after(self._limits.wait_seconds):
            await arrived
        if not arrived.done() or arrived.cancelled():
            raise errors.too_large_resource_version(revision, self._revision)

    def _wake(self) -> None:
        waiters = self._waiters
        while waiters and (waiters[0][0] <= self._revision or waiters[0][2].done()):
            arrived = heapq.heappop(waiters)[2]
            if not arrived.done():
                arrived.set_result(None)

    # Watching.

    def watch(
        self,
        kind: AnyKind,
        namespace: str = "",
        *,
        since_revision: int = 0,
        predicate: Predicate | None = None,
        convert: Convert | None = None,
        bookmarks: bool = False,
        timeout_seconds: float = 0.0,
        initial_events_end: bool = False,
    ) -> Watcher:
        """Watch a kind from `since_revision`; 0 begins with the current state as ADDED events.

        With `initial_events_end` a bookmark with an annotation marks the end of the current state.
        `predicate` selects stored objects, `convert` changes what the watcher receives.

        Raises: StatusError 410 when the window does not reach back to `since_revision`.
        """
        cache = self._kinds[kind]
        watcher = Watcher(
            capacity=self._limits.queue_per_watcher,
            batch_size=self._limits.batch,
            on_close=self._leave,
            rest=self._pace.rest,
        )
        if since_revision == 0:
            watcher.preload(list(_present(cache.in_order(namespace), predicate, convert)))
            if initial_events_end:
                watcher.preload([_initial_events_end(cache.kind, self._revision, convert)])
        elif since_revision < cache.oldest:
            raise errors.expired(f"too old resource version: {since_revision} ({cache.oldest})")
        else:
            watcher.preload(list(_past(cache.since(since_revision), namespace, predicate, convert)))
        now = self._clock.monotonic()
        cache.subscriptions.append(
            Subscription(
                watcher=watcher,
                namespace=namespace,
                predicate=predicate,
                convert=convert,
                after_revision=since_revision,
                bookmarks=bookmarks,
                next_bookmark=now + self._limits.bookmark_seconds,
                deadline=now + (timeout_seconds or self._limits.watch_seconds),
            )
        )
        return watcher

    def _leave(self, watcher: Watcher) -> None:
        for cache in self._stored:
            for index, subscription in enumerate(cache.subscriptions):
                if subscription.watcher is watcher:
                    del cache.subscriptions[index]
                    return

    def end_watches(self, error: errors.StatusError | None = None) -> None:
        """End all watches, with `error` if given."""
        for cache in self._stored:
            for subscription in list(cache.subscriptions):
                subscription.watcher.end(error)

    # Following etcd.

    async def run(self) -> None:
        """List, follow and reconnect, until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._housekeeping)
            await self._follow()

    async def _follow(self) -> None:
        retries = Retries(_RETRY)
        while True:
            try:
                is_followed = self._revision and not self._lacks_changes
                if not is_followed or await self._storage.current_revision() < self._revision:
                    # A later revision here: etcd was restored from a backup, or lost acknowledged writes.
                    await self._load()
                async with aclosing(watch(self._channel, self._revision + 1)) as batches:
                    async for changes in batches:
                        self.connected = True
                        retries.reset()
                        self._apply(changes)
            except Compacted as error:
                _log.warning(
                    "etcd has compacted revisions that the cache had not read; listing again",
                    error=str(error),
                )
                self._lacks_changes = True
            except StorageError as error:
                # Log once, not at every attempt.
                if self.connected or not retries.failures:
                    _log.warning("etcd does not answer; going on when it does", error=str(error))
            self.connected = False
            await self._clock.sleep(retries.next_delay())

    async def _load(self) -> None:
        """List everything at one revision and serve it; all watches end and their clients list again."""
        loaded: dict[KindCache, list[tuple[str, CachedObject]]] = {cache: [] for cache in self._stored}
        page = await self._storage.range(ROOT, limit=_LOAD_PAGE)
        revision = page.revision
        while True:
            for value in page.items:
                found = self._object(value.key, value.data, value.mod_revision)
                if found is not None and found[2] is not None:
                    loaded[found[0]].append((found[1], found[2]))
            if not page.more:
                break
            page = await self._storage.range(
                ROOT, revision=revision, limit=_LOAD_PAGE, start_after=page.items[-1].key
            )
        self.end_watches(errors.expired("too old resource version: the server has listed its state again"))
        for cache, objects in loaded.items():
            cache.replace(objects, revision)
        self._revision = revision
        self._lacks_changes = False
        self._wake()
        self._loaded.set()
        _log.info("cache loaded", revision=revision, objects=sum(map(len, loaded.values())))

    def _object(self, key: str, data: bytes, revision: int) -> _Found | None:
        """Return the cache, the key there and the object of a value in etcd, or None for a key of no kind."""
        place = self._place(key)
        if place is None:
            return None
        cache, below = place
        namespace, _, name = below.rpartition("/")
        try:
            current = self.objects.of(cache.kind, namespace, name, revision, data)
            # A value that is not an envelope fails here, once, and not at every reader.
            _ = current.data
        except envelope.EnvelopeError as error:
            _log.warning("an object in etcd cannot be read", key=key, error=str(error))
            return None
        return cache, below, current

    def _place(self, key: str) -> tuple[KindCache, str] | None:
        if not key.startswith(ROOT):
            return None
        for cache, length, prefix in self._places.get(key[len(ROOT) :].partition("/")[0], ()):
            if key.startswith(prefix):
                below = key[length:]
                return (cache, below) if cache.kind.namespaced == ("/" in below) else None
        return None

    def _apply(self, changes: Iterable[Change]) -> None:
        """Apply etcd's changes in their order, and send them to the watchers."""
        revision = self._revision
        for change in changes:
            # A resumed watch begins after the cache's revision; this guards against duplicate events.
            if change.revision <= self._revision:
                continue
            revision = change.revision
            if change.data is None:
                place = self._place(change.key)
                found: _Found | None = (*place, None) if place is not None else None
            else:
                found = self._object(change.key, change.data, revision)
            if found is None:
                continue
            cache, key, current = found
            transition = cache.apply(key, current, revision)
            if transition is not None:
                self._fan_out(cache, transition)
        # All changes of a revision come in one response, so the revision is complete.
        self._revision = revision
        if self._waiters:
            self._wake()

    def _fan_out(self, cache: KindCache, transition: Transition) -> None:
        namespace = transition.namespace
        ended: list[tuple[Watcher, errors.StatusError]] | None = None
        for subscription in cache.subscriptions:
            if subscription.namespace and subscription.namespace != namespace:
                continue
            if transition.revision <= subscription.after_revision:
                continue
            try:
                event = transition.event(subscription.predicate, subscription.convert)
            except Exception as error:  # noqa: BLE001  # bytes that no selector can look into: not everybody's end
                _log.warning("an event cannot be shown to a watcher", kind=cache.kind.kind, error=str(error))
                problem = errors.internal(f"an object of the watch cannot be read: {error}")
                ended = [*(ended or ()), (subscription.watcher, problem)]
                continue
            if event is not None and not subscription.watcher.offer(event):
                ended = [*(ended or ()), (subscription.watcher, self._fell_behind())]
        for watcher, problem in ended or ():
            watcher.drop(problem)
        transition.slim()
        if transition.previous is not None:
            transition.previous.slim()

    def _fell_behind(self) -> errors.StatusError:
        return errors.too_many_requests(
            f"the watch fell behind: more than {self._limits.queue_per_watcher} events wait for it;"
            " watch again from the last resourceVersion seen",
            retry_after_seconds=1,
        )

    async def _housekeeping(self) -> None:
        """Send bookmarks that are due, and end watches whose time is up."""
        while True:
            await self._clock.sleep(_HOUSEKEEPING_SECONDS)
            now = self._clock.monotonic()
            for cache in self._stored:
                bookmarks: dict[Convert | None, WatchEvent] = {}
                for subscription in list(cache.subscriptions):
                    over = now >= subscription.deadline
                    if (
                        subscription.bookmarks
                        and self.connected
                        and (over or now >= subscription.next_bookmark)
                    ):
                        subscription.next_bookmark = now + self._limits.bookmark_seconds
                        self._bookmark(cache, subscription, bookmarks)
                    if over:
                        subscription.watcher.end()

    def _bookmark(
        self, cache: KindCache, subscription: Subscription, made: dict[Convert | None, WatchEvent]
    ) -> None:
        if self._revision < subscription.after_revision:
            return
        event = made.get(subscription.convert)
        if event is None:
            empty = CachedObject(cache.kind, "", "", self._revision, stored=envelope.wrap(cache.kind, b""))
            shown = subscription.convert(empty) if subscription.convert else empty
            event = made[subscription.convert] = WatchEvent(EventType.BOOKMARK, shown)
        # When the queue is full, the next event will end the watcher as too slow.
        subscription.watcher.offer(event)


def _present(
    objects: Iterator[CachedObject], predicate: Predicate | None, convert: Convert | None
) -> Iterator[WatchEvent]:
    for current in objects:
        if predicate is None or predicate(current):
            yield WatchEvent(EventType.ADDED, current.converted(convert) if convert else current)


def _initial_events_end(kind: AnyKind, revision: int, convert: Convert | None) -> WatchEvent:
    """Return the bookmark that ends the initial events of a streaming list (KEP-3157)."""
    empty: Any = kind.message()
    empty.metadata.annotations["k8s.io/initial-events-end"] = "true"
    bookmark = CachedObject(kind, "", "", revision, stored=envelope.encode(empty))
    return WatchEvent(EventType.BOOKMARK, bookmark.converted(convert) if convert else bookmark)


def _past(
    transitions: Iterator[Transition], namespace: str, predicate: Predicate | None, convert: Convert | None
) -> Iterator[WatchEvent]:
    for transition in transitions:
        if namespace and transition.namespace != namespace:
            continue
        event = transition.event(predicate, convert)
        transition.slim()
        if event is not None:
            yield event
