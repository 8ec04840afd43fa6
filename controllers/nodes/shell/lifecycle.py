"""The node life cycle controller's shell."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TypeVar

import anyio

from nominee.controllers.nodes import metadata
from nominee.controllers.nodes.health import NodeHealth, observe, ready_status, unknown_status
from nominee.controllers.nodes.registration import registrations
from nominee.controllers.nodes.shell.tainting import NoExecuteTaints
from nominee.controllers.nodes.shell.unready_pods import UnreadyPods
from nominee.controllers.nodes.taints import plan_no_schedule
from nominee.controllers.nodes.zones import Change, Rates
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import Context, Controller
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import FailpointError, StatusError, is_conflict, is_not_found
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import Moment, to_time

T = TypeVar("T")
LEASE_NAMESPACE = "kube-node-lease"
UNKNOWN_BEFORE = failpoints.declare(
    "controllers.node_unknown.before",
    "a kubelet is silent; the conditions of its node are not set to Unknown",
)


class NodeLifecycle(Controller):
    """Taints nodes for their conditions, and sets conditions to Unknown when a kubelet is silent."""

    name = "node-lifecycle-controller"
    component = "node-controller"

    def __init__(
        self,
        context: Context,
        pods_by_node: Informer[core.Pod],
        *,
        monitor_seconds: float,
        grace_seconds: float,
        startup_grace_seconds: float,
        rates: Rates | None = None,
    ) -> None:
        super().__init__(context)
        self.nodes = self.watch(kinds.NODE)
        self.leases = context.informers.of(kinds.LEASE)
        self._pods = UnreadyPods(context, pods_by_node)
        self._taints = NoExecuteTaints(context, rates or Rates())
        self._monitor_seconds = monitor_seconds
        self._grace_seconds = grace_seconds
        self._startup_grace_seconds = startup_grace_seconds
        self._health: dict[str, NodeHealth] = {}  # by node uid, as are the next two
        self._names: dict[str, str] = {}  # node names
        self._to_unready: set[str] = set()  # nodes whose pods must still be set to Ready=False

    def _record_node(self, uid: str, name: str, event: PlannedEvent) -> None:
        # Upstream's reference to a node has no resourceVersion.
        self.record(core.ObjectReference(kind="Node", apiVersion="v1", name=name, uid=uid), event)

    def _update_nodes(self) -> None:
        """Record events for new and deleted nodes, and drop the state of deleted ones."""
        present = {node.metadata.uid: node.metadata.name for node in self.nodes.list()}
        for uid, name, event in registrations(self._names, present):
            self._record_node(uid, name, event)
        for uid in self._names.keys() - present.keys():
            self._health.pop(uid, None)
            self._to_unready.discard(uid)
            self._pods.ready.pop(self._names[uid], None)
            self._taints.zones.forget(self._names[uid])
        self._names = present

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(super().run)
            tasks.start_soon(self._pods.run)
            tasks.start_soon(self._taints.run)
            tasks.start_soon(self._monitor)

    async def _monitor(self) -> None:
        while True:
            await self._look(self.nodes.list())
            await self.clock.sleep(self._monitor_seconds)

    async def _look(self, nodes: Sequence[core.Node]) -> None:
        """Look at all nodes once (monitorNodeHealth)."""
        new = [node for node in nodes if node.metadata.uid not in self._names]
        self._update_nodes()
        self._taints.zones.begin(nodes, self.clock.monotonic())
        for node in new:
            await self._try(node, self._taints.release(node))
        checked = [await self._try(node, self._check(node)) for node in nodes]
        present = [node for node in checked if node is not None]
        now = self.clock.monotonic()
        change = self._taints.zones.judge(now)
        if change is Change.STOPPED:
            self.log.info("All nodes are not ready: entering master disruption mode")
            for node in nodes:
                await self._try(node, self._taints.release(self.nodes.get(node.metadata.name) or node))
        else:
            # At the rates of this look: upstream begins before it ends, and may taint a node too many.
            for node in present:
                await self._try(node, self._taints.follow(node, ready_status(node)))
        if change is Change.RESUMED:
            self.log.info("Some nodes are ready: exiting master disruption mode")
            self._health = {uid: replace(each, changed_at=now) for uid, each in self._health.items()}
        for node in present:
            await self._try(node, self._mark_pods(node))

    async def _try(self, node: core.Node, step: Awaitable[T]) -> T | None:
        try:
            return await step
        except (StatusError, FailpointError) as error:
            if not (is_conflict(error) or is_not_found(error)):
                self.log.warning("node health", node=node.metadata.name, error=str(error))
            return None

    async def _check(self, node: core.Node) -> core.Node:
        """Look at a node once, and return it as it is then. One that cannot be written counts as it was."""
        try:
            node = await self._update(node)
        except (StatusError, FailpointError) as error:
            if not is_not_found(error):
                self._taints.zones.count(node, ready_status(node) == "True")
            raise
        self._taints.zones.count(node, ready_status(node) == "True")
        return node

    async def _update(self, node: core.Node) -> core.Node:
        """Set the conditions of a node that is silent to Unknown (tryUpdateNodeHealth)."""
        name, uid, now = node.metadata.name, node.metadata.uid, Moment.of(self.clock)
        before = ready_status(node)
        grace = self._grace_seconds if before else self._startup_grace_seconds
        health = observe(self._health.get(uid), node, self.leases.get(name, LEASE_NAMESPACE), now)
        self._health[uid] = health
        if health.is_silent(grace, now.monotonic) and await self._is_silent(node, health, grace):
            silent = unknown_status(node, to_time(self.clock.now()))
            if silent is not None:
                await UNKNOWN_BEFORE.hit(node=name)
                node = await self.client.update(silent, subresource="status")
                if before == "True":
                    note = f"Node {name} status is now: NodeNotReady"
                    self._record_node(uid, name, PlannedEvent("NodeNotReady", note))
        after = self._pods.ready[name] = ready_status(node)
        if before == "True" != after:
            self._to_unready.add(uid)
        elif after == "True":
            self._to_unready.discard(uid)
        return node

    async def _mark_pods(self, node: core.Node) -> None:
        """Set the pods of a node that became Unknown to not ready; a kubelet that says so itself does it."""
        uid = node.metadata.uid
        if uid in self._to_unready:
            # Once: a kubelet that runs again reports its pods itself.
            await self._pods.mark_all(node.metadata.name)
            self._to_unready.discard(uid)

    async def _is_silent(self, node: core.Node, health: NodeHealth, grace: float) -> bool:
        """Report whether the lease is old in the API server too: the informer may be behind.

        While the API server cannot be reached no kubelet can renew its lease, so the grace period starts
        again. (Upstream's controllers lose their own lease in such a case, and restart.)
        """
        name, now = node.metadata.name, Moment.of(self.clock)
        try:
            lease = await self.client.get(kinds.LEASE, name, LEASE_NAMESPACE)
        except StatusError as error:
            if not is_not_found(error):
                self._health[node.metadata.uid] = replace(health, changed_at=now.monotonic)
                raise
            return True
        seen = observe(health, node, lease, now)
        self._health[node.metadata.uid] = seen
        return seen.is_silent(grace, now.monotonic)

    async def reconcile(self, key: ObjectKey) -> float | None:
        node = self.nodes.get(key.name)
        if node is None:
            return None
        await self._taints.write(node, plan_no_schedule(node, to_time(self.clock.now())))
        change = metadata.patch(node, len(self.nodes.list()))
        if change:
            await self.client.patch(kinds.NODE, key.name, "", change, patch_type=PatchType.MERGE)
        return None
