"""Find the sets of nodes that a pod group may be placed on: one for each domain of its topology. Pure.

Source: KEP-5732; kube-scheduler 1.36, TopologyPlacementGenerator (gate TopologyAwareWorkloadScheduling).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from nominee.machinery.api.pb import workloads
from nominee.scheduler.framework.cluster.snapshot import Snapshot


class PlacementError(Exception):
    """Pods of the group are on nodes that no placement has together."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Names of nodes, all of one `domain`; None: all nodes."""

    domain: str = ""
    nodes: frozenset[str] | None = None


EVERYWHERE: Final = Placement()


def topology_key(group: workloads.PodGroup | None) -> str:
    """Return the node label whose value all pods of the group must share; "" without a constraint."""
    topology = () if group is None else group.spec.schedulingConstraints.topology
    return topology[0].key if topology else ""


def placements(key: str, snapshot: Snapshot, taken: Collection[str]) -> list[Placement]:
    """Return the sets of nodes to try; without a key there is one, which is everywhere.

    `taken`: nodes that pods of the group have already, which decide the domain of the others.

    Raises:
        PlacementError: they are in several domains, or in none.
    """
    if not key:
        return [EVERYWHERE]
    domains: dict[str, set[str]] = {}
    for info in snapshot.nodes:
        value = info.labels.get(key)
        if value is not None:
            domains.setdefault(value, set()).add(info.name)
    if not taken:
        return [Placement(domain, frozenset(domains[domain])) for domain in sorted(domains)]
    present = {domain for domain, nodes in domains.items() if not nodes.isdisjoint(taken)}
    if len(present) > 1:
        raise PlacementError(f"more than 1 domain found for pod group: {sorted(present)}")
    if not present or not frozenset(taken) <= domains[min(present)]:
        raise PlacementError("no topology domain found for a pod of the pod group")
    domain = present.pop()
    return [Placement(domain, frozenset(domains[domain]))]
