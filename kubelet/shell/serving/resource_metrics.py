"""`/metrics/resource` of a node: CPU time, memory and start times of its pods, from the emulated usage.

Swap is never used here, and has no limit. Upstream hides `scrape_error` since 1.29.

Source: kubelet 1.36, pkg/kubelet/metrics/collectors/resource_metrics.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from nominee.kubelet.node.cpu_time import CpuTime, Use
from nominee.kubelet.node.summary import usage
from nominee.kubelet.runtime.sandbox import Container, PodSandbox
from nominee.machinery.api.pb import core
from nominee.machinery.process.serving_port.health import prometheus_text
from nominee.machinery.resources.pod_resources import CPU, MEMORY

_OF_POD: Final = ["pod", "namespace"]
_OF_CONTAINER: Final = ["container", *_OF_POD]
_MILLICORES: Final = 1000.0
_SWAP: Final = "Reported only on non-windows systems"


class ResourceMetrics:
    """Reads the metrics of one node."""

    def __init__(self) -> None:
        self._time = CpuTime()

    def read(self, pods: Iterable[tuple[core.Pod, PodSandbox]], now: float) -> bytes:
        """Return the metrics in Prometheus' text format; `now` in seconds since the epoch."""
        running = {
            pod.metadata.uid: (pod, [one for one in sandbox.containers if one.state == "running"])
            for pod, sandbox in pods
        }
        self._time.read(
            (
                Use(pod=uid, container=one.id, started=one.started, cores=usage(pod, one, CPU) / _MILLICORES)
                for uid, (pod, containers) in running.items()
                for one in containers
            ),
            now,
        )
        rows = [(pod, containers) for pod, containers in running.values() if containers]
        return prometheus_text(sorted(_metrics(self._time, rows, now), key=lambda metric: metric.name))


def _metrics(time: CpuTime, pods: list[tuple[core.Pod, list[Container]]], now: float) -> Iterator[Metric]:
    node_cpu, pod_cpu, container_cpu = (
        CounterMetricFamily(
            f"{of}_cpu_usage_seconds",
            f"[STABLE] Cumulative cpu time consumed by the {of} in core-seconds",
            labels=labels,
        )
        for of, labels in (("node", []), ("pod", _OF_POD), ("container", _OF_CONTAINER))
    )
    node_memory, pod_memory, container_memory = (
        GaugeMetricFamily(
            f"{of}_memory_working_set_bytes",
            f"[STABLE] Current working set of the {of} in bytes",
            labels=labels,
        )
        for of, labels in (("node", []), ("pod", _OF_POD), ("container", _OF_CONTAINER))
    )
    node_swap, pod_swap, container_swap = (
        GaugeMetricFamily(f"{of}_swap_usage_bytes", f"[ALPHA] Current {text}. {_SWAP}", labels=labels)
        for of, text, labels in (
            ("node", "swap usage of the node in bytes", []),
            ("pod", "amount of the pod swap usage in bytes", _OF_POD),
            ("container", "amount of the container swap usage in bytes", _OF_CONTAINER),
        )
    )
    started = GaugeMetricFamily(
        "container_start_time_seconds",
        "[STABLE] Start time of the container since unix epoch in seconds",
        labels=_OF_CONTAINER,
    )
    errors = "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise"
    yield GaugeMetricFamily("resource_scrape_error", errors, value=0)
    total = 0
    for pod, containers in pods:
        name, used = [pod.metadata.name, pod.metadata.namespace], 0
        for one in containers:
            memory = usage(pod, one, MEMORY)
            used += memory
            container_cpu.add_metric([one.name, *name], time.containers[one.id], timestamp=now)
            container_memory.add_metric([one.name, *name], memory, timestamp=now)
            container_swap.add_metric([one.name, *name], 0, timestamp=now)
            started.add_metric([one.name, *name], one.started)
        total += used
        pod_cpu.add_metric(name, time.pods[pod.metadata.uid], timestamp=now)
        pod_memory.add_metric(name, used, timestamp=now)
        pod_swap.add_metric(name, 0, timestamp=now)
    node_cpu.add_metric([], time.node, timestamp=now)
    node_memory.add_metric([], total, timestamp=now)
    node_swap.add_metric([], 0, timestamp=now)
    yield from (node_cpu, pod_cpu, container_cpu, node_memory, pod_memory, container_memory)
    yield from (node_swap, pod_swap, container_swap, started)
