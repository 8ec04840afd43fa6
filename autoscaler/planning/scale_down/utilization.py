"""Utilization of a node's cpu and memory. Pure. Source: cluster-autoscaler 1.36, simulator/utilization."""

from __future__ import annotations

from dataclasses import dataclass

from nominee.autoscaler.planning.objects import pods
from nominee.scheduler.framework.resource_columns import CPU, MEMORY
from nominee.scheduler.framework.types import NodeInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """Requested shares of a node, above 1 if it is overcommitted; `share` is that of `resource`."""

    share: float
    resource: str
    """The most used resource: `cpu`, `memory`, or driver and pool of devices."""
    cpu: float = 0.0
    memory: float = 0.0
    devices: float = 0.0

    def __str__(self) -> str:
        """Format as upstream's events do: cpu, memory, GPU, devices, resource, share."""
        shares = (self.cpu, self.memory, 0.0, self.devices)
        return f"{{{' '.join(map(_go_float, shares))} {self.resource} {_go_float(self.share)}}}"


def utilization(
    node: NodeInfo, now: float, *, skip_daemons: bool = False, skip_mirrors: bool = False
) -> Utilization | None:
    """Return the larger of the shares of cpu and memory, requests over allocatable.

    Skipped pods are subtracted from requests and allocatable; long terminating pods do not count. None if
    the node has no allocatable cpu or memory.
    """
    shares = []
    for column in (CPU, MEMORY):
        allocatable, used = node.allocatable_of(column), 0
        if allocatable == 0:
            return None
        for info in node.pods.values():
            amount = dict(info.requests).get(column, 0)
            if (skip_daemons and pods.is_daemon(info.pod)) or (skip_mirrors and pods.is_mirror(info.pod)):
                allocatable -= amount
            elif not pods.is_long_terminating(info.pod, now):
                used += amount
        if allocatable <= 0:
            return None
        shares.append(used / allocatable)
    cpu, memory = shares
    if cpu > memory:
        return Utilization(share=cpu, resource="cpu", cpu=cpu, memory=memory)
    return Utilization(share=memory, resource="memory", cpu=cpu, memory=memory)


def _go_float(number: float) -> str:
    """Format as Go's `%v`: the shortest exact digits, without `.0`."""
    return repr(number).removesuffix(".0")
