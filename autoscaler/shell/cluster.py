"""The API server as the loop sees it: informers to look at, a client to act with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autoscaler.options import Compat, Options
from autoscaler.planning import taints
from autoscaler.planning.events import Events
from autoscaler.planning.observation import ControllerKey, DaemonSet, Observation
from autoscaler.planning.pods import is_unschedulable
from machinery.api import kinds
from machinery.api.errors import StatusError, is_conflict, is_not_found
from machinery.api.kinds import Kind
from machinery.api.pb import core
from machinery.client.api_client import Client
from machinery.client.informer import Informer
from machinery.events.recorder import EventRecorder
from machinery.events.reference import reference
from machinery.runtime.clock import Clock

NOT_FINISHED = "status.phase!=Succeeded,status.phase!=Failed"
CONFLICTS_MAX = 8
_CONTROLLERS: tuple[Kind[Any], ...] = (
    kinds.REPLICATION_CONTROLLER,
    kinds.REPLICA_SET,
    kinds.STATEFUL_SET,
    kinds.JOB,
    kinds.DAEMON_SET,
)
_SIMULATED = (
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.PERSISTENT_VOLUME,
    kinds.STORAGE_CLASS,
    kinds.NAMESPACE,
    kinds.RESOURCE_CLAIM,
    kinds.RESOURCE_SLICE,
    kinds.DEVICE_CLASS,
)


class ApiCluster:
    """`listers` is what the simulation's plugins see; `run` each of `informers` beside it."""

    def __init__(self, client: Client, options: Options, clock: Clock, recorder: EventRecorder) -> None:
        self._client, self._options, self._clock, self._recorder = client, options, clock, recorder
        self.pods: Informer[core.Pod] = Informer(client, kinds.POD, field_selector=NOT_FINISHED, clock=clock)
        self.nodes: Informer[core.Node] = Informer(client, kinds.NODE, clock=clock)
        self._budgets = Informer(client, kinds.POD_DISRUPTION_BUDGET, clock=clock)
        self._controllers: dict[Kind[Any], Informer[Any]] = {
            kind: Informer(client, kind, clock=clock) for kind in _CONTROLLERS
        }
        self.listers: dict[Kind[Any], Informer[Any]] = {
            kinds.POD: self.pods,
            kinds.NODE: self.nodes,
            kinds.REPLICA_SET: self._controllers[kinds.REPLICA_SET],
            **{kind: Informer(client, kind, clock=clock) for kind in _SIMULATED},
        }
        self.informers = [*{**self._controllers, **self.listers}.values(), self._budgets]
        self._about = core.ObjectReference(
            apiVersion="v1",
            kind="ConfigMap",
            namespace=options.namespace,
            name=options.status_config_map_name,
        )

    def on_pending(self, wake: Callable[[], None]) -> None:
        """Calls `wake` when a pod turns out to be unschedulable."""

        def changed(old: core.Pod | None, new: core.Pod) -> None:
            if is_unschedulable(new) and (old is None or not is_unschedulable(old)):
                wake()

        self.pods.add_handler(on_add=lambda pod: changed(None, pod), on_update=changed)

    # Looking

    def observe(self) -> Observation:
        return self._observation(tuple(self.nodes.list()), tuple(self.pods.list()))

    def _observation(self, nodes: tuple[core.Node, ...], pods: tuple[core.Pod, ...]) -> Observation:
        return Observation(
            nodes=nodes,
            pods=pods,
            budgets=tuple(self._budgets.list()),
            controllers={
                ControllerKey(kind.kind, found.metadata.namespace, found.metadata.name): _replicas(
                    kind, found
                )
                for kind, informer in self._controllers.items()
                for found in informer.list()
            },
            daemon_sets=tuple(map(DaemonSet.of, self._controllers[kinds.DAEMON_SET].list())),
        )

    async def fresh(self, node: str) -> Observation:
        """Asks the API server itself, so that nothing that was acknowledged before is missed."""
        try:
            found = await self._client.get(kinds.NODE, node)
        except StatusError as error:
            if not is_not_found(error):
                raise
            return self._observation((), ())
        pods = (await self._client.list(kinds.POD, field_selector=f"spec.nodeName={node}")).items
        if self._options.compat is Compat.FIXED:
            selector = f"status.nominatedNodeName={node}"
            pods = [*pods, *(await self._client.list(kinds.POD, field_selector=selector)).items]
        return self._observation((found,), tuple(pods))

    async def is_on_node(self, pod: core.Pod, node: str) -> bool:
        try:
            found = await self._client.get(kinds.POD, pod.metadata.name, pod.metadata.namespace)
        except StatusError as error:
            if is_not_found(error):
                return False
            raise
        return found.metadata.uid == pod.metadata.uid and found.spec.nodeName == node

    # Acting

    async def mark_to_be_deleted(self, node: str, now: float) -> None:
        def change(found: core.Node) -> bool:
            cordon = self._options.cordon_node_before_terminating and not found.spec.unschedulable
            tainted = taints.taint_time(found, taints.TO_BE_DELETED) is not None
            if not tainted:
                found.spec.taints.add(key=taints.TO_BE_DELETED, value=str(int(now)), effect="NoSchedule")
            if cordon:
                found.spec.unschedulable = True
            return cordon or not tainted

        await self._update_node(node, change)

    async def clean_to_be_deleted(self, node: str) -> None:
        def change(found: core.Node) -> bool:
            dropped = _drop(found, taints.TO_BE_DELETED)
            if self._options.cordon_node_before_terminating and found.spec.unschedulable:
                found.spec.ClearField("unschedulable")
                return True
            return dropped

        await self._update_node(node, change)

    async def set_deletion_candidate(self, node: str, since: float | None) -> None:
        def change(found: core.Node) -> bool:
            if since is None:
                return _drop(found, taints.DELETION_CANDIDATE)
            if taints.taint_time(found, taints.DELETION_CANDIDATE) is not None:
                return False
            found.spec.taints.add(
                key=taints.DELETION_CANDIDATE, value=str(int(since)), effect="PreferNoSchedule"
            )
            return True

        await self._update_node(node, change)

    async def _update_node(self, name: str, change: Callable[[core.Node], bool]) -> None:
        """Change the newest node; try again after a conflict. A node that is gone needs no change."""
        for attempt in range(1, CONFLICTS_MAX + 1):
            try:
                found = await self._client.get(kinds.NODE, name)
                if change(found):
                    await self._client.update(found)
                return
            except StatusError as error:
                if is_not_found(error):
                    return
                if not is_conflict(error) or attempt == CONFLICTS_MAX:
                    raise
            await self._clock.sleep(0.02 * attempt)

    async def evict(self, pod: core.Pod, grace_seconds: int) -> None:
        await self._client.evict(
            pod.metadata.namespace,
            pod.metadata.name,
            grace_period_seconds=grace_seconds,
            uid=pod.metadata.uid,
        )

    # Reporting

    def record(self, events: Events) -> None:
        for event in events:
            about = event.about if event.about is not None else self._about
            if event.about is None and not self._options.write_status_configmap:
                continue
            self._recorder.event(about, event.type, event.reason, action="", note=event.message)

    async def write_status(self, text: str, stamp: str) -> None:
        """Write the status ConfigMap, and create it where there is none; events are about it from now on."""
        annotation = {"cluster-autoscaler.kubernetes.io/last-updated": stamp}
        patch = {"metadata": {"annotations": annotation}, "data": {"status": text}}
        name, namespace = self._about.name, self._about.namespace
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
        self._about = reference(written)

    async def delete_status(self) -> None:
        """At a clean end."""
        try:
            await self._client.delete(kinds.CONFIG_MAP, self._about.name, self._about.namespace)
        except StatusError as error:
            if not is_not_found(error):
                raise


def _replicas(kind: Kind[Any], found: Any) -> int | None:
    """Return how many pods a controller keeps, None for a kind without that number."""
    if kind in (kinds.JOB, kinds.DAEMON_SET):
        return None
    return found.spec.replicas if found.spec.HasField("replicas") else 1


def _drop(node: core.Node, key: str) -> bool:
    kept = [taint for taint in node.spec.taints if taint.key != key]
    if len(kept) == len(node.spec.taints):
        return False
    del node.spec.taints[:]
    node.spec.taints.extend(kept)
    return True
