"""Kinds whose rules are in one file each: strategy, validation and warnings (kube-apiserver 1.36).

`STRATEGIES` is what the registry takes. A file names the upstream functions that it follows; what kinds share
(names, addresses, pod templates) is in `apiserver.validation`, their defaults are in `machinery.defaults`.
"""

from __future__ import annotations

from typing import Any

from apiserver.registry.kinds import (
    controller_revisions,
    cron_jobs,
    endpoints,
    ingress_classes,
    ingresses,
    ip_addresses,
    jobs,
    network_policies,
    pod_groups,
    pod_templates,
    service_accounts,
    service_cidrs,
    volume_attributes_classes,
    workloads,
)
from apiserver.registry.strategy import Strategy
from machinery.api.kinds import Kind

STRATEGIES: dict[Kind[Any], Strategy] = {
    strategy.kind: strategy
    for strategy in (
        controller_revisions.STRATEGY,
        cron_jobs.STRATEGY,
        endpoints.STRATEGY,
        ingress_classes.STRATEGY,
        ingresses.STRATEGY,
        ip_addresses.STRATEGY,
        jobs.STRATEGY,
        network_policies.STRATEGY,
        pod_groups.STRATEGY,
        pod_templates.STRATEGY,
        service_accounts.STRATEGY,
        service_cidrs.STRATEGY,
        volume_attributes_classes.STRATEGY,
        workloads.STRATEGY,
    )
}
