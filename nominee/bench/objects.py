"""Nodes and pods of scheduler_perf's SchedulingBasic (Kubernetes 1.36).

Nodes have 4 cpu, 32Gi and 110 pods and are ready; pods ask for 100m and 500Mi.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from machinery.kinds import NODE, POD, Kind
from machinery.pb import core

NAMESPACE = "default"
_CAPACITY = {"cpu": "4", "memory": "32Gi", "pods": "110"}
_REQUESTS = {"cpu": "100m", "memory": "500Mi"}


def node(index: int) -> core.Node:
    """The index-th node."""
    name = f"node-{index}"
    made = core.Node()
    made.metadata.name = name
    made.metadata.labels["kubernetes.io/hostname"] = name
    for resource, amount in _CAPACITY.items():
        made.status.capacity[resource].string = amount
        made.status.allocatable[resource].string = amount
    made.status.conditions.add(type="Ready", status="True", reason="KubeletReady")
    return made


def pod(index: int, prefix: str) -> core.Pod:
    """The index-th pod of a series."""
    made = core.Pod()
    made.metadata.name = f"{prefix}-{index}"
    made.metadata.namespace = NAMESPACE
    container = made.spec.containers.add(name="pause", image="registry.k8s.io/pause:3.10.1")
    container.ports.add(containerPort=80)
    for resource, amount in _REQUESTS.items():
        container.resources.requests[resource].string = amount
        container.resources.limits[resource].string = amount
    return made


def maker(what: str) -> tuple[Kind[Any], Callable[[int], Any]]:
    """The kind and the function that makes its objects: `nodes`, or the prefix of a series of pods."""
    if what == "nodes":
        return NODE, node
    return POD, lambda index: pod(index, what)
