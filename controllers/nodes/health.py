"""When a kubelet is silent: its lease and node status were not renewed for the grace period. Pure.

The controller does not compare a node's clock with its own: it records when it saw the lease change.

Source: kube-controller-manager 1.36, pkg/controller/nodelifecycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nominee.machinery.api.objects import copy_of, get_condition, set_condition
from nominee.machinery.api.pb import coordination, core, meta
from nominee.machinery.runtime.clock import Moment, from_time

_MONITORED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """A node's heartbeats, and when they last changed (monotonic seconds)."""

    status_heartbeat: int
    lease_renewed: tuple[int, int]
    changed_at: float

    def is_silent(self, grace_seconds: float, now: float) -> bool:
        """Report whether no heartbeat came within the grace period."""
        return now - self.changed_at > grace_seconds


def ready_status(node: core.Node) -> str:
    """Return the status of a node's condition Ready, "" where it has none."""
    ready = get_condition(node.status.conditions, "Ready")
    return ready.status if ready is not None else ""


def _heartbeat(node: core.Node) -> int:
    ready = get_condition(node.status.conditions, "Ready")
    return ready.lastHeartbeatTime.seconds if ready is not None else 0


def _renewed(lease: coordination.Lease | None) -> tuple[int, int]:
    if lease is None:
        return (0, 0)
    return (lease.spec.renewTime.seconds, lease.spec.renewTime.nanos)


def observe(
    health: NodeHealth | None, node: core.Node, lease: coordination.Lease | None, now: Moment
) -> NodeHealth:
    """Return the health after a look at the node and its lease.

    Where there is neither a lease nor a condition Ready, nothing was heard since the node was created
    (tryUpdateNodeHealth), however late this controller sees it first.
    """
    heartbeat, renewed = _heartbeat(node), _renewed(lease)
    if health is None:
        age = now.now - from_time(node.metadata.creationTimestamp)
        is_new = lease is None and not ready_status(node)
        return NodeHealth(heartbeat, renewed, now.monotonic - age if is_new else now.monotonic)
    if heartbeat != health.status_heartbeat or renewed > health.lease_renewed:
        return NodeHealth(heartbeat, max(renewed, health.lease_renewed), now.monotonic)
    return health


def unknown_status(node: core.Node, now: meta.Time) -> core.Node | None:
    """Return the node with its conditions Unknown since its kubelet is silent, None for no change."""
    new = copy_of(node)
    changed = False
    for name in _MONITORED:
        old = get_condition(node.status.conditions, name)
        if old is not None and old.status == "Unknown":
            continue
        if old is None:
            condition = core.NodeCondition(
                type=name,
                reason="NodeStatusNeverUpdated",
                message="Kubelet never posted node status.",
                lastHeartbeatTime=node.metadata.creationTimestamp,
            )
        else:
            condition = copy_of(old)
            condition.reason = "NodeStatusUnknown"
            condition.message = "Kubelet stopped posting node status."
        condition.status = "Unknown"
        set_condition(new.status.conditions, condition, now)
        changed = True
    return new if changed else None


def unready_pod(pod: core.Pod, now: meta.Time) -> core.Pod | None:
    """Return the pod with Ready=False since its node is not ready; None where it is not Ready."""
    ready = get_condition(pod.status.conditions, "Ready")
    if ready is None or ready.status != "True":
        return None
    new = copy_of(pod)
    row = copy_of(ready)
    row.status = "False"
    set_condition(new.status.conditions, row, now)
    return new
