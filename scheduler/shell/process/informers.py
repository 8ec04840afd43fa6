"""Watch the objects that the scheduler needs, and pass each change to the event handlers."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.event_handlers import EventHandlers
from nominee.scheduler.framework.api.events import ActionType, EventResource

# A finished pod uses nothing any more: it is deleted for the scheduler (kube-scheduler's pod informer).
NOT_FINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"
RESOURCE_KINDS: Final[Mapping[EventResource, Kind[Any]]] = {
    EventResource.PVC: kinds.PERSISTENT_VOLUME_CLAIM,
    EventResource.PV: kinds.PERSISTENT_VOLUME,
    EventResource.StorageClass: kinds.STORAGE_CLASS,
    EventResource.CSINode: kinds.CSI_NODE,
    EventResource.CSIDriver: kinds.CSI_DRIVER,
    EventResource.CSIStorageCapacity: kinds.CSI_STORAGE_CAPACITY,
    EventResource.VolumeAttachment: kinds.VOLUME_ATTACHMENT,
    EventResource.ResourceClaim: kinds.RESOURCE_CLAIM,
    EventResource.ResourceSlice: kinds.RESOURCE_SLICE,
    EventResource.DeviceClass: kinds.DEVICE_CLASS,
}
# Kinds that plugins list, beside those whose events requeue pods.
LISTED_KINDS: Final[tuple[Kind[Any], ...]] = (
    kinds.POD_DISRUPTION_BUDGET,
    kinds.NAMESPACE,
    kinds.REPLICA_SET,
    kinds.SERVICE,
)


class Informers:
    """All informers of the scheduler; plugins see `listers`."""

    def __init__(
        self, client: Client, clock: Clock, rng: random.Random | None = None, *, groups_pods: bool = False
    ) -> None:
        """Create the informers; `groups_pods`: the API server serves pod groups (GenericWorkload)."""
        self.pods = Informer(client, kinds.POD, field_selector=NOT_FINISHED, clock=clock, rng=rng)
        self.nodes = Informer(client, kinds.NODE, clock=clock, rng=rng)
        self._resource_kinds = dict(RESOURCE_KINDS)
        if groups_pods:
            self._resource_kinds[EventResource.PodGroup] = kinds.POD_GROUP
        others = (*self._resource_kinds.values(), *LISTED_KINDS)
        self.listers: dict[Kind[Any], Informer[Any]] = {
            kinds.POD: self.pods,
            kinds.NODE: self.nodes,
            **{kind: Informer(client, kind, clock=clock, rng=rng) for kind in others},
        }

    def connect(
        self,
        handlers: EventHandlers,
        now: Callable[[], float],
        actions: Mapping[EventResource, ActionType],
        pod_bound: Callable[[core.Pod], None],
        pod_gone: Callable[[core.Pod], None],
    ) -> None:
        """Pass changes to the handlers; of other resources only the actions that some plugin registered."""

        def pod_updated(old: core.Pod, new: core.Pod) -> None:
            handlers.pod_updated(old, new, now())
            if new.spec.nodeName and not old.spec.nodeName:
                pod_bound(new)

        def pod_deleted(pod: core.Pod, stale: bool) -> None:
            handlers.pod_deleted(pod, stale, now())
            pod_gone(pod)

        self.pods.add_handler(
            on_add=lambda pod: handlers.pod_added(pod, now()),
            on_update=pod_updated,
            on_delete=pod_deleted,
        )
        self.nodes.add_handler(
            on_add=lambda node: handlers.node_added(node, now()),
            on_update=lambda old, new: handlers.node_updated(old, new, now()),
            on_delete=lambda node, stale: handlers.node_deleted(node, stale, now()),
        )
        for resource, kind in self._resource_kinds.items():
            self._connect_other(resource, kind, handlers, now, actions.get(resource, ActionType(0)))

    def _connect_other(
        self,
        resource: EventResource,
        kind: Kind[Any],
        handlers: EventHandlers,
        now: Callable[[], float],
        actions: ActionType,
    ) -> None:
        def added(obj: Any) -> None:
            handlers.other_added(resource, obj, now())

        def updated(old: Any, new: Any) -> None:
            handlers.other_updated(resource, old, new, now())

        def deleted(obj: Any, stale: bool) -> None:
            handlers.other_deleted(resource, obj, now())

        self.listers[kind].add_handler(
            on_add=added if actions & ActionType.Add else None,
            on_update=updated if actions & ActionType.Update else None,
            on_delete=deleted if actions & ActionType.Delete else None,
        )

    async def run(self) -> None:
        """Run all informers until cancelled."""
        async with anyio.create_task_group() as group:
            for informer in self.listers.values():
                group.start_soon(informer.run)

    def check_synced(self) -> None:
        """Raise RuntimeError as long as an informer has not listed its objects."""
        if not all(informer.synced for informer in self.listers.values()):
            raise RuntimeError("handlers are not fully synchronized")

    async def wait_synced(self) -> None:
        for informer in self.listers.values():
            await informer.wait_synced()
