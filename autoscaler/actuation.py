"""Nodes go: tainted, looked at once more, drained, given back; and untainted where that fails.

Source: cluster-autoscaler 1.36, actuation.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from autoscaler import points
from autoscaler.options import Compat, Options
from autoscaler.planning import annotation_keys, pods
from autoscaler.planning.budgets import RemainingBudgets
from autoscaler.planning.deletions import Deletions
from autoscaler.planning.drainability import Rules, moves
from autoscaler.planning.events import Events
from autoscaler.planning.observation import CloudView, Observation
from autoscaler.planning.scale_down import Removal
from autoscaler.ports import Cloud, CloudError, Cluster
from machinery.api.errors import StatusError, is_not_found
from machinery.api.pb import core
from machinery.runtime.clock import Clock
from machinery.runtime.failpoints import FailpointError

EVICTION_RETRY_SECONDS = 10.0
EVICTION_HEADROOM_SECONDS = 30.0
POLL_SECONDS = 5.0
REPORT_MARK = "marked the node as toBeDeleted/unschedulable"


class NotDeletedError(Exception):
    """The node stays; the text says why."""


class TaintError(Exception):
    """Nodes could not be tainted; nothing was begun."""


@dataclass(slots=True, kw_only=True)
class Actuator:
    """Deletes nodes. `spawn` runs a deletion beside the loop."""

    options: Options
    cluster: Cluster
    cloud: Cloud
    clock: Clock
    spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None]
    deleted: Callable[[core.Node, str, bool], None] = lambda node, group, drain: None
    """Called for each node that was given back: node, group, with drain."""
    refused: Callable[[str], None] = lambda group: None
    """Called when the provider refuses to take back a machine of a group."""
    evicted: Callable[[bool], None] = lambda succeeded: None
    """Called for each pod that had to go: whether it could be evicted."""
    deletions: Deletions = field(default_factory=Deletions)

    async def start(
        self, empty: Sequence[Removal], drain: Sequence[Removal], view: CloudView, events: Events
    ) -> None:
        """Taints all these nodes and begins to delete them; TaintError when one cannot be tainted."""
        for removals, drains in ((empty, False), (drain, True)):
            if not removals:
                continue
            await self._taint(removals, events)
            groups = {}
            for removal in removals:
                name = removal.node.metadata.name
                group = view.group(name)
                if group is None:
                    continue
                groups[name] = group.id
                self.deletions.start(name, group.id, drain=drains)
                if drains:
                    names = ",".join(sorted(pod.metadata.name for pod in removal.move))
                    text = (
                        f"Scale-down: removing node {name}, utilization: {removal.utilization}, "
                        f"pods to reschedule: {names}"
                    )
                    events.status("Normal", "ScaleDown", text)
                else:
                    events.status("Normal", "ScaleDownEmpty", f'Scale-down: removing empty node "{name}"')
            self._begin([removal.node for removal in removals], groups, drains)

    async def _taint(self, removals: Sequence[Removal], events: Events) -> None:
        """All or none."""
        done: list[str] = []
        for removal in removals:
            name = removal.node.metadata.name
            try:
                await points.TAINT_BEFORE.hit(node=name)
                await self.cluster.mark_to_be_deleted(name, self.clock.now())
                await points.TAINT_AFTER.hit(node=name)
            except (StatusError, FailpointError) as error:
                text = f"failed to mark the node as toBeDeleted/unschedulable: {error}"
                for _ in range(2):  # upstream reports it at two levels
                    events.about(removal.node, "Warning", "ScaleDownFailed", text)
                for tainted in done:
                    await self._untaint(tainted)
                raise TaintError(f"couldn't taint {len(done)} nodes with ToBeDeleted") from error
            events.about(removal.node, "Normal", "ScaleDown", REPORT_MARK)
            done.append(name)

    def _begin(self, nodes: Sequence[core.Node], groups: dict[str, str], drain: bool) -> None:
        async def run() -> None:
            if self.options.node_delete_delay_after_taint > 0:
                await self.clock.sleep(self.options.node_delete_delay_after_taint)
            async with anyio.create_task_group() as tasks:
                for node in nodes:
                    group = groups.get(node.metadata.name)
                    if group is not None:
                        tasks.start_soon(self._delete, node, group, drain)

        self.spawn(run)

    async def _delete(self, node: core.Node, group: str, drain: bool) -> None:
        """Delete one node, or take its taint off again; report it in events."""
        name = node.metadata.name
        events = Events()
        try:
            found = await self._recheck(name, drain)
            if drain:
                await self._drain(name, found, events)
            else:
                await self._evict_daemons(found, events)
            await self._wait_for_delay_annotations(name)
            await points.DELETE_BEFORE.hit(node=name, group=group)
            try:
                await self.cloud.delete_nodes(group, [name])
            except CloudError as error:
                self.refused(group)
                raise NotDeletedError(f"failed to delete nodes from group {group}: {error}") from error
            self.deleted(node, group, drain)
            await points.DELETE_AFTER.hit(node=name, group=group)
        except (NotDeletedError, StatusError, FailpointError) as error:
            what = "drain and delete node" if drain else "delete empty node"
            events.about(node, "Warning", "ScaleDownFailed", f"failed to {what}: {error}")
            await self._untaint(name)
        else:
            events.about(node, "Normal", "ScaleDown", "nodes removed by cluster autoscaler")
            if drain:
                events.status("Normal", "ScaleDown", f"Scale-down: node {name} removed with drain")
            else:
                events.status("Normal", "ScaleDownEmpty", f"Scale-down: empty node {name} removed")
        finally:
            self.deletions.end(name)
            self.cluster.record(events)

    async def _untaint(self, name: str) -> None:
        """As well as it can be done; what stays is cleaned up at the next start."""
        try:
            await points.UNTAINT_BEFORE.hit(node=name)
            await self.cluster.clean_to_be_deleted(name)
        except (StatusError, FailpointError):
            return

    async def _recheck(self, name: str, drain: bool) -> list[core.Pod]:
        """The pods to evict, as the node is now; NotDeletedError where it must stay."""
        await points.RECHECK_BEFORE.hit(node=name)
        fresh = await self.cluster.fresh(name)
        await points.RECHECK_AFTER.hit(node=name)
        if not any(node.metadata.name == name for node in fresh.nodes):
            raise NotDeletedError(f'nodeInfos.Get for "{name}" returned error: node not found')
        if self.options.compat is Compat.FIXED:
            self._refuse_nominated(name, fresh)
        rules = Rules(
            options=self.options,
            budgets=RemainingBudgets(fresh.budgets if drain else ()),
            controllers=fresh.controllers if drain else None,
            now=self.clock.now(),
        )
        cutoff = self.options.expendable_pods_priority_cutoff
        there = [
            pod
            for pod in fresh.pods
            if pod.spec.nodeName == name
            and pod.status.phase not in ("Succeeded", "Failed")
            and not pods.is_expendable(pod, cutoff)
        ]
        needed = moves(rules, there)
        if needed.blocking is not None:
            key = f"{needed.blocking.metadata.namespace}/{needed.blocking.metadata.name}"
            raise NotDeletedError(f'GetPodsToMove for "{name}" returned error: {key}: {needed.reason}')
        if not drain and needed.move:
            raise NotDeletedError(f'failed to delete empty node "{name}", new pods scheduled')
        return there

    def _refuse_nominated(self, name: str, fresh: Observation) -> None:
        """Hole H2: a pod that was nominated after the decision is about to be bound here."""
        cutoff = self.options.expendable_pods_priority_cutoff
        for pod in fresh.pods:
            if pod.spec.nodeName or pod.status.nominatedNodeName != name:
                continue
            if not pod.metadata.HasField("deletionTimestamp") and not pods.is_expendable(pod, cutoff):
                key = f"{pod.metadata.namespace}/{pod.metadata.name}"
                raise NotDeletedError(f'pod {key} is nominated to node "{name}"')

    # Draining

    async def _drain(self, name: str, found: Sequence[core.Pod], events: Events) -> None:
        """Evicts, and waits until all are gone; NotDeletedError where that cannot be."""
        others = [pod for pod in found if not pods.is_mirror(pod) and not pods.is_daemon(pod)]
        daemons = self._daemons_to_evict(found, self.options.daemonset_eviction_for_occupied_nodes)
        failed: list[str] = []

        async def evict(pod: core.Pod, required: bool) -> None:
            error = await self._evict(pod, events, required)
            if required:
                self.evicted(not error)
            if error and required:
                failed.append(error)

        async with anyio.create_task_group() as tasks:
            for pod in others:
                tasks.start_soon(evict, pod, True)
            for pod in daemons:
                tasks.start_soon(evict, pod, False)
        if failed:
            errors = " ".join(sorted(failed))
            raise NotDeletedError(f"Failed to drain node /{name}, due to following errors: [{errors}]")
        await self._wait_until_gone(name, others)

    def _daemons_to_evict(self, found: Sequence[core.Pod], by_default: bool) -> list[core.Pod]:
        """Pods of daemon sets, as each of them or the flag says."""
        default = "true" if by_default else "false"
        return [
            pod
            for pod in found
            if pods.is_daemon(pod)
            and not pods.is_mirror(pod)
            and pod.metadata.annotations.get(annotation_keys.ENABLE_DS_EVICTION, default) == "true"
        ]

    async def _evict_daemons(self, found: Sequence[core.Pod], events: Events) -> None:
        """Off an empty node, as well as it can be done."""
        async with anyio.create_task_group() as tasks:
            for pod in self._daemons_to_evict(found, self.options.daemonset_eviction_for_empty_nodes):
                tasks.start_soon(self._evict, pod, events, False)

    async def _evict(self, pod: core.Pod, events: Events, required: bool) -> str:
        """Tries until it is allowed, for a limited time; what went wrong, or ""."""
        events.about(pod, "Normal", "ScaleDown", "deleting pod for node scale down")
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        given_up = self.clock.now() + self.options.max_pod_eviction_time
        while True:
            try:
                await points.EVICT_BEFORE.hit(pod=key)
                await self.cluster.evict(pod, self._grace(pod))
                await points.EVICT_AFTER.hit(pod=key)
                return ""
            except (StatusError, FailpointError) as error:
                if isinstance(error, StatusError) and is_not_found(error):
                    return ""
                last = str(error)
            await self.clock.sleep(EVICTION_RETRY_SECONDS)
            if self.clock.now() >= given_up:
                break
        if required:
            events.about(pod, "Warning", "ScaleDownFailed", "failed to delete pod for ScaleDown")
        return f"failed to evict pod {key} within allowed timeout (last error: {last})"

    def _grace(self, pod: core.Pod) -> int:
        spec = pod.spec
        own = spec.terminationGracePeriodSeconds if spec.HasField("terminationGracePeriodSeconds") else 30
        return min(own, self.options.max_graceful_termination_sec)

    async def _wait_until_gone(self, name: str, evicted: Sequence[core.Pod]) -> None:
        grace = self.options.max_graceful_termination_sec
        deadline = self.clock.now() + grace + EVICTION_HEADROOM_SECONDS
        poll = min(POLL_SECONDS, max(self.options.scan_interval / 2, 0.05))
        left = list(evicted)
        while True:
            left = [pod for pod in left if await self.cluster.is_on_node(pod, name)]
            if not left:
                return
            if self.clock.now() >= deadline:
                raise NotDeletedError(f"Failed to drain node /{name}: pods remaining after timeout")
            await self.clock.sleep(poll)

    async def _wait_for_delay_annotations(self, name: str) -> None:
        """Somebody may hold the deletion up by an annotation, for a while."""
        deadline = self.clock.now() + self.options.node_deletion_delay_timeout
        while self.clock.now() < deadline:
            nodes = [n for n in self.cluster.observe().nodes if n.metadata.name == name]
            held = any(
                key.startswith(annotation_keys.DELAY_DELETION_PREFIX)
                for n in nodes
                for key in n.metadata.annotations
            )
            if not held:
                return
            await self.clock.sleep(POLL_SECONDS)
