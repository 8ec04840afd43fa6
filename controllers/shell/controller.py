"""The shape of a controller: informers name keys, workers reconcile them, each by one worker at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

import anyio

from machinery.api import kinds
from machinery.api.errors import StatusError, is_conflict, is_not_found
from machinery.api.kinds import Kind
from machinery.api.objects import ObjectKey, controller_of, key_of
from machinery.client.api_client import Client
from machinery.client.informer import Informer
from machinery.events.correlating_recorder import CorrelatingRecorder
from machinery.events.recorder import EventRecorder
from machinery.features.gates import Gates
from machinery.runtime.clock import Clock
from machinery.runtime.failpoints import FailpointError
from machinery.runtime.work_queue import WorkQueue
from machinery.scheduling.volume_matching import class_of

K = TypeVar("K", bound=Hashable)
Indexers = dict[str, Callable[[Any], Iterable[str]]]


def _owners(obj: Any) -> list[str]:
    return [owner.uid for owner in obj.metadata.ownerReferences]


def _orphaned(obj: Any) -> list[str]:
    return [] if controller_of(obj) is not None else [obj.metadata.namespace]


def _claim_of(volume: Any) -> list[str]:
    if volume.spec.HasField("claimRef"):
        return [f"{volume.spec.claimRef.namespace}/{volume.spec.claimRef.name}"]
    return []


def _class_of_free(volume: Any) -> list[str]:
    return [] if volume.spec.HasField("claimRef") else [class_of(volume)]


def _service_of(found: Any) -> list[str]:
    labels = found.metadata.labels
    name = labels.get("kubernetes.io/service-name", "")
    return [f"{found.metadata.namespace}/{name}"] if name else []


def namespace_ends(error: StatusError) -> bool:
    """Whether something could not be made since its namespace is on its way out: nothing to tell or retry."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


_EVERY: Indexers = {"owner": _owners}
_MORE: dict[Kind[Any], Indexers] = {
    kinds.POD: {
        "node": lambda pod: [pod.spec.nodeName] if pod.spec.nodeName else [],
        "orphans": _orphaned,
    },
    kinds.REPLICA_SET: {"orphans": _orphaned},
    kinds.ENDPOINT_SLICE: {"service": _service_of},
    kinds.PERSISTENT_VOLUME: {"claim": _claim_of, "free": _class_of_free},
}


class InformerSet:
    """The process's informers, one per kind, shared by its controllers."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._informers: dict[Kind[Any], Informer[Any]] = {}

    def of(self, kind: Kind[Any]) -> Informer[Any]:
        """The informer of a kind, made at the first call.

        All are indexed by `owner` (uid); pods by `node`; pods and replica sets without a controller by
        namespace in `orphans`; volumes by `claim` (ns/name) or, without one, by class in `free`; endpoint
        slices by `service` (ns/name).
        """
        if kind not in self._informers:
            indexers = {**_EVERY, **_MORE.get(kind, {})}
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


class Recorders:
    """One event recorder for each name under which the process's controllers speak."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._recorders: dict[str, EventRecorder] = {}

    def of(self, component: str) -> EventRecorder:
        """Return the recorder of a component ("node-controller"), made at the first call."""
        if component not in self._recorders:
            self._recorders[component] = CorrelatingRecorder(self._client, component, clock=self._clock)
        return self._recorders[component]

    async def run(self) -> None:
        """Sends their events until cancelled."""
        async with anyio.create_task_group() as tasks:
            for recorder in self._recorders.values():
                tasks.start_soon(recorder.run)


class Context:
    """What a controller is built from."""

    def __init__(
        self,
        *,
        client: Client,
        informers: InformerSet,
        clock: Clock,
        recorders: Recorders,
        gates: Gates,
        log: Any,
        root_ca: str = "",
    ) -> None:
        self.client = client
        self.root_ca = root_ca
        self.gates = gates
        self.informers = informers
        self.clock = clock
        self.recorders = recorders
        self.log = log


class Runner(ABC):
    """A part of the process that runs until it is cancelled."""

    name: str
    component: str = "kube-controller-manager"
    """Under which name it records events, as upstream's does."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.client = context.client
        self.clock = context.clock
        self.recorder = context.recorders.of(self.component)
        self.log = context.log.bind(controller=self.name)

    @abstractmethod
    async def run(self) -> None:
        """Works until cancelled."""


class Worker(Runner, Generic[K]):
    """Reconciles keys. `reconcile` is called for one key by one worker at a time.

    A StatusError or FailpointError is logged and the key comes back after its back-off; a conflict (409)
    comes back quietly, since the informer will soon have the newer object. So does the key of any other
    exception, which is logged with its traceback.
    """

    workers = 4

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.queue: WorkQueue[K] = WorkQueue(context.clock)

    @abstractmethod
    async def reconcile(self, key: K) -> float | None:
        """Brings one object on; returns seconds after which to look again, or None."""

    async def run(self) -> None:
        await self.queue.run_workers(self._work, self.workers)

    async def _work(self, key: K) -> None:
        try:
            again = await self.reconcile(key)
        except (StatusError, FailpointError) as error:
            if not (isinstance(error, StatusError) and (is_conflict(error) or is_not_found(error))):
                self.log.warning("reconcile failed", key=str(key), error=str(error))
            self.queue.add_rate_limited(key)
        except Exception as error:
            # An object with unexpected content must not stop the reconciliation of all others.
            self.log.error("reconcile broke", key=str(key), error=repr(error), exc_info=error)
            self.queue.add_rate_limited(key)
        else:
            self.queue.forget(key)
            if again is not None:
                self.queue.add_after(key, again)


class Controller(Worker[ObjectKey]):
    """A controller over the objects of one kind."""

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
