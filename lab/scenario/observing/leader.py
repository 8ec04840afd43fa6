"""The process that a condition asks where a component has several: the one that leads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from nominee.localcluster.cluster import ClusterError
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError

if TYPE_CHECKING:
    from nominee.lab.scenario.cluster import ScenarioCluster

_NAMESPACE: Final = "kube-system"
_LEASES: Final[Mapping[str, str]] = {"scheduler": "kube-scheduler", "autoscaler": "cluster-autoscaler"}
"""By component: the lease of its leader election."""


async def leading(cluster: ScenarioCluster, component: str) -> str:
    """Return the name of the process of a component that holds its lease; of a single process, its own.

    A name of one process, or of a component without leader election, is returned as it is.

    Raises:
        ClusterError: there are several processes, and none of them holds the lease.
    """
    lease_name = _LEASES.get(component)
    if lease_name is None:
        return component
    names = [process.name for process in await cluster.processes() if process.component == component]
    if component in names or len(names) <= 1:
        return next(iter(names), component)
    try:
        lease = await cluster.client.get(kinds.LEASE, lease_name, _NAMESPACE)
    except StatusError as error:
        raise ClusterError(f"none of {', '.join(names)} leads: {error.message}") from None
    for name in names:
        if f"_{name}_" in lease.spec.holderIdentity:  # HOST_NAME_PID
            return name
    raise ClusterError(f"none of {', '.join(names)} holds the lease {lease_name}")
