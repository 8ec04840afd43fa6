"""NodeMetrics and PodMetrics of metrics.k8s.io: the usage of the nodes and pods that a client may select."""

from __future__ import annotations

from typing import Any, Final

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import List, ListOptions, RegistryAPI
from nominee.apiserver.objects.usage import UsageSnapshot, UsageSource, Used
from nominee.machinery.api import kinds
from nominee.machinery.runtime.clock import to_time
from nominee.pb.k8s.io.metrics.pkg.apis.metrics.v1beta1 import generated_pb2 as metrics

_WINDOW_NANOSECONDS: Final = 10_000_000_000
"""The window of the average: a kubelet's housekeeping interval."""
_NANO: Final = 1_000_000_000


async def nodes(
    registry: RegistryAPI, source: UsageSource, options: ListOptions
) -> list[metrics.NodeMetrics]:
    """Return the usage of the selected nodes that report it."""
    snapshot = await source.usage()
    found = (await registry.perform(List(kinds.NODE, "", options))).items
    named = [(node, snapshot.nodes.get(node.message.metadata.name)) for node in found]
    return [_node(node, used, snapshot) for node, used in named if used is not None]


async def pods(
    registry: RegistryAPI, source: UsageSource, namespace: str, options: ListOptions
) -> list[metrics.PodMetrics]:
    """Return the usage of the selected pods that run."""
    snapshot = await source.usage()
    found = (await registry.perform(List(kinds.POD, namespace, options))).items
    named = [(pod, snapshot.pods.get(pod.message.metadata.uid)) for pod in found]
    return [_pod(pod, used, snapshot) for pod, used in named if used is not None]


def _node(found: CachedObject, used: Used, snapshot: UsageSnapshot) -> metrics.NodeMetrics:
    made = metrics.NodeMetrics()
    _head(made, found, snapshot, used.time)
    _fill(made.usage, used)
    return made


def _pod(found: CachedObject, used: dict[str, Used], snapshot: UsageSnapshot) -> metrics.PodMetrics:
    made = metrics.PodMetrics()
    _head(made, found, snapshot, min((each.time for each in used.values()), default=snapshot.time))
    for name, each in used.items():
        _fill(made.containers.add(name=name).usage, each)
    return made


def _head(made: Any, found: CachedObject, snapshot: UsageSnapshot, time: float) -> None:
    """Set all but the usage; the oldest measurement counts (metrics-server, storage, GetMetrics)."""
    metadata = found.message.metadata
    made.metadata.name, made.metadata.namespace = metadata.name, metadata.namespace
    made.metadata.labels.update(metadata.labels)
    made.metadata.creationTimestamp.CopyFrom(to_time(snapshot.time))
    made.timestamp.CopyFrom(to_time(time))
    made.window.duration = _WINDOW_NANOSECONDS


def _fill(usage: Any, used: Used) -> None:
    usage["cpu"].string = _cpu(used.nanocores)
    usage["memory"].string = _memory(used.memory)


def _cpu(nanocores: int) -> str:
    """Return the shortest decimal form: "2", "100m", "1500u", "1n"."""
    for suffix, unit in (("", _NANO), ("m", 1_000_000), ("u", 1_000), ("n", 1)):
        if nanocores % unit == 0:
            return f"{nanocores // unit}{suffix}"
    raise AssertionError("every number is a multiple of 1")


def _memory(size: int) -> str:
    """Return the size in the largest binary unit that divides it: "64Mi", "1Ki", "5"."""
    for suffix, unit in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if size and size % unit == 0:
            return f"{size // unit}{suffix}"
    return str(size)
