"""Which strategy each kind has."""

from __future__ import annotations

from typing import Any

from apiserver.registry import certificate_requests, flow_control, namespaces, roles, ruled_kinds
from apiserver.registry import kinds as kind_files
from apiserver.registry.events import EventStrategy, NewEventStrategy
from apiserver.registry.other_kinds import (
    BudgetStatusStrategy,
    BudgetStrategy,
    ClaimStatusStrategy,
    ClaimStrategy,
    ConfigMapStrategy,
    DeploymentStatusStrategy,
    DeploymentStrategy,
    LeaseStrategy,
    NodeStatusStrategy,
    NodeStrategy,
    PriorityClassStrategy,
    ReplicaSetStatusStrategy,
    ReplicaSetStrategy,
    StorageClassStrategy,
    VolumeStatusStrategy,
    VolumeStrategy,
)
from apiserver.registry.pods.ephemeral_containers import POD_EPHEMERAL_CONTAINERS
from apiserver.registry.pods.resize import POD_RESIZE
from apiserver.registry.pods.strategy import POD_STATUS, PodStrategy
from apiserver.registry.services.strategy import STRATEGY as SERVICES
from apiserver.registry.strategy import ReadOnlyStrategy, StatusStrategy, Strategy
from machinery.api import kinds
from machinery.api.kinds import Kind

STRATEGIES: dict[Kind[Any], Strategy] = {
    kinds.NAMESPACE: namespaces.strategy(),
    kinds.NODE: NodeStrategy(kinds.NODE, {"status": NodeStatusStrategy(kinds.NODE)}),
    kinds.POD: PodStrategy(
        kinds.POD,
        {"status": POD_STATUS, "resize": POD_RESIZE, "ephemeralcontainers": POD_EPHEMERAL_CONTAINERS},
    ),
    kinds.CONFIG_MAP: ConfigMapStrategy(kinds.CONFIG_MAP),
    kinds.PERSISTENT_VOLUME_CLAIM: ClaimStrategy(
        kinds.PERSISTENT_VOLUME_CLAIM, {"status": ClaimStatusStrategy(kinds.PERSISTENT_VOLUME_CLAIM)}
    ),
    kinds.PERSISTENT_VOLUME: VolumeStrategy(
        kinds.PERSISTENT_VOLUME, {"status": VolumeStatusStrategy(kinds.PERSISTENT_VOLUME)}
    ),
    kinds.EVENT: EventStrategy(),
    kinds.EVENTS_EVENT: NewEventStrategy(),
    kinds.PRIORITY_CLASS: PriorityClassStrategy(kinds.PRIORITY_CLASS),
    kinds.POD_DISRUPTION_BUDGET: BudgetStrategy(
        kinds.POD_DISRUPTION_BUDGET, {"status": BudgetStatusStrategy(kinds.POD_DISRUPTION_BUDGET)}
    ),
    kinds.STORAGE_CLASS: StorageClassStrategy(kinds.STORAGE_CLASS),
    kinds.REPLICA_SET: ReplicaSetStrategy(
        kinds.REPLICA_SET, {"status": ReplicaSetStatusStrategy(kinds.REPLICA_SET)}
    ),
    kinds.DEPLOYMENT: DeploymentStrategy(
        kinds.DEPLOYMENT, {"status": DeploymentStatusStrategy(kinds.DEPLOYMENT)}
    ),
    kinds.SERVICE: SERVICES,
    **ruled_kinds.STRATEGIES,
    kinds.LEASE: LeaseStrategy(kinds.LEASE),
    **roles.STRATEGIES,
    **kind_files.STRATEGIES,
    **flow_control.STRATEGIES,
    kinds.CERTIFICATE_SIGNING_REQUEST: certificate_requests.STRATEGY,
}


def strategy_of(kind: Kind[Any]) -> Strategy:
    """The kind's strategy; for one that has no rules of its own, what holds for all."""
    found = STRATEGIES.get(kind)
    if found is None:
        status = {"status": StatusStrategy(kind)} if "status" in kind.subresources else {}
        found = ReadOnlyStrategy(kind) if kind.read_only else Strategy(kind, status)
        STRATEGIES[kind] = found
    return found
