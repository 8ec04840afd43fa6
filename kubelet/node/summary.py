"""What a node and its pods use, as kubelets tell it (`/stats/summary`). Pure.

Nothing runs in an emulated container, so what it uses is told, not measured: the pod's annotations
`nominee.dev/cpu-usage` and `nominee.dev/memory-usage` (a quantity for each container), else what is requested
and in force, but never more than its limit. Source: kubelet 1.36's Summary API; field names are its.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubelet.options import ANNOTATION
from kubelet.runtime.sandbox import Container, PodSandbox
from machinery.api.pb import core
from machinery.resources.pod_resources import CPU, MEMORY, amount
from machinery.resources.quantity import QuantityError
from machinery.runtime.clock import rfc3339

_NANOCORES = 1_000_000


def _annotated(annotations: Mapping[str, str], resource: str) -> int | None:
    text = annotations.get(f"{ANNOTATION}{resource}-usage")
    if text is None:
        return None
    try:
        return max(amount(resource, text), 0)
    except QuantityError:
        return None


def usage(pod: core.Pod, container: Container, resource: str) -> int:
    """Millicores of cpu or bytes of memory that a running container uses."""
    wanted = _annotated(pod.metadata.annotations, resource)
    found = container.resources.requests.number(resource) if wanted is None else wanted
    limit = container.resources.limits.number(resource)
    return min(found, limit) if limit else found


def summary(node: str, pods: Iterable[tuple[core.Pod, PodSandbox]], now: float) -> dict[str, Any]:
    """One node's summary, its running pods among it; `now` in epoch seconds."""
    rows, total = [], {CPU: 0, MEMORY: 0}
    for pod, sandbox in pods:
        containers = []
        for container in sandbox.containers:
            if container.state != "running":
                continue
            used = {resource: usage(pod, container, resource) for resource in total}
            for resource, value in used.items():
                total[resource] += value
            containers.append({"name": container.name, **_stats(used, now)})
        if containers:
            meta = pod.metadata
            reference = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
            rows.append({"podRef": reference, "containers": containers})
    return {"node": {"nodeName": node, **_stats(total, now)}, "pods": rows}


def _stats(used: Mapping[str, int], now: float) -> dict[str, Any]:
    time = rfc3339(now)
    return {
        "cpu": {"time": time, "usageNanoCores": used[CPU] * _NANOCORES},
        "memory": {"time": time, "workingSetBytes": used[MEMORY]},
    }
