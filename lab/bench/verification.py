"""Conditions that the pods must meet when a benchmark ends. No I/O.

A result with misplaced pods is not reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from nominee.lab.bench.load.objects import NODE_CPU_MILLI, zone_of
from nominee.lab.bench.load.workloads import CHURN, INIT, MEASURED, Workload


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod by series (from its name) and node; node "" means not bound."""

    series: str
    node: str


def placed(name: str, node: str) -> Placed:
    return Placed(name.rpartition("-")[0], node)


def problems(workload: Workload, init_pods: int, pods: int, found: Iterable[Placed]) -> list[str]:
    """Return one sentence for each violated condition; none if all pods are as the workload demands."""
    found = list(found)
    bound = Counter(each.series for each in found if each.node)
    pending = Counter(each.series for each in found if not each.node)
    wrong = []
    if pending[INIT] or pending[MEASURED]:
        wrong.append(f"{pending[INIT] + pending[MEASURED]} pods have no node")
    if bound[MEASURED] != pods:
        wrong.append(f"{bound[MEASURED]} of {pods} measured pods are bound")
    if not workload.evicts and bound[INIT] != init_pods:
        wrong.append(f"{bound[INIT]} of {init_pods} initial pods are bound")
    if bound[CHURN]:
        wrong.append(f"{bound[CHURN]} pods are bound that fit on no node")
    return wrong + _overfull(workload, found) + _misplaced(workload, found)


def _overfull(workload: Workload, found: Iterable[Placed]) -> list[str]:
    cpu = {INIT: workload.init.cpu_milli, MEASURED: workload.measured.cpu_milli}
    used: Counter[str] = Counter()
    for each in found:
        if each.node:
            used[each.node] += cpu.get(each.series, 0)
    return [
        f"{node} of {NODE_CPU_MILLI}m cpu has pods of {milli}m"
        for node, milli in used.items()
        if milli > NODE_CPU_MILLI
    ]


def _misplaced(workload: Workload, found: Iterable[Placed]) -> list[str]:
    found = [each for each in found if each.node]
    wrong = []
    if workload.one_per_node:
        per_node = Counter(each.node for each in found)
        wrong += [
            f"{node} has {count} pods that must not share a node"
            for node, count in per_node.items()
            if count > 1
        ]
    if workload.skew_max is not None:
        zones = dict.fromkeys(workload.zones, 0)
        for each in found:
            if each.series == MEASURED:
                zones[zone_of(int(each.node.rpartition("-")[2]), workload.zones)] += 1
        if max(zones.values()) - min(zones.values()) > workload.skew_max:
            wrong.append(f"the zones have {zones}")
    return wrong
