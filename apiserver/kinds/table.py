"""The rules of every kind that is served: one row each.

A new kind needs its row here; without one the API server does not start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nominee.apiserver.kinds.apiextensions import custom_resource_definitions
from nominee.apiserver.kinds.apps import (
    controller_revisions,
    daemon_sets,
    deployments,
    replica_sets,
    stateful_sets,
)
from nominee.apiserver.kinds.autoscaling import horizontal_pod_autoscalers
from nominee.apiserver.kinds.batch import cron_jobs, jobs
from nominee.apiserver.kinds.certificates import certificate_signing_requests
from nominee.apiserver.kinds.coordination import leases
from nominee.apiserver.kinds.core import (
    config_maps,
    endpoints,
    events,
    limit_ranges,
    namespaces,
    nodes,
    pod_templates,
    pods,
    replication_controllers,
    resource_quotas,
    secrets,
    service_accounts,
    services,
)
from nominee.apiserver.kinds.core.volumes import persistent_volume_claims, persistent_volumes
from nominee.apiserver.kinds.discovery import endpoint_slices
from nominee.apiserver.kinds.events import events as new_events
from nominee.apiserver.kinds.flowcontrol import flow_schemas, priority_level_configurations
from nominee.apiserver.kinds.networking import (
    ingress_classes,
    ingresses,
    ip_addresses,
    network_policies,
    service_cidrs,
)
from nominee.apiserver.kinds.node import runtime_classes
from nominee.apiserver.kinds.policy import pod_disruption_budgets
from nominee.apiserver.kinds.rbac import role_bindings, roles
from nominee.apiserver.kinds.resource import (
    device_classes,
    resource_claim_templates,
    resource_claims,
    resource_slices,
)
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.scheduling import pod_groups, priority_classes, workloads
from nominee.apiserver.kinds.storage import (
    csi_drivers,
    csi_nodes,
    csi_storage_capacities,
    storage_classes,
    volume_attachments,
    volume_attributes_classes,
)
from nominee.apiserver.kinds.strategy import Strategy
from nominee.apiserver.objects.selectable_fields import SelectableFields
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind

_ROWS: tuple[KindRules[Any], ...] = (
    custom_resource_definitions.RULES,
    controller_revisions.RULES,
    daemon_sets.RULES,
    deployments.RULES,
    replica_sets.RULES,
    stateful_sets.RULES,
    horizontal_pod_autoscalers.V1,
    horizontal_pod_autoscalers.V2,
    cron_jobs.RULES,
    jobs.RULES,
    certificate_signing_requests.RULES,
    leases.RULES,
    config_maps.RULES,
    endpoints.RULES,
    events.RULES,
    limit_ranges.RULES,
    namespaces.RULES,
    nodes.RULES,
    persistent_volume_claims.RULES,
    persistent_volumes.RULES,
    pod_templates.RULES,
    pods.RULES,
    replication_controllers.RULES,
    resource_quotas.RULES,
    secrets.RULES,
    service_accounts.RULES,
    services.RULES,
    endpoint_slices.RULES,
    new_events.RULES,
    flow_schemas.RULES,
    priority_level_configurations.RULES,
    ingress_classes.RULES,
    ingresses.RULES,
    ip_addresses.RULES,
    network_policies.RULES,
    service_cidrs.RULES,
    runtime_classes.RULES,
    pod_disruption_budgets.RULES,
    role_bindings.CLUSTER_ROLE_BINDING,
    role_bindings.ROLE_BINDING,
    roles.CLUSTER_ROLE,
    roles.ROLE,
    device_classes.RULES,
    resource_claim_templates.RULES,
    resource_claims.RULES,
    resource_slices.RULES,
    pod_groups.RULES,
    priority_classes.RULES,
    workloads.RULES,
    csi_drivers.RULES,
    csi_nodes.RULES,
    csi_storage_capacities.RULES,
    storage_classes.RULES,
    volume_attachments.RULES,
    volume_attributes_classes.RULES,
)


class WrongRows(LookupError):
    """A kind has no rules, or has them twice."""


def table(rows: Iterable[KindRules[Any]], served: Iterable[AnyKind]) -> Mapping[AnyKind, KindRules[Any]]:
    """Return the rows by their kinds. Raises: WrongRows where not every served kind has exactly one."""
    made: dict[AnyKind, KindRules[Any]] = {}
    for row in rows:
        if row.kind in made:
            raise WrongRows(f"{row.kind!r} has two rows in apiserver.kinds.table")
        made[row.kind] = row
    missing = [kind for kind in served if kind not in made]
    if missing:
        raise WrongRows(f"no rules for {missing}: add a row to apiserver.kinds.table")
    return made


RULES = table(_ROWS, kinds.KINDS)


def rules_of(kind: AnyKind) -> KindRules[Any]:
    """Return the rules of a kind that is served."""
    return RULES[kind]


def strategy_of(kind: AnyKind) -> Strategy[Any]:
    """Return the strategy of a kind that is served; its own `kind` is the stored kind."""
    return RULES[kind].strategy


def fields_of(kind: AnyKind) -> SelectableFields[Any]:
    """Return the fields that selectors of a kind may ask for."""
    return RULES[kind].fields
