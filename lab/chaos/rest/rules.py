"""The table of rules, and their findings on one state. No I/O."""

from __future__ import annotations

from typing import Final

from nominee.lab.chaos.rest import (
    copies,
    kubelets,
    nodes,
    pods,
    scheduling,
    shapes,
)
from nominee.lab.chaos.rest.state import Finding, Rule, State
from nominee.lab.chaos.rest.workloads import (
    daemon_sets,
    jobs,
    owners,
    pod_autoscalers,
    reservations,
    revisions,
    stateful_sets,
    statuses,
)

RULES: Final[tuple[Rule, ...]] = (
    pods.failures,
    pods.orphans,
    pods.addresses,
    owners.replica_sets,
    owners.deployments,
    stateful_sets.stateful_sets,
    daemon_sets.daemon_sets,
    revisions.latest_revisions,
    jobs.jobs,
    jobs.cron_jobs,
    pod_autoscalers.pod_autoscalers,
    owners.garbage,
    owners.namespaces,
    statuses.budgets,
    statuses.quotas,
    statuses.endpoints,
    nodes.condition_taints,
    reservations.resource_claims,
    reservations.devices_of_claims,
    reservations.volume_claims,
    reservations.foreground_deletions,
    reservations.empty_namespaces,
    reservations.leader_leases,
    scheduling.lost_wakeups,
    scheduling.queues,
    copies.stale_copies,
    copies.scheduler_caches,
    copies.kubelet_pods,
    copies.expected_writes,
    kubelets.heartbeats,
    kubelets.reports,
    kubelets.resizes,
    kubelets.removals,
    nodes.autoscaler_loops,
    nodes.group_sizes,
    shapes.other_shapes,
)


def findings(state: State) -> list[Finding]:
    """Return the findings of all rules on a state, each once."""
    return list(dict.fromkeys(finding for rule in RULES for finding in rule(state)))
