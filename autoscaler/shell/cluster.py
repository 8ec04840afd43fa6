"""The API server as the executor's port: informers to read from, a client to write with."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nominee.autoscaler.options import Compat, Options
from nominee.autoscaler.planning.node_groups.status import timestamp
from nominee.autoscaler.planning.objects import annotation_keys, taints
from nominee.autoscaler.planning.objects.events import Event
from nominee.autoscaler.planning.objects.observation import ControllerKey, DaemonSet, Observation
from nominee.autoscaler.planning.objects.pods import is_unschedulable
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, ignoring, is_conflict, is_not_found
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.client.watches.live_objects import get_if_exists
from nominee.machinery.events.recorder import BufferedRecorder
from nominee.machinery.events.reference import reference
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.wire.files import yaml_text

NOT_COMPLETED = "status.phase!=Succeeded,status.phase!=Failed"
CONFLICTS_MAX = 8
CONFLICT_RETRY_SECONDS = 0.02
_CONTROLLERS: tuple[Kind[Any], ...] = (
    kinds.REPLICATION_CONTROLLER,
    kinds.REPLICA_SET,
    kinds.STATEFUL_SET,
    kinds.JOB,
    kinds.DAEMON_SET,
)
_READ_BY_PLUGINS = (
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.PERSISTENT_VOLUME,
    kinds.STORAGE_CLASS,
    kinds.NAMESPACE,
    kinds.RESOURCE_CLAIM,
    kinds.RESOURCE_SLICE,
    kinds.DEVICE_CLASS,
)


class ApiCluster:
    """The API server. `informers` must run beside it; the simulation's plugins read `listers`."""

    def __init__(
        self,
        client: Client,
        options: Options,
        clock: Clock,
        recorder: BufferedRecorder,
        rng: random.Random | None = None,
    ) -> None:
        self._client, self._options, self._clock, self._recorder = client, options, clock, recorder
        self.pods: Informer[core.Pod] = Informer(
            client, kinds.POD, field_selector=NOT_COMPLETED, clock=clock, rng=rng
        )
        self.nodes: Informer[core.Node] = Informer(client, kinds.NODE, clock=clock, rng=rng)
        self._budgets = Informer(client, kinds.POD_DISRUPTION_BUDGET, clock=clock, rng=rng)
        self._controllers: dict[Kind[Any], Informer[Any]] = {
            kind: Informer(client, kind, clock=clock, rng=rng) for kind in _CONTROLLERS
        }
        self.listers: dict[Kind[Any], Informer[Any]] = {
            kinds.POD: self.pods,
            kinds.NODE: self.nodes,
            kinds.REPLICA_SET: self._controllers[kinds.REPLICA_SET],
            **{kind: Informer(client, kind, clock=clock, rng=rng) for kind in _READ_BY_PLUGINS},
        }
        self.informers = [*{**self._controllers, **self.listers}.values(), self._budgets]
        self._status_reference = core.ObjectReference(
            apiVersion="v1",
            kind="ConfigMap",
            namespace=options.namespace,
            name=options.status_config_map_name,
        )

    def on_unschedulable(self, callback: Callable[[], None]) -> None:
        """Call the function whenever a pod becomes unschedulable."""

        def changed(old: core.Pod | None, new: core.Pod) -> None:
            if is_unschedulable(new) and (old is None or not is_unschedulable(old)):
                callback()

        self.pods.add_handler(on_add=lambda pod: changed(None, pod), on_update=changed)

    # Reading

    def observe(self) -> Observation:
        return self._observation(tuple(self.nodes.list()), tuple(self.pods.list()))

    def _observation(self, nodes: tuple[core.Node, ...], pods: tuple[core.Pod, ...]) -> Observation:
        return Observation(
            nodes=nodes,
            pods=pods,
            budgets=tuple(self._budgets.list()),
            controllers={
                ControllerKey(kind.kind, obj.metadata.namespace, obj.metadata.name): _replicas(kind, obj)
                for kind, informer in self._controllers.items()
                for obj in informer.list()
            },
            daemon_sets=tuple(map(DaemonSet.of, self._controllers[kinds.DAEMON_SET].list())),
        )

    async def read_node(self, node: str) -> Observation:
        """Read a node and its pods from the API server itself, so that no acknowledged write is missed.

        With `--compat=fixed` the pods that are nominated to the node are read, too.
        """
        live = await get_if_exists(self._client, kinds.NODE, node)
        if live is None:
            return self._observation((), ())
        pods = (await self._client.list(kinds.POD, field_selector=f"spec.nodeName={node}")).items
        if self._options.compat is Compat.FIXED:
            selector = f"status.nominatedNodeName={node}"
            pods = [*pods, *(await self._client.list(kinds.POD, field_selector=selector)).items]
        return self._observation((live,), tuple(pods))

    async def is_on_node(self, pod: core.Pod, node: str) -> bool:
        live = await get_if_exists(self._client, kinds.POD, pod.metadata.name, pod.metadata.namespace)
        return live is not None and live.metadata.uid == pod.metadata.uid and live.spec.nodeName == node

    # Nodes and pods

    async def taint_to_be_deleted(self, node: str, now: float) -> None:
        """Add the ToBeDeleted taint to a node, and cordon it with `--cordon-node-before-terminating`."""

        def change(live: core.Node) -> bool:
            cordon = self._options.cordon_node_before_terminating and not live.spec.unschedulable
            tainted = taints.has_to_be_deleted(live)
            if not tainted:
                live.spec.taints.add(key=taints.TO_BE_DELETED, value=str(int(now)), effect="NoSchedule")
            if cordon:
                live.spec.unschedulable = True
            return cordon or not tainted

        await self._update_node(node, change)

    async def clean_to_be_deleted(self, node: str) -> None:
        """Remove the ToBeDeleted taint from a node, and uncordon it."""

        def change(live: core.Node) -> bool:
            removed = _remove_taint(live, taints.TO_BE_DELETED)
            if self._options.cordon_node_before_terminating and live.spec.unschedulable:
                live.spec.ClearField("unschedulable")
                return True
            return removed

        await self._update_node(node, change)

    async def taint_deletion_candidate(self, node: str, since: float) -> None:
        """Add the DeletionCandidate taint to a node."""

        def change(live: core.Node) -> bool:
            if taints.has_deletion_candidate(live):
                return False
            key, value = taints.DELETION_CANDIDATE, str(int(since))
            live.spec.taints.add(key=key, value=value, effect="PreferNoSchedule")
            return True

        await self._update_node(node, change)

    async def clean_deletion_candidate(self, node: str) -> None:
        await self._update_node(node, lambda live: _remove_taint(live, taints.DELETION_CANDIDATE))

    async def _update_node(self, name: str, change: Callable[[core.Node], bool]) -> None:
        """Change the live node, and retry after a conflict. A node that does not exist is not changed.

        Raises:
            StatusError: the API server has refused, or there was a conflict `CONFLICTS_MAX` times.
        """
        for attempt in range(1, CONFLICTS_MAX + 1):
            try:
                live = await self._client.get(kinds.NODE, name)
                if change(live):
                    await self._client.update(live)
                return
            except StatusError as error:
                if is_not_found(error):
                    return
                if not is_conflict(error) or attempt == CONFLICTS_MAX:
                    raise
            await self._clock.sleep(CONFLICT_RETRY_SECONDS * attempt)

    async def evict(self, pod: core.Pod, grace_seconds: int) -> None:
        """Evict a pod. One that is gone counts as evicted, also if another pod has its name by now.

        Upstream's eviction has no uid: a second one, after a lost answer, evicts the pod that a StatefulSet
        has created on another node meanwhile.
        """
        try:
            await self._client.evict(
                pod.metadata.namespace,
                pod.metadata.name,
                grace_period_seconds=grace_seconds,
                uid=pod.metadata.uid,
            )
        except StatusError as error:
            if not is_conflict(error) or await self.is_on_node(pod, pod.spec.nodeName):
                raise

    # Reports

    def record(self, events: Sequence[Event]) -> None:
        """Record events; those about the status ConfigMap only if it is written."""
        for event in events:
            if event.about is None and not self._options.write_status_configmap:
                continue
            about = event.about if event.about is not None else self._status_reference
            self._recorder.event(about, event.type, event.reason, action="", note=event.message)

    async def write_status(self, document: Mapping[str, object], now: float) -> None:
        """Write the status ConfigMap, or create it; events refer to its UID from now on."""
        annotation = {annotation_keys.LAST_UPDATED: timestamp(now)}
        text = yaml_text.render(dict(document), sort_keys=True)
        patch = {"metadata": {"annotations": annotation}, "data": {"status": text}}
        name, namespace = self._status_reference.name, self._status_reference.namespace
        try:
            written = await self._client.patch(kinds.CONFIG_MAP, name, namespace, patch)
        except StatusError as error:
            if not is_not_found(error):
                raise
            new = core.ConfigMap()
            new.metadata.name, new.metadata.namespace = name, namespace
            new.metadata.annotations.update(annotation)
            new.data["status"] = text
            written = await self._client.create(new)
        self._status_reference = reference(written)

    async def delete_status(self) -> None:
        """Delete the status ConfigMap, at a clean exit."""
        name, namespace = self._status_reference.name, self._status_reference.namespace
        with ignoring(is_not_found):
            await self._client.delete(kinds.CONFIG_MAP, name, namespace)


def _replicas(kind: Kind[Any], obj: Any) -> int | None:
    """Return the replicas of a controller; None for kinds without replicas."""
    if kind in (kinds.JOB, kinds.DAEMON_SET):
        return None
    return obj.spec.replicas if obj.spec.HasField("replicas") else 1


def _remove_taint(node: core.Node, key: str) -> bool:
    """Remove a taint; report whether the node had it."""
    kept = [taint for taint in node.spec.taints if taint.key != key]
    if len(kept) == len(node.spec.taints):
        return False
    del node.spec.taints[:]
    node.spec.taints.extend(kept)
    return True
