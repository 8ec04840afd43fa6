"""The objects of a cluster as the API server's watches show them, with every change in order.

Conditions are evaluated at each change, so that a state that lasts a moment is not missed as it would be by
polling. A state between two lists of an informer (the API server was down) is not seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import anyio
import anyio.abc
from google.protobuf.message import Message

from nominee.lab.scenario.observing.base import Condition, JsonObject, Observed
from nominee.lab.scenario.observing.snapshot import Snapshot
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import ObjectKey, key_of, resource_version_of
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.wire.codec import to_json

ALWAYS_WATCHED: tuple[AnyKind, ...] = (kinds.POD, kinds.NODE)
Change = Callable[[AnyKind, Message | None, Message | None], None]
"""A listener: kind, object before, object after."""


def watched_kinds(conditions: Iterable[Condition]) -> list[AnyKind]:
    """Return the kinds that conditions look at, and those that are always watched."""
    looked_at = (kind for condition in conditions for kind in condition.watched())
    return list(dict.fromkeys((*ALWAYS_WATCHED, *looked_at)))


class World:
    """Copies of the objects of some kinds."""

    def __init__(self, client: Client, clock: Clock, watched: Sequence[AnyKind]) -> None:
        self._client, self._clock = client, clock
        self._informers: dict[AnyKind, Informer[Message]] = {}
        self._json: dict[tuple[AnyKind, ObjectKey], tuple[Message, JsonObject]] = {}
        self._last_states: dict[tuple[AnyKind, ObjectKey], tuple[Message, float]] = {}
        """The last state of objects that are gone, and when their deletion was seen."""
        self._began = clock.monotonic()
        self._listeners: list[Change] = []
        self._newest = 0
        self.change_revision: int | None = None
        """The revision of the change that listeners hear of; None for a deletion that a list showed."""
        self._changes = 0
        self._awaited: anyio.Event | None = None
        self._last: tuple[Condition, int, Observed] | None = None
        """The last evaluation, and the number of changes then: polling costs nothing while none happen."""
        for kind in watched:
            # A generator with a fixed seed, so that a simulation is repeatable.
            rng = random.Random(kind.plural)
            informer: Informer[Message] = Informer(client, kind, clock=clock, rng=rng)
            self._informers[kind] = informer
            informer.add_handler(
                on_add=partial(self._changed, kind, None),
                on_update=partial(self._changed, kind),
                on_delete=partial(self._deleted, kind),
            )

    async def open(self, tasks: anyio.abc.TaskGroup) -> None:
        """Start the watches, and wait until every kind is listed."""
        for informer in self._informers.values():
            tasks.start_soon(informer.run)
        for informer in self._informers.values():
            await informer.wait_synced()

    def watches(self, kind: AnyKind) -> bool:
        """Return whether the objects of a kind are watched."""
        return kind in self._informers

    def last_deleted(self, kind: AnyKind, name: str, namespace: str) -> int:
        """Return the revision of an object's last deletion that was seen, or 0."""
        last = self._last_states.get((kind, ObjectKey(namespace, name)))
        return 0 if last is None else resource_version_of(last[0])

    def deletions(self, kind: AnyKind) -> list[tuple[Message, float]]:
        """Return the last state of each deleted object, the latest last, and the time: seconds of the run."""
        return [found for (each, _), found in self._last_states.items() if each is kind]

    def _changed(self, kind: AnyKind, old: Message | None, new: Message | None) -> None:
        if new is not None:
            self.change_revision = resource_version_of(new)
        elif old is not None:
            self._json.pop((kind, key_of(old)), None)
        self._newest = max(self._newest, self.change_revision or 0)
        self._changes += 1
        if self._awaited is not None:
            self._awaited.set()
            self._awaited = None
        for listener in list(self._listeners):
            listener(kind, old, new)

    def _deleted(self, kind: AnyKind, last: Message, stale: bool) -> None:
        key = (kind, key_of(last))
        self._last_states.pop(key, None)
        self._last_states[key] = (last, self._clock.monotonic() - self._began)
        self.change_revision = None if stale else resource_version_of(last)
        self._changed(kind, last, None)

    async def wait_changed(self, seconds: float) -> None:
        """Wait until an object changes, for at most so many seconds."""
        if self._awaited is None:
            self._awaited = anyio.Event()
        changed = self._awaited
        async with anyio.create_task_group() as tasks:

            async def limit() -> None:
                await self._clock.sleep(seconds)
                tasks.cancel_scope.cancel()

            tasks.start_soon(limit)
            await changed.wait()
            tasks.cancel_scope.cancel()

    @property
    def revision(self) -> int:
        """Return the newest revision that a watch has shown."""
        shown = (int(each.resource_version or 0) for each in self._informers.values())
        return max(self._newest, *shown)

    def is_mixed(self, looked_at: Sequence[AnyKind]) -> bool:
        """Return whether the copies of a kind may be older than the newest revision."""
        newest = self.revision
        return any(self.revision_of(kind) < newest for kind in looked_at)

    def revision_of(self, kind: AnyKind) -> int:
        """Return the newest revision that the watch of a kind has shown."""
        return int(self._informers[kind].resource_version or 0)

    async def at(self, revision: int, looked_at: Iterable[AnyKind]) -> Snapshot:
        """Read the objects of some kinds as they were at a revision.

        Raises:
            StatusError: the API server does not answer, or the revision is compacted.
        """
        listed = {}
        for kind in dict.fromkeys(looked_at):
            found = await self._client.list(
                kind, resource_version=str(revision), resource_version_match="Exact"
            )
            listed[kind] = found.items
        return Snapshot(listed, self.deletions)

    @contextmanager
    def listening(self, listener: Change) -> Iterator[None]:
        """Call a listener at each change inside the block."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    # Reading

    def get(self, kind: AnyKind, name: str, namespace: str) -> Message | None:
        """Return an object, or None if there is no such object."""
        return self._informers[kind].get(name, namespace)

    def messages(self, kind: AnyKind, namespace: str = "") -> list[Message]:
        """Return the objects of a kind; "" is all namespaces."""
        return self._informers[kind].list(namespace)

    def json(self, kind: AnyKind, message: Message) -> JsonObject:
        """Return an object as JSON."""
        key = (kind, key_of(message))
        cached = self._json.get(key)
        if cached is None or cached[0] is not message:
            cached = self._json[key] = (message, to_json(message))
        return cached[1]

    def evaluate(self, condition: Condition) -> Observed:
        """Evaluate a condition that is about objects and events only."""
        last = self._last
        if last is None or last[0] is not condition or last[1] != self._changes:
            last = self._last = (condition, self._changes, condition.evaluate(self))
        return last[2]
