"""Find small changes that would give a pod a node, each checked with the scheduler's plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.explain.cluster import Cluster
from nominee.scheduler.explanation.format import PodExplanation
from nominee.scheduler.explanation.verdict import INSUFFICIENT
from nominee.scheduler.framework import resource_columns
from nominee.scheduler.framework.types import NodeInfo, PodInfo

_LIKE_MAX: Final = 2
"""Nodes of which a copy is tried."""


def suggestions(cluster: Cluster, explanation: PodExplanation) -> list[str]:
    """Return changes for `--what-if`, the smallest of each sort, that may help a pod that fits on no node."""
    pod = cluster.pods[explanation["pod"]]
    nodes = [(cluster.snapshot.get(each["node"]), each) for each in explanation["rejectedNodes"]]
    short = [
        (node, _missing(pod, node))
        for node, each in nodes
        if node is not None and all(reason.startswith(INSUFFICIENT) for reason in each["reasons"])
    ]
    found: list[str] = []
    if short:
        node, missing = min(short, key=lambda pair: sum(pair[1].values()) / len(pair[1]))
        found += _about_room(pod, node, missing)
    tainted = [node for node, each in nodes if node is not None and each["plugin"] == "TaintToleration"]
    if tainted:
        node = min(tainted, key=lambda node: len(node.taints))
        found.append("; ".join(f"taint node {node.name} {key}:{effect}-" for key, _, effect in node.taints))
    found += _about_priority(cluster, pod)
    largest = sorted(
        (node for node in cluster.snapshot.nodes if not node.unschedulable),
        key=lambda node: (len(node.taints), [-amount for amount in node.allocatable]),
    )
    return [*found, *(f"add 1 node like {node.name}" for node in largest[:_LIKE_MAX])]


def _missing(pod: PodInfo, node: NodeInfo) -> dict[int, int]:
    """Return by how much each resource of a node is too small, by column."""
    lacks = {
        column: amount - node.allocatable_of(column) + node.requested_of(column)
        for column, amount in pod.fit_requests
    }
    return {column: amount for column, amount in lacks.items() if amount > 0} or {resource_columns.CPU: 1}


def _about_room(pod: PodInfo, node: NodeInfo, missing: dict[int, int]) -> Iterator[str]:
    """Yield a larger node, and smaller requests of a pod with one container."""
    grown = " ".join(f"+{_text(column, amount)} {_name(column)}" for column, amount in missing.items())
    yield f"node {node.name} {grown}"
    requests = dict(pod.fit_requests)
    left = {column: requests.get(column, 0) - amount for column, amount in missing.items()}
    if len(pod.pod.spec.containers) == 1 and all(amount > 0 for amount in left.values()):
        lowered = " ".join(f"{_name(column)}={_text(column, amount)}" for column, amount in left.items())
        yield f"pod {pod.key} {lowered}"


def _about_priority(cluster: Cluster, pod: PodInfo) -> Iterator[str]:
    """Yield the lowest priority at which there are pods that preemption may evict."""
    others = [each.priority for each in cluster.pods.values() if each.pod.spec.nodeName]
    higher = [priority for priority in others if priority >= pod.priority]
    if higher:
        yield f"pod {pod.key} priority={min(higher) + 1}"


def _name(column: int) -> str:
    return resource_columns.name_of(column)


def _text(column: int, amount: int) -> str:
    return f"{amount}m" if column == resource_columns.CPU else str(amount)
