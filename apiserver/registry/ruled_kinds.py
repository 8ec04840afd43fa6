"""The kinds whose rules are functions: a row a kind."""

from __future__ import annotations

from typing import Any

from apiserver.registry import resource_claims, workloads
from apiserver.registry.ruled import Ruled, TemplateRuled
from apiserver.registry.strategy import Strategy
from apiserver.validation import (
    autoscalers,
    csi,
    device_claims,
    device_slices,
    endpoint_slices,
    limit_ranges,
    replication_controllers,
    resource_quotas,
    runtime_classes,
    secrets,
    stateful_sets,
)
from machinery.api import kinds
from machinery.api.kinds import Kind

_ROWS: tuple[Ruled, ...] = (
    workloads.DAEMON_SET,
    Ruled(
        kinds.STATEFUL_SET,
        stateful_sets.stateful_set,
        stateful_sets.change,
        status=stateful_sets.status,
        counts_generation=True,
    ),
    TemplateRuled(
        kinds.REPLICATION_CONTROLLER,
        replication_controllers.replication_controller,
        status=replication_controllers.status,
        orphans_dependents=True,
    ),
    Ruled(kinds.RUNTIME_CLASS, runtime_classes.runtime_class, runtime_classes.change, checks_updates=False),
    Ruled(kinds.SECRET, secrets.secret, secrets.change),
    Ruled(kinds.LIMIT_RANGE, limit_ranges.limit_range),
    Ruled(kinds.RESOURCE_QUOTA, resource_quotas.quota, resource_quotas.change, status=resource_quotas.status),
    workloads.EndpointSliceStrategy(
        kinds.ENDPOINT_SLICE, endpoint_slices.endpoint_slice, endpoint_slices.change
    ),
    Ruled(kinds.CSI_NODE, csi.node, csi.node_change),
    Ruled(kinds.CSI_DRIVER, csi.driver, csi.driver_change, counts_generation=True),
    Ruled(kinds.CSI_STORAGE_CAPACITY, csi.capacity, csi.capacity_change),
    Ruled(kinds.VOLUME_ATTACHMENT, csi.attachment, csi.attachment_change, status=csi.attachment_status),
    resource_claims.STRATEGY,
    Ruled(
        kinds.RESOURCE_CLAIM_TEMPLATE,
        device_claims.template,
        device_claims.template_change,
        checks_updates=False,
    ),
    Ruled(kinds.DEVICE_CLASS, device_claims.device_class, counts_generation=True),
    Ruled(kinds.HORIZONTAL_POD_AUTOSCALER, autoscalers.autoscaler, status=autoscalers.status),
    Ruled(kinds.RESOURCE_SLICE, device_slices.resource_slice, device_slices.change, counts_generation=True),
)
STRATEGIES: dict[Kind[Any], Strategy] = {row.kind: row for row in _ROWS}
STRATEGIES[kinds.HORIZONTAL_POD_AUTOSCALER_V1] = STRATEGIES[kinds.HORIZONTAL_POD_AUTOSCALER]
