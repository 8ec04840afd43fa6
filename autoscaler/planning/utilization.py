"""How much of a node its pods request. Source: cluster-autoscaler 1.36, simulator utilization."""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.planning import pods
from scheduler.framework.resource_columns import CPU, MEMORY
from scheduler.framework.types import NodeInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """Shares of a node, above 1 where it has more than it can take; `share` is that of `resource`."""

    share: float
    resource: str
    """The resource that decides: `cpu`, `memory`, or the driver and pool of devices."""
    cpu: float = 0.0
    memory: float = 0.0
    devices: float = 0.0

    def __str__(self) -> str:
        """Print it as upstream's events do: cpu, memory, GPU, devices, resource, share."""
        shares = (self.cpu, self.memory, 0.0, self.devices)
        return f"{{{' '.join(map(_go_float, shares))} {self.resource} {_go_float(self.share)}}}"


def utilization(
    node: NodeInfo, now: float, *, skip_daemons: bool = False, skip_mirrors: bool = False
) -> Utilization | None:
    """Return the larger share of cpu and memory, requests of allocatable; None for a node that has none.

    Skipped pods count neither above nor below the line. Pods that should be gone by now do not count.
    """
    shares = []
    for column in (CPU, MEMORY):
        whole, used = node.allocatable_of(column), 0
        if whole == 0:
            return None
        for info in node.pods.values():
            amount = dict(info.requests).get(column, 0)
            if (skip_daemons and pods.is_daemon(info.pod)) or (skip_mirrors and pods.is_mirror(info.pod)):
                whole -= amount
            elif not pods.is_long_terminating(info.pod, now):
                used += amount
        if whole <= 0:
            return None
        shares.append(used / whole)
    cpu, memory = shares
    if cpu > memory:
        return Utilization(share=cpu, resource="cpu", cpu=cpu, memory=memory)
    return Utilization(share=memory, resource="memory", cpu=cpu, memory=memory)


def _go_float(number: float) -> str:
    """Format as Go's `%v`: the shortest digits that are exact, without a fraction of zero."""
    return repr(number).removesuffix(".0")
