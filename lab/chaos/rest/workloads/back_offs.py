"""Owners whose pods are refused or fail: their controllers wait until a back-off is over. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.lab.chaos.rest.state import State
from nominee.lab.chaos.rest.workloads.daemon_sets import has_bare_nodes
from nominee.lab.chaos.rest.workloads.jobs import lacks_pods
from nominee.lab.chaos.rest.workloads.ordinals import missing_names
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS, live_pods
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Object
from nominee.machinery.api.objects import condition_is
from nominee.machinery.api.pb import apps, core


def has_refused_pods(state: State) -> bool:
    """Return whether pods of an owner are refused, or may be by a quota.

    No event says that a quota has room again: the controller asks when its back-off is over, and one that
    starts asks at once. The other rules find an owner that lacks pods which are not refused.
    """
    if CONTROLLERS not in state.running:
        return False
    if any(_failing(state)):
        return True
    quotas = state.namespaces_with_quotas
    return bool(quotas) and any(owner.metadata.namespace in quotas for owner in lacking(state))


def has_refused_jobs(state: State) -> bool:
    """Return whether pods of a Job may be refused by a quota: its controller waits for longer than others."""
    quotas = state.namespaces_with_quotas if CONTROLLERS in state.running else ()
    return any(job.metadata.namespace in quotas and lacks_pods(state, job) for job in state.of(kinds.JOB))


def has_failing_jobs(state: State) -> bool:
    """Return whether a Job waits before it replaces pods that failed.

    The controller remembers the failures that it has counted, and one that starts creates a pod at once
    (kube-controller-manager 1.36, job/backoff_utils.go). The other rules wait for this where no quota may
    refuse the pods, and not for a failure while something else is waited for.
    """
    return CONTROLLERS in state.running and any(
        job.status.failed and lacks_pods(state, job) for job in state.of(kinds.JOB)
    )


def lacking(state: State) -> Iterator[Object]:
    """Yield the owners that lack a pod; replica sets, and replication controllers, if they show a failure.

    Others may have as many live pods as they should, one of them in a place that is not to have one any more.
    """
    if CONTROLLERS not in state.running:
        return
    for replicated in _failing(state):
        if len(live_pods(state, replicated)) < replicated.spec.replicas:
            yield replicated
    for stateful_set in state.of(kinds.STATEFUL_SET):
        few = len(live_pods(state, stateful_set)) < stateful_set.spec.replicas
        if few or missing_names(state, stateful_set):
            yield stateful_set
    for daemon_set in state.of(kinds.DAEMON_SET):
        few = len(live_pods(state, daemon_set)) < daemon_set.status.desiredNumberScheduled
        if few or has_bare_nodes(state, daemon_set):
            yield daemon_set
    yield from (job for job in state.of(kinds.JOB) if lacks_pods(state, job))


def _failing(state: State) -> Iterator[apps.ReplicaSet | core.ReplicationController]:
    """Yield the replica sets, and replication controllers, that show that a pod was refused."""
    replicated: list[apps.ReplicaSet | core.ReplicationController] = [*state.of(kinds.REPLICA_SET)]
    replicated += state.of(kinds.REPLICATION_CONTROLLER)
    yield from (each for each in replicated if condition_is(each.status.conditions, "ReplicaFailure"))
