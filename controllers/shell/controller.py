"""The base of all controllers: informers name keys, workers reconcile them, one worker a key at a time."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

import anyio
from google.protobuf.message import Message

from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.metrics import MeasuredQueue
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, ignoring, is_conflict, is_not_found
from nominee.machinery.api.kinds import Kind, M, Object
from nominee.machinery.api.objects import ObjectKey, controller_of, copy_of, key_of, metadata_of
from nominee.machinery.api.pb import core, discovery, meta
from nominee.machinery.api.selectors import LabelSelector
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.watches.informer import IndexFunction, Informer
from nominee.machinery.events.correlating_recorder import CorrelatingRecorder
from nominee.machinery.events.recorder import BufferedRecorder
from nominee.machinery.features.gates import Gates
from nominee.machinery.process.serving_port.debug_state import Copy
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.runtime.failpoints import FailpointError
from nominee.machinery.runtime.logs import Logger
from nominee.machinery.scheduling.volume_matching import class_of
from nominee.machinery.wire.codec import to_json

UNSEEN_SECONDS: Final = 1.0
"""Until an object is looked at again that depends on another one, which lives and is in no informer yet.

If that one goes before its watch has shown it, no event says so."""
K = TypeVar("K", bound=Hashable)
Indexers = Mapping[str, IndexFunction[Any]]


def _owners(obj: Object) -> list[str]:
    return [owner.uid for owner in obj.metadata.ownerReferences]


def _orphaned(obj: Object) -> list[str]:
    if controller_of(obj) is not None:
        return []
    namespace, labels = obj.metadata.namespace, obj.metadata.labels.items()
    return [namespace, *(orphans_with(namespace, name, value) for name, value in labels)]


def orphans_with(namespace: str, label: str, value: str) -> str:
    """Return the value in the index `orphans` of the objects of a namespace with a label."""
    return f"{namespace} {label}={value}"


def _claim_of(volume: core.PersistentVolume) -> list[str]:
    if volume.spec.HasField("claimRef"):
        return [f"{volume.spec.claimRef.namespace}/{volume.spec.claimRef.name}"]
    return []


def _class_of_free(volume: core.PersistentVolume) -> list[str]:
    return [] if volume.spec.HasField("claimRef") else [class_of(volume)]


def _node_of(pod: core.Pod) -> list[str]:
    return [pod.spec.nodeName] if pod.spec.nodeName else []


def _namespace_of(obj: Object) -> list[str]:
    return [obj.metadata.namespace]


def _service_of(endpoint_slice: discovery.EndpointSlice) -> list[str]:
    name = endpoint_slice.metadata.labels.get("kubernetes.io/service-name", "")
    return [f"{endpoint_slice.metadata.namespace}/{name}"] if name else []


def controller_key(obj: Object, kind: Kind[Message]) -> ObjectKey | None:
    """Return the key of the object's controller, or None if it has none of this kind."""
    owner = controller_of(obj)
    if owner is None or owner.kind != kind.kind:
        return None
    return ObjectKey(obj.metadata.namespace, owner.name)


def namespace_ends(error: StatusError) -> bool:
    """Report whether a creation failed since the namespace terminates: no event, no retry."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


_INDEXERS_OF_ALL: Final[Indexers] = {"owner": _owners}
_INDEXERS: Final[Mapping[Kind[Message], Indexers]] = {
    kinds.POD: {"node": _node_of, "namespace": _namespace_of, "orphans": _orphaned},
    kinds.CONTROLLER_REVISION: {"orphans": _orphaned},
    kinds.REPLICA_SET: {"orphans": _orphaned},
    kinds.ENDPOINT_SLICE: {"service": _service_of},
    kinds.PERSISTENT_VOLUME: {"claim": _claim_of, "free": _class_of_free},
}


class InformerSet:
    """The process's informers, one per kind, shared by its controllers."""

    def __init__(self, client: Client, clock: Clock, rng: random.Random | None = None) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._informers: dict[Kind[Message], Informer[Any]] = {}

    def of(self, kind: Kind[M]) -> Informer[M]:
        """Return the informer of a kind, created at the first call.

        All are indexed by `owner` (uid); pods by `node` and `namespace`; pods, replica sets and controller
        revisions without a controller by namespace, and by each label, in `orphans`; volumes by `claim`
        (ns/name) or, without one, by class in `free`; endpoint slices by `service` (ns/name).
        """
        if kind not in self._informers:
            indexers = {**_INDEXERS_OF_ALL, **_INDEXERS.get(kind, {})}
            self._informers[kind] = Informer(
                self._client, kind, clock=self._clock, rng=self._rng, indexers=indexers
            )
        return cast("Informer[M]", self._informers[kind])

    def copies(self) -> Sequence[Copy]:
        """Return the informers that were created."""
        return list(self._informers.values())

    async def run(self) -> None:
        """Run all informers until cancelled."""
        async with anyio.create_task_group() as tasks:
            for informer in self._informers.values():
                tasks.start_soon(informer.run)

    async def wait_synced(self) -> None:
        """Wait until each informer has its first list."""
        for informer in self._informers.values():
            await informer.wait_synced()


class Recorders:
    """One event recorder for each component name of the process's controllers."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._recorders: dict[str, BufferedRecorder] = {}

    def of(self, component: str) -> BufferedRecorder:
        """Return the recorder of a component ("node-controller"), created at the first call."""
        if component not in self._recorders:
            self._recorders[component] = CorrelatingRecorder(self._client, component, clock=self._clock)
        return self._recorders[component]

    async def run(self) -> None:
        """Send the recorded events until cancelled."""
        async with anyio.create_task_group() as tasks:
            for recorder in self._recorders.values():
                tasks.start_soon(recorder.run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The dependencies of a controller."""

    client: Client
    informers: InformerSet
    clock: Clock
    recorders: Recorders
    gates: Gates
    log: Logger
    root_ca: str = ""
    """The API server's authority (PEM), "" where it has none."""


class Runner(ABC):
    """A part of the process that runs until it is cancelled."""

    name: str
    component: str = "kube-controller-manager"
    """The name under which it records events, as upstream's controller does."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.client = context.client
        self.clock = context.clock
        self.recorder = context.recorders.of(self.component)
        self.log = context.log.bind(controller=self.name)

    @abstractmethod
    async def run(self) -> None:
        """Run until cancelled."""

    def outstanding(self) -> list[str]:
        """Return the keys of objects that wait for the watch to show an earlier write."""
        return []

    async def drop_finalizer(self, obj: Object | Message, finalizer: str) -> None:
        """Remove a finalizer from an object that has it."""
        if finalizer in metadata_of(obj).finalizers:
            new = copy_of(cast("Message", obj))
            metadata_of(new).finalizers.remove(finalizer)
            await self.client.update(new)

    async def delete_if_exists(self, obj: Object | Message) -> None:
        """Delete an object with this uid; one that is gone is no error."""
        kind, metadata = kinds.of(cast("Message", obj)), metadata_of(obj)
        with ignoring(is_not_found):
            await self.client.delete(kind, metadata.name, metadata.namespace, uid=metadata.uid)

    async def write_status(self, obj: M, status: Message) -> M | None:
        """Write a status if it is not the object's; return the object as written."""
        old: Message = obj.status  # type: ignore[attr-defined]  # Message does not declare it
        if to_json(status) == to_json(old):
            return None
        new = copy_of(obj)
        new.status.CopyFrom(status)  # type: ignore[attr-defined]  # as above
        return await self.client.update(new, subresource="status")

    def record(self, regarding: Message, event: PlannedEvent | None) -> None:
        """Record an event about an object or an ObjectReference; None is no event."""
        if event is not None:
            self.recorder.event(regarding, event.type, event.reason, action="", note=event.note)


class Worker(Runner, Generic[K]):
    """A runner that reconciles keys: `reconcile` is called for one key by one worker at a time.

    A key whose reconciliation raises comes back after its back-off, unless its namespace terminates.
    StatusError and FailpointError are logged, but not a conflict (409) or NotFound: the informer will soon
    have the newer object. Every other exception is logged with its traceback.
    """

    workers = 4

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.queue: MeasuredQueue[K] = MeasuredQueue(context.clock, self.name)

    @abstractmethod
    async def reconcile(self, key: K) -> float | None:
        """Reconcile one object; return the seconds after which to reconcile it again, or None."""

    async def run(self) -> None:
        await self.queue.run_workers(self._work, self.workers)

    async def _work(self, key: K) -> None:
        try:
            again = await self.reconcile(key)
        except (StatusError, FailpointError) as error:
            if isinstance(error, StatusError) and namespace_ends(error):
                self.queue.forget(key)
                return
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

    def watch(self, kind: Kind[M]) -> Informer[M]:
        """Return the shared informer of a kind; its objects' keys go to this controller's queue."""
        informer = self.context.informers.of(kind)
        informer.on_change(self._enqueue)
        return informer

    def _enqueue(self, obj: Object | Message) -> None:
        self.queue.add(key_of(obj))

    def enqueue_owner(
        self, obj: Object, owners: Informer[M], selector_of: Callable[[M], meta.LabelSelector]
    ) -> None:
        """Queue the controller of an object, or those that may adopt it if it has none."""
        if controller_of(obj) is None:
            for owner in owners.list(obj.metadata.namespace):
                if LabelSelector.from_message(selector_of(owner)).matches(obj.metadata.labels):
                    self._enqueue(owner)
        elif (key := controller_key(obj, owners.kind)) is not None:
            self.queue.add(key)
