"""Nodes and pods of scheduler_perf's workloads (Kubernetes 1.36), made from small templates.

Nodes have 4 cpu, 32Gi and 110 pods and are ready; pods of the basic workload ask for 100m and 500Mi.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from machinery.pb import core

NAMESPACE = "default"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NODE_CPU_MILLI = 4000
_CAPACITY = {"cpu": "4", "memory": "32Gi", "pods": "110"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """What the pods of one series have in common. `also` adds affinities and the like to each."""

    cpu_milli: int = 100
    namespace: str = NAMESPACE
    priority: int | None = None
    has_limits: bool = True
    grace_seconds: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    also: Callable[[core.PodSpec], None] | None = None


def zone_of(index: int, zones: Sequence[str]) -> str:
    """The zone of the index-th node, in turn; empty without zones."""
    return zones[index % len(zones)] if zones else ""


def node(index: int, zones: Sequence[str] = ()) -> core.Node:
    """The index-th node."""
    name = f"node-{index}"
    made = core.Node()
    made.metadata.name = name
    made.metadata.labels[HOSTNAME] = name
    if zones:
        made.metadata.labels[ZONE] = zone_of(index, zones)
    for resource, amount in _CAPACITY.items():
        made.status.capacity[resource].string = amount
        made.status.allocatable[resource].string = amount
    made.status.conditions.add(type="Ready", status="True", reason="KubeletReady")
    return made


def pod(index: int, prefix: str, template: PodTemplate) -> core.Pod:
    """The index-th pod of a series."""
    made = core.Pod()
    made.metadata.name = f"{prefix}-{index}"
    made.metadata.namespace = template.namespace
    made.metadata.labels.update(template.labels)
    if template.priority is not None:
        made.spec.priority = template.priority
    if template.grace_seconds is not None:
        made.spec.terminationGracePeriodSeconds = template.grace_seconds
    container = made.spec.containers.add(name="pause", image="registry.k8s.io/pause:3.10.1")
    container.ports.add(containerPort=80)
    for resource, amount in (("cpu", f"{template.cpu_milli}m"), ("memory", "500Mi")):
        container.resources.requests[resource].string = amount
        if template.has_limits:
            container.resources.limits[resource].string = amount
    if template.also is not None:
        template.also(made.spec)
    return made


def namespace(name: str) -> core.Namespace:
    made = core.Namespace()
    made.metadata.name = name
    return made
