"""A node's own object: creation, status and lease.

All nodes of the process share one clockwork that spreads their beats over the slots of the interval: the
renewals of a slot go to the API server in one message. Source: kubelet 1.36, nodestatus and nodelease.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from nominee.kubelet.node import adopted_node
from nominee.kubelet.node.node_object import (
    NodeFacts,
    labels,
    new_node,
    same_but_heartbeat,
    write_status,
    write_version,
)
from nominee.kubelet.options import Heartbeats
from nominee.kubelet.shell.agent import Agent
from nominee.kubelet.shell.failpoints import LEASE_BEFORE, NODE_STATUS_BEFORE, REGISTER_AFTER, REGISTER_BEFORE
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.objects import ADOPTED, copy_of
from nominee.machinery.api.pb import coordination, core
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.patch.strategic_diff import diff_strategic
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock, to_micro_time
from nominee.machinery.wire.codec import to_json

LEASE_NAMESPACE = "kube-node-lease"
REGISTER_ATTEMPTS_MAX = 60


@dataclass(slots=True)
class Registrar:
    """Writes node objects and leases; `node_of` gives a node as the watch shows it."""

    client: Client
    clock: Clock
    facts: NodeFacts
    beats: Heartbeats
    node_of: Callable[[str], core.Node | None]
    _leases: dict[str, coordination.Lease] = field(default_factory=dict)
    _reported: dict[str, float] = field(default_factory=dict)
    _settled: dict[str, core.Node] = field(default_factory=dict)
    """Nodes as the watch showed them when their status was compared and needed no change."""
    _unschedulable: set[str] = field(default_factory=set)
    """The nodes of which an event said so last."""

    async def register(self, agent: Agent) -> core.Node:
        """Create the node, or update an existing one."""
        await REGISTER_BEFORE.hit(node=agent.name)
        register = self._take_over if agent.identity.adopted else self._create_or_adopt
        node = await retry_unavailable(
            lambda: register(agent), clock=self.clock, attempts_max=REGISTER_ATTEMPTS_MAX
        )
        self._reported[agent.name] = self.clock.monotonic()
        await REGISTER_AFTER.hit(node=agent.name)
        return node

    async def _create_or_adopt(self, agent: Agent) -> core.Node:
        """Create the node, or update the one that exists; if that is deleted meanwhile, create it again.

        Source: kubelet 1.36, registerWithAPIServer, which tries again whatever the error was.
        """
        desired = new_node(agent.identity, self.facts, self.clock.now())
        with errors.ignoring(errors.is_already_exists):
            return await self.client.create(desired)
        try:
            return await self._update_existing(agent)
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise
            raise errors.service_unavailable(f"node {agent.name} was deleted meanwhile") from error

    async def _update_existing(self, agent: Agent) -> core.Node:
        node = await self.client.get(kinds.NODE, agent.name)
        own = labels(agent.identity, self.facts.shape)
        if any(node.metadata.labels.get(key) != value for key, value in own.items()):
            await self.client.patch(kinds.NODE, agent.name, "", {"metadata": {"labels": own}})
        return await self._write_status(agent, node)

    def needs_report(self, agent: Agent) -> bool:
        """Return whether the node's status is to be compared again: the object changed, or it is time."""
        # The same object again is the same outcome: only heartbeats depend on the time.
        return self._settled.get(agent.name) is not self.node_of(agent.name) or self._is_due(agent)

    async def _take_over(self, agent: Agent) -> core.Node:
        """Write the status of a node of another cluster, with the version if the kubelet was upgraded."""
        node = await self.client.get(kinds.NODE, agent.name)
        agent.adopting = adopted_node.is_new(node)
        if agent.adopting or node.metadata.annotations[ADOPTED] == str(self.facts.version):
            return await self._write_status(agent, node)
        status = self._desired_status(agent, node)
        write_version(status, self.facts)
        await self._patch_status(agent, node, status)
        return await self.mark_adopted(agent)

    async def mark_adopted(self, agent: Agent) -> core.Node:
        """Record the emulated version of the kubelet that runs a node of another cluster."""
        change = {"metadata": {"annotations": {ADOPTED: str(self.facts.version)}}}
        return await self.client.patch(kinds.NODE, agent.name, "", change)

    async def report(self, agent: Agent) -> None:
        """Write the node's status when it differs from the desired one, and every few minutes anyway."""
        node = self.node_of(agent.name)
        if node is None:
            return
        self._record_schedulable(agent, node)
        if not self._is_due(agent) and same_but_heartbeat(self._desired_status(agent, node), node.status):
            self._settled[agent.name] = node
            return
        now = self.clock.monotonic()
        await NODE_STATUS_BEFORE.hit(node=agent.name)
        await self._write_status(agent, node)
        self._reported[agent.name] = now

    def _record_schedulable(self, agent: Agent, node: core.Node) -> None:
        """Record an event if the node was cordoned or uncordoned; a new process takes it for schedulable.

        Source: kubelet 1.36, recordNodeSchedulableEvent; the reference has the node's name as the uid.
        """
        if node.spec.unschedulable == (agent.name in self._unschedulable):
            return
        self._unschedulable ^= {agent.name}
        reason = "NodeNotSchedulable" if node.spec.unschedulable else "NodeSchedulable"
        reference = core.ObjectReference(kind="Node", name=agent.name, uid=agent.name)
        note = f"Node {agent.name} status is now: {reason}"
        agent.env.recorder.event(reference, "Normal", reason, action=reason, note=note, instance=agent.name)

    def _is_due(self, agent: Agent) -> bool:
        since = self.clock.monotonic() - self._reported.get(agent.name, 0.0)
        return since >= self.beats.status_report_frequency

    def _desired_status(self, agent: Agent, node: core.Node) -> core.NodeStatus:
        status = copy_of(node.status)
        write_status(status, agent.identity, self.facts, self.clock.now())
        return status

    async def _write_status(self, agent: Agent, node: core.Node) -> core.Node:
        return await self._patch_status(agent, node, self._desired_status(agent, node))

    async def _patch_status(self, agent: Agent, node: core.Node, status: core.NodeStatus) -> core.Node:
        change = diff_strategic("k8s.io.api.core.v1.NodeStatus", to_json(node.status), to_json(status))
        if not change:
            return node
        return await self.client.patch(kinds.NODE, agent.name, "", {"status": change}, subresource="status")

    async def renew(self, agent: Agent) -> None:
        """Renew the node's lease, or create it."""
        await LEASE_BEFORE.hit(node=agent.name)
        lease = self._leases.get(agent.name)
        try:
            if lease is None:
                lease = await self._get_or_create(agent)
            renewed = copy_of(lease)
            self._fill(renewed, agent, self.node_of(agent.name))
            self._leases[agent.name] = await self.client.update(renewed)
        except errors.StatusError:
            self._leases.pop(agent.name, None)  # it is read again at the next renewal
            raise

    async def _get_or_create(self, agent: Agent) -> coordination.Lease:
        """Return the node's lease; only a node that exists gets a new one, which is removed with it.

        Source: kubelet 1.36, ensureLease of the lease controller, SetNodeOwnerFunc.
        """
        with errors.ignoring(errors.is_not_found):
            return await self.client.get(kinds.LEASE, agent.name, LEASE_NAMESPACE)
        node = self.node_of(agent.name)
        if node is None:
            node = await self.client.get(kinds.NODE, agent.name)
        lease = coordination.Lease()
        lease.metadata.name, lease.metadata.namespace = agent.name, LEASE_NAMESPACE
        self._fill(lease, agent, node)
        return await self.client.create(lease)

    def _fill(self, lease: coordination.Lease, agent: Agent, node: core.Node | None) -> None:
        lease.spec.holderIdentity = agent.name
        lease.spec.leaseDurationSeconds = round(self.beats.lease_duration)
        lease.spec.renewTime.CopyFrom(to_micro_time(self.clock.now()))
        if node is not None and not lease.metadata.ownerReferences:
            lease.metadata.ownerReferences.add(
                apiVersion="v1", kind="Node", name=agent.name, uid=node.metadata.uid
            )

    def forget(self, agent: Agent) -> None:
        self._leases.pop(agent.name, None)
        self._reported.pop(agent.name, None)
        self._settled.pop(agent.name, None)
        self._unschedulable.discard(agent.name)


async def attempt(what: str, agent: Agent, call: Callable[[Agent], Awaitable[object]]) -> None:
    """Do a beat; one that fails is logged and not repeated before the next."""
    try:
        await call(agent)
    except Exception as error:  # noqa: BLE001  # the next beat tries again, whatever it was
        logs.get().warning(f"{what} failed", node=agent.name, error=str(error))
