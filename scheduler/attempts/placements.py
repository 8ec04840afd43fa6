"""Find the sets of nodes that a pod group may be placed on: one for each domain of its topology. Pure.

Source: KEP-5732; kube-scheduler 1.36, TopologyPlacementGenerator (gate TopologyAwareWorkloadScheduling).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import workloads
from nominee.scheduler.framework.cluster.snapshot import Snapshot


class PlacementError(Exception):
    """Pods of the group are on nodes that no placement has together; worded as TopologyPlacement does."""


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


def placements(key: str, snapshot: Snapshot, scheduled: Iterable[tuple[ObjectKey, str]]) -> list[Placement]:
    """Return the sets of nodes to try; without a key there is one, which is everywhere.

    `scheduled`: pods of the group that have nodes already, which decide the domain of the others.

    Raises:
        PlacementError: they are in several domains, or one is in none.
    """
    if not key:
        return [EVERYWHERE]
    domains: dict[str, set[str]] = {}
    for info in snapshot.nodes:
        value = info.labels.get(key)
        if value is not None:
            domains.setdefault(value, set()).add(info.name)
    try:
        required = _domain_of(key, snapshot, scheduled)
    except PlacementError as error:
        raise PlacementError(f"cannot determine domain for already scheduled pods: {error}") from None
    tried = sorted(domains) if required is None else [required]
    return [Placement(domain, frozenset(domains[domain])) for domain in tried]


def _domain_of(key: str, snapshot: Snapshot, scheduled: Iterable[tuple[ObjectKey, str]]) -> str | None:
    """Return the domain that all these pods are in; None without pods."""
    found: str | None = None
    for pod, node_name in scheduled:
        node = snapshot.get(node_name)
        if node is None:
            missing = f'nodeinfo not found for node name "{node_name}"'
            raise PlacementError(f"getting node for pod {pod}: {missing}")
        domain = node.labels.get(key)
        if domain is None:
            raise PlacementError(f"no topology domain found for pod {pod}")
        if found and found != domain:
            raise PlacementError(f"more than 1 domain found for pod group: {found}, {domain}")
        found = domain
    return found
