"""The shape of a controller: informers name keys, workers reconcile them one at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import anyio

from controllers.work_queue import WorkQueue
from machinery import kinds
from machinery.client import Client
from machinery.clock import Clock
from machinery.errors import StatusError, is_conflict, is_not_found
from machinery.events import EventRecorder
from machinery.failpoints import FailpointError
from machinery.informer import Informer
from machinery.kinds import Kind
from machinery.objects import ObjectKey, key_of

INDEXERS: dict[Kind[Any], dict[str, Callable[[Any], Iterable[str]]]] = {
    kinds.POD: {
        "node": lambda pod: [pod.spec.nodeName] if pod.spec.nodeName else [],
        "owner": lambda pod: [owner.uid for owner in pod.metadata.ownerReferences],
    }
}


class InformerSet:
    """The process's informers, one per kind, shared by its controllers."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._informers: dict[Kind[Any], Informer[Any]] = {}

    def of(self, kind: Kind[Any]) -> Informer[Any]:
        """The informer of a kind, made at the first call; pods are indexed by `node` and `owner` (uid)."""
        if kind not in self._informers:
            indexers = INDEXERS.get(kind, {})
            self._informers[kind] = Informer(self._client, kind, clock=self._clock, indexers=indexers)
        return self._informers[kind]

    async def run(self) -> None:
        """Runs them all until cancelled."""
        async with anyio.create_task_group() as tasks:
            for informer in self._informers.values():
                tasks.start_soon(informer.run)

    async def wait_synced(self) -> None:
        """Returns when each has its first list."""
        for informer in self._informers.values():
            await informer.wait_synced()


class Context:
    """What a controller is built from."""

    def __init__(
        self, *, client: Client, informers: InformerSet, clock: Clock, recorder: EventRecorder, log: Any
    ) -> None:
        self.client = client
        self.informers = informers
        self.clock = clock
        self.recorder = recorder
        self.log = log


class Controller(ABC):
    """A controller over keys. `reconcile` is called for one key by one worker at a time.

    A StatusError or FailpointError is logged and the key comes back after its back-off; a conflict (409)
    comes back quietly, since the informer will soon have the newer object.
    """

    name: str
    workers = 4

    def __init__(self, context: Context) -> None:
        self.context = context
        self.client = context.client
        self.clock = context.clock
        self.recorder = context.recorder
        self.log = context.log.bind(controller=self.name)
        self.queue: WorkQueue[ObjectKey] = WorkQueue(context.clock)

    @abstractmethod
    async def reconcile(self, key: ObjectKey) -> float | None:
        """Brings one object on; returns seconds after which to look again, or None."""

    def watch(self, kind: Kind[Any]) -> Informer[Any]:
        """The shared informer of a kind; its objects' keys go to this controller's queue."""
        informer = self.context.informers.of(kind)
        informer.add_handler(
            on_add=self._enqueue,
            on_update=lambda _old, new: self._enqueue(new),
            on_delete=lambda obj, _stale: self._enqueue(obj),
        )
        return informer

    def _enqueue(self, obj: Any) -> None:
        self.queue.add(key_of(obj))

    async def run(self) -> None:
        """Works until cancelled."""
        async with anyio.create_task_group() as tasks:
            for _ in range(self.workers):
                tasks.start_soon(self._work)

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                again = await self.reconcile(key)
            except (StatusError, FailpointError) as error:
                if not (isinstance(error, StatusError) and (is_conflict(error) or is_not_found(error))):
                    self.log.warning("reconcile failed", key=str(key), error=str(error))
                self.queue.add_rate_limited(key)
            else:
                self.queue.forget(key)
                if again is not None:
                    self.queue.add_after(key, again)
            finally:
                self.queue.done(key)
