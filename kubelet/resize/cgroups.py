"""The values of a pod's cgroup: cpu weight, cpu quota and memory limit, from requests and limits. Pure.

Source: kubelet 1.36, ResourceConfigForPod.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import CPU, MEMORY, amount, pod_limits, pod_requests

CPU_PERIOD_MICROSECONDS: Final = 100_000
CPU_QUOTA_MIN: Final = 1_000
CPU_SHARES_MIN: Final = 2
CPU_SHARES_MAX: Final = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCgroup:
    """The values of a pod's cgroup; None for no limit."""

    cpu_shares: int = CPU_SHARES_MIN
    cpu_quota: int | None = None
    """Microseconds in 100 ms."""
    memory_limit: int | None = None
    """Bytes."""


def cpu_shares(millicores: int) -> int:
    """Return the cgroup's weight for a cpu request in millicores."""
    if millicores == 0:
        return CPU_SHARES_MIN
    return min(max(millicores * 1024 // 1000, CPU_SHARES_MIN), CPU_SHARES_MAX)


def cpu_quota(millicores: int) -> int:
    """Return the microseconds per 100 ms for a cpu limit in millicores; 0 for no limit."""
    if millicores == 0:
        return 0
    return max(millicores * CPU_PERIOD_MICROSECONDS // 1000, CPU_QUOTA_MIN)


def pod_cgroup(pod: core.Pod, *, pod_level: bool = True) -> PodCgroup:
    """Return the cgroup of a pod whose spec asks for this.

    A pod has a limit where each of its containers has one, or the pod as a whole (`pod_level`).
    """
    limits = pod_limits(pod, pod_level=pod_level)
    limited = {name: _is_limited(pod, name, pod_level=pod_level) for name in (CPU, MEMORY)}
    return PodCgroup(
        cpu_shares=cpu_shares(pod_requests(pod, pod_level=pod_level).get(CPU, 0)),
        cpu_quota=cpu_quota(limits.get(CPU, 0)) if limited[CPU] else None,
        memory_limit=limits.get(MEMORY, 0) if limited[MEMORY] else None,
    )


def _is_limited(pod: core.Pod, name: str, *, pod_level: bool) -> bool:
    if pod_level and _limit(pod.spec.resources, name):
        return True
    containers = (*pod.spec.initContainers, *pod.spec.containers)
    return all(_limit(container.resources, name) for container in containers)


def _limit(resources: core.ResourceRequirements, name: str) -> int:
    return amount(name, resources.limits[name]) if name in resources.limits else 0
