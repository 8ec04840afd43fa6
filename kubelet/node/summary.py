"""The usage of a node and its pods, as kubelets serve it at `/stats/summary`. Pure.

Nothing runs in an emulated container, so its usage is not measured but given: by the pod's annotations
`nominee.dev/cpu-usage` and `nominee.dev/memory-usage` (a quantity for each container), else what is requested
and in force, but never more than its limit. Source: kubelet 1.36's Summary API; field names are its.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nominee.kubelet.emulation import PREFIX
from nominee.kubelet.runtime.sandbox import Container, PodSandbox
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import CPU, MEMORY, amount
from nominee.machinery.resources.quantity import QuantityError
from nominee.machinery.runtime.clock import rfc3339

_NANOCORES = 1_000_000


def _annotated(annotations: Mapping[str, str], resource: str) -> int | None:
    text = annotations.get(f"{PREFIX}{resource}-usage")
    if text is None:
        return None
    try:
        return max(amount(resource, text), 0)
    except QuantityError:
        return None


def usage(pod: core.Pod, container: Container, resource: str) -> int:
    """Return the millicores of cpu or the bytes of memory that a running container uses."""
    annotated = _annotated(pod.metadata.annotations, resource)
    used = container.resources.requests.number(resource) if annotated is None else annotated
    limit = container.in_force.limits.number(resource)
    return min(used, limit) if limit else used


def memory_in_use(pod: core.Pod, sandbox: PodSandbox | None, container: str) -> int:
    """Return the bytes that a running container uses, "" for all of the pod, as a lower limit must leave.

    Only the annotation counts: what is merely requested refuses no limit.
    """
    annotated = _annotated(pod.metadata.annotations, MEMORY)
    if annotated is None or sandbox is None:
        return 0
    return sum(
        usage(pod, one, MEMORY)
        for one in sandbox.containers
        if one.state == "running" and container in ("", one.name)
    )


def summary(node: str, pods: Iterable[tuple[core.Pod, PodSandbox]], now: float) -> dict[str, object]:
    """Return a node's summary, with its running pods; `now` in seconds since the epoch."""
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


def _stats(used: Mapping[str, int], now: float) -> dict[str, object]:
    time = rfc3339(now)
    return {
        "cpu": {"time": time, "usageNanoCores": used[CPU] * _NANOCORES},
        "memory": {"time": time, "workingSetBytes": used[MEMORY]},
    }
