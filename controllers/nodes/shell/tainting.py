"""The taints NoExecute of nodes, written at the rate of their zones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nominee.controllers.nodes.health import ready_status
from nominee.controllers.nodes.taints import (
    NOT_READY,
    UNREACHABLE,
    has_no_execute,
    plan_no_execute,
    taints_patch,
)
from nominee.controllers.nodes.zones import Rates, Zones
from nominee.controllers.shell.controller import Context, Worker
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import FailpointError, StatusError, is_conflict, is_not_found
from nominee.machinery.api.pb import core
from nominee.machinery.api.zones import Zone, zone_of
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import to_time

TAINT_BEFORE = failpoints.declare(
    "controllers.taint_node.before", "the taints of a node must change; they are not written"
)
_PERIOD_SECONDS: Final = 0.1
"""How often queues are looked at (NodeEvictionPeriod)."""
_WAIT_SECONDS_MAX: Final = 10.0
"""Looks at a queue that waits longer are repeated: each of them is an entry of the work queue until then."""
_TRIES: Final = 5
_OPPOSITE: Final = {"False": UNREACHABLE, "Unknown": NOT_READY}


class NoExecuteTaints(Worker[Zone]):
    """Adds the taints NoExecute of nodes that are not ready, one after the other, and removes others.

    Source: kube-controller-manager 1.36, processTaintBaseEviction, doNoExecuteTaintingPass and
    markNodeAsReachable.
    """

    name = "node-lifecycle-controller-taints"
    component = "node-controller"

    def __init__(self, context: Context, rates: Rates) -> None:
        super().__init__(context)
        self.nodes = context.informers.of(kinds.NODE)
        self.zones = Zones(rates)

    async def follow(self, node: core.Node, ready: str) -> None:
        """Let the taint of a node follow a status of its condition Ready, at once or when its turn comes."""
        if ready == "True":
            await self.release(node)
        elif ready in _OPPOSITE:
            if has_no_execute(node, _OPPOSITE[ready]):
                await self._write(node, ready)
            else:
                self._mark(node, ready)

    def _mark(self, node: core.Node, ready: str) -> None:
        queue = self.zones.queue_of(zone_of(node))
        if queue is None:
            return
        if not has_no_execute(node, UNREACHABLE if ready == "Unknown" else NOT_READY):
            queue.remove(node.metadata.name)
        queue.add(node.metadata.name)
        self.queue.add_after(zone_of(node), _PERIOD_SECONDS)

    async def release(self, node: core.Node) -> None:
        """Remove the taint of a node, which waits for none any more."""
        await self._write(node, "True")
        self.zones.forget(node.metadata.name)

    async def reconcile(self, key: Zone) -> float | None:
        queue = self.zones.queue_of(key)
        if queue is None:
            return None
        while (name := queue.take(self.clock.monotonic())) is not None:
            node = self.nodes.get(name)
            if node is None:
                continue
            ready = ready_status(node)
            try:
                if ready in _OPPOSITE:
                    await self._write(node, ready)
            except (StatusError, FailpointError) as error:
                self.log.warning("taint a node", node=name, error=str(error))
                queue.retry(name)
                break
            if not ready:
                queue.retry(name)
                break
        left = queue.seconds_left(self.clock.monotonic())
        return None if left is None else min(max(left, _PERIOD_SECONDS), _WAIT_SECONDS_MAX)

    async def _write(self, node: core.Node, ready: str) -> None:
        """Write the taint of a status of Ready; a node that another writer changes is read again."""
        for tries_left in reversed(range(_TRIES)):
            try:
                await self.write(node, plan_no_execute(node, ready, to_time(self.clock.now())))
            except StatusError as error:
                if is_not_found(error):
                    return
                if not (is_conflict(error) and tries_left):
                    raise
                node = await self.client.get(kinds.NODE, node.metadata.name)
            else:
                return

    async def write(self, node: core.Node, taints: Sequence[core.Taint] | None) -> None:
        """Write the taints of a node; None is no change."""
        if taints is None:
            return
        await TAINT_BEFORE.hit(node=node.metadata.name)
        change = taints_patch(node, taints)
        await self.client.patch(kinds.NODE, node.metadata.name, "", change, patch_type=PatchType.MERGE)
