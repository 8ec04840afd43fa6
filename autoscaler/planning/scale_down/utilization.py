"""Utilization of a node's cpu and memory, or of its GPUs. Pure.

Source: cluster-autoscaler 1.36, simulator/utilization.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from nominee.autoscaler.planning.objects import pods
from nominee.autoscaler.planning.objects.annotation_keys import GPU_LABEL
from nominee.scheduler.framework.resource_columns import CPU, MEMORY, column_of
from nominee.scheduler.framework.types import NodeInfo

GPU = "nvidia.com/gpu"
_GPU_COLUMN = column_of(GPU) or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """Requested shares of a node, above 1 if it is overcommitted; `share` is that of `resource`."""

    share: float
    resource: str
    """The most used resource: `cpu`, `memory`, the GPUs', or driver and pool of devices."""
    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0
    devices: float = 0.0

    def __str__(self) -> str:
        """Format as upstream's events do: cpu, memory, GPU, devices, resource, share."""
        shares = (self.cpu, self.memory, self.gpu, self.devices)
        return f"{{{' '.join(map(_go_float, shares))} {self.resource} {_go_float(self.share)}}}"


def utilization(
    node: NodeInfo, now: float, *, skip_daemons: bool = False, skip_mirrors: bool = False
) -> Utilization | None:
    """Return the larger of the shares of cpu and memory, requests over allocatable; or that of GPUs.

    Skipped pods are subtracted from requests and allocatable; long terminating pods do not count. None if
    the node has no allocatable cpu or memory.
    """
    share = partial(_share, node, now, skip_daemons=skip_daemons, skip_mirrors=skip_mirrors)
    if has_gpu(node):
        gpu = share(_GPU_COLUMN) or 0.0  # a node whose GPUs are not ready can be removed
        return Utilization(share=gpu, resource=GPU, gpu=gpu)
    cpu, memory = share(CPU), share(MEMORY)
    if cpu is None or memory is None:
        return None
    if cpu > memory:
        return Utilization(share=cpu, resource="cpu", cpu=cpu, memory=memory)
    return Utilization(share=memory, resource="memory", cpu=cpu, memory=memory)


def has_gpu(node: NodeInfo) -> bool:
    """Report whether the node has the label of nodes with GPUs, or allocatable ones."""
    return GPU_LABEL in node.labels or node.allocatable_of(_GPU_COLUMN) > 0


def _share(
    node: NodeInfo, now: float, column: int, *, skip_daemons: bool, skip_mirrors: bool
) -> float | None:
    """Return requests over allocatable of one resource; None if the node has none of it."""
    allocatable, used = node.allocatable_of(column), 0
    if allocatable == 0:
        return None
    for info in node.pods.values():
        amount = dict(info.requests).get(column, 0)
        if (skip_daemons and pods.is_daemon(info.pod)) or (skip_mirrors and pods.is_mirror(info.pod)):
            allocatable -= amount
        elif not pods.is_long_terminating(info.pod, now):
            used += amount
    return used / allocatable if allocatable > 0 else None


def _go_float(number: float) -> str:
    """Format as Go's `%v`: the shortest exact digits, without `.0`."""
    return repr(number).removesuffix(".0")
