"""A plain model of PodTopologySpread that counts pods domain by domain, and builders for its tests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import LabelSelector
from nominee.machinery.scheduling.node_affinity import RequiredNodeAffinity
from nominee.machinery.scheduling.taints import find_untolerated
from nominee.machinery.wire import codec
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.pod_topology_spread.constraints import HOSTNAME

MISMATCH = "node(s) didn't match pod topology spread constraints"
UNLABELLED = f"{MISMATCH} (missing required label)"
LABELS: list[dict[str, str]] = [
    {},
    {"app": "a"},
    {"app": "b"},
    {"app": "a", "rev": "1"},
    {"app": "a", "rev": "2"},
]
TAINT = {"key": "gpu", "value": "x", "effect": "NoSchedule"}


def node_of(name: str, labels: Mapping[str, str], *, tainted: bool = False) -> core.Node:
    document = {
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"taints": [TAINT] if tainted else []},
        "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
    }
    return codec.from_json(core.Node, document)


def pod_of(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    namespace: str = "default",
    terminating: bool = False,
    owner: Mapping[str, Any] | None = None,
    on: str = "",
    **spec: Any,
) -> PodInfo:
    metadata: dict[str, Any] = {
        "name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": dict(labels or {}),
    }  # fmt: skip
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if owner is not None:
        metadata["ownerReferences"] = [{"controller": True, "uid": "u", **owner}]
    if on:
        spec["nodeName"] = on
    return PodInfo(codec.from_json(core.Pod, {"metadata": metadata, "spec": {"containers": [], **spec}}))


def constraint(
    key: str = "zone", *, skew: int = 1, hard: bool = True, select: Any = None, **more: Any
) -> dict[str, Any]:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "a"}} if select is None else select,
        **more,
    }


# The model


class Model:
    """The documented behaviour, over lists."""

    def __init__(self, pod: PodInfo, nodes: list[NodeInfo]) -> None:
        self.pod = pod
        self.nodes = nodes

    def constraints(self, action: str) -> list[Any]:
        all_of = self.pod.pod.spec.topologySpreadConstraints
        return [each for each in all_of if each.whenUnsatisfiable == action]

    def selector(self, one: Any) -> LabelSelector:
        selector = LabelSelector.from_message(one.labelSelector if one.HasField("labelSelector") else None)
        labels = {k: self.pod.labels[k] for k in one.matchLabelKeys if k in self.pod.labels}
        return selector.adding(*LabelSelector.from_map(labels).requirements)

    def counts(self, one: Any, node: NodeInfo) -> bool:
        if one.nodeAffinityPolicy != "Ignore":
            required = RequiredNodeAffinity.of(self.pod.pod)
            if not required.matches(node.labels, node.name):
                return False
        taints = [core.Taint(key=k, value=v, effect=e) for k, v, e in node.taints]
        return one.nodeTaintsPolicy != "Honor" or not find_untolerated(taints, self.pod.pod.spec.tolerations)

    def pods_on(self, one: Any, node: NodeInfo) -> int:
        selector = self.selector(one)
        if selector.empty:
            return 0
        mine = [p for p in node.pods.values() if p.namespace == self.pod.namespace and not p.is_terminating]
        return sum(selector.matches(p.labels) for p in mine)

    def domains(self, one: Any, everywhere: list[Any]) -> dict[str, int]:
        found: dict[str, int] = {}
        for node in self.nodes:
            if all(each.topologyKey in node.labels for each in everywhere) and self.counts(one, node):
                value = node.labels[one.topologyKey]
                found[value] = found.get(value, 0) + self.pods_on(one, node)
        return found

    def rejection(self, node: NodeInfo) -> str | None:
        hard = self.constraints("DoNotSchedule")
        for one in hard:
            if one.topologyKey not in node.labels:
                return UNLABELLED
            domains = self.domains(one, hard)
            enough = len(domains) >= (one.minDomains if one.HasField("minDomains") else 1)
            lowest = min(domains.values()) if enough else 0
            own = int(self.selector(one).matches(self.pod.labels))
            if domains.get(node.labels[one.topologyKey], 0) + own - lowest > one.maxSkew:
                return MISMATCH
        return None

    def scores(self, feasible: list[NodeInfo]) -> list[int]:
        soft = self.constraints("ScheduleAnyway")
        labelled = [n for n in feasible if all(each.topologyKey in n.labels for each in soft)]
        costs: dict[str, int] = {}
        for node in labelled:
            cost = 0.0
            for one in soft:
                if one.topologyKey == HOSTNAME:
                    size, count = len(labelled), self.pods_on(one, node)
                else:
                    size = len({n.labels[one.topologyKey] for n in labelled})
                    count = self.domains(one, soft).get(node.labels[one.topologyKey], 0)
                cost += count * math.log(size + 2) + (one.maxSkew - 1)
            costs[node.name] = math.floor(cost + 0.5)
        highest, lowest = max(costs.values(), default=0), min(costs.values(), default=0)
        return [
            0 if n.name not in costs
            else 100 * (highest + lowest - costs[n.name]) // highest if highest else 100
            for n in feasible
        ]  # fmt: skip
