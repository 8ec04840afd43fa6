"""Objects whose status counts others: budgets, quotas, endpoints of services. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nominee.lab.chaos.rest.state import Finding, State, in_order, name_of
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS, STRING, amount
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import (
    condition_is,
    controller_of,
    get_condition,
    has_ended,
    is_terminating,
    metadata_of,
)
from nominee.machinery.api.pb import core, policy
from nominee.machinery.api.selectors import LabelSelector
from nominee.machinery.resources import quota
from nominee.machinery.resources import resource_lists as amounts
from nominee.machinery.resources.quantity import Quantity

_SERVICE: Final = "kubernetes.io/service-name"
_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_MEASURED: Final = (kinds.POD, kinds.SERVICE, kinds.PERSISTENT_VOLUME_CLAIM)
"""Kinds that a quota may count, of those that are listed."""

QUOTA_SECONDS_MAX = 330.0
"""Of the status of a quota: the controller counts again every 300 s (kube-controller-manager)."""


def budgets(state: State) -> Iterator[Finding]:
    """Find disruption budgets whose status does not agree with the pods that they select."""
    if CONTROLLERS not in state.running:
        return
    for each in state.of(kinds.POD_DISRUPTION_BUDGET):
        if not is_terminating(each):
            yield from (Finding(name_of(each), sentence) for sentence in _budget(state, each))


def _budget(state: State, budget: policy.PodDisruptionBudget) -> Iterator[str]:
    status, spec = budget.status, budget.spec
    pods = pods_of(state, budget)
    expected = _expected(state, budget, pods)
    if expected is None and _is_uncountable(budget):
        # The rest of the status stays as it was (kube-controller-manager 1.36, disruption.go, failSafe).
        if status.disruptionsAllowed:
            yield f"allows {status.disruptionsAllowed} disruptions, and its pods cannot be counted"
        return
    if status.observedGeneration < budget.metadata.generation:
        yield f"has a status of generation {status.observedGeneration} only"
        return
    names = {pod.metadata.name for pod in pods if not is_terminating(pod)}
    gone = [name for name in status.disruptedPods if name not in names]
    if gone:
        yield f"still counts as disrupted: {in_order(gone)}"
    healthy = sum(
        condition_is(pod.status.conditions, "Ready")
        and not is_terminating(pod)
        and pod.metadata.name not in status.disruptedPods
        for pod in pods
    )
    if status.currentHealthy != healthy:
        yield f"shows {status.currentHealthy} currentHealthy, and its pods are {healthy}"
    if expected is None:
        return
    if status.expectedPods != expected:
        yield f"shows {status.expectedPods} expectedPods, and its pods are {expected}"
    if spec.HasField("maxUnavailable"):
        desired = max(expected - amount(spec.maxUnavailable, expected, is_rounded_up=True), 0)
    else:
        desired = amount(spec.minAvailable, expected, is_rounded_up=True)
    if status.desiredHealthy != desired:
        yield f"shows {status.desiredHealthy} desiredHealthy, and it demands {desired}"
    allowed = max(healthy - desired, 0) if expected else 0
    if status.disruptionsAllowed != allowed:
        yield f"allows {status.disruptionsAllowed} disruptions, and its pods allow {allowed}"
    is_allowed = condition_is(status.conditions, "DisruptionAllowed")
    if is_allowed is not (status.disruptionsAllowed > 0):
        yield f"allows {status.disruptionsAllowed} disruptions, and shows DisruptionAllowed={is_allowed}"


def _is_uncountable(budget: policy.PodDisruptionBudget) -> bool:
    """Return whether the controller reports that a pod's controller is unknown, or has no scale."""
    allowed = get_condition(budget.status.conditions, "DisruptionAllowed")
    return allowed is not None and allowed.reason == "SyncFailed"


def pods_of(state: State, budget: policy.PodDisruptionBudget) -> list[core.Pod]:
    """Return the pods of a budget."""
    if not budget.spec.HasField("selector"):
        return []
    selector = LabelSelector.from_message(budget.spec.selector)
    pods = state.pods_by_namespace.get(budget.metadata.namespace, ())
    return [pod for pod in pods if selector.matches(pod.metadata.labels)]


def _expected(state: State, budget: policy.PodDisruptionBudget, pods: Sequence[core.Pod]) -> int | None:
    """Return the number of pods that a budget is about; None where only other kinds would tell."""
    spec = budget.spec
    if spec.HasField("minAvailable") and spec.minAvailable.type != STRING:
        return len(pods)
    if not spec.HasField("minAvailable") and not spec.HasField("maxUnavailable"):
        return None
    replicas = {each.metadata.uid: each.spec.replicas for each in state.of(kinds.DEPLOYMENT)}
    replicas |= {each.metadata.uid: each.spec.replicas for each in state.of(kinds.REPLICA_SET)}
    replicas |= {each.metadata.uid: each.spec.replicas for each in state.of(kinds.STATEFUL_SET)}
    replicas |= {each.metadata.uid: each.spec.replicas for each in state.of(kinds.REPLICATION_CONTROLLER)}
    above = {each.metadata.uid: controller_of(each) for each in state.of(kinds.REPLICA_SET)}
    owners = [controller_of(pod) for pod in pods]
    owners = [above.get(owner.uid) or owner for owner in owners if owner is not None]
    uids = {owner.uid for owner in owners if owner is not None}
    return sum(replicas[uid] for uid in uids) if uids <= replicas.keys() else None


def quotas(state: State) -> Iterator[Finding]:
    """Find quotas whose status does not count the objects of their namespace."""
    if CONTROLLERS not in state.running:
        return
    for each in state.of(kinds.RESOURCE_QUOTA):
        if is_terminating(each):
            continue
        if amounts.read(each.spec.hard) != amounts.read(each.status.hard):
            yield Finding(name_of(each), "has other limits in its status than in its spec")
        shown = amounts.read(each.status.used)
        for name, used in sorted(_used(state, each).items()):
            if shown.get(name) != used:
                text = f"shows {shown.get(name, 'no')} {name} as used, and its objects use {used}"
                # A pod that came and went between two lists is noticed by the next resync only.
                yield Finding(name_of(each), text, QUOTA_SECONDS_MAX)


def _used(state: State, resource_quota: core.ResourceQuota) -> amounts.Amounts:
    """Return the use of the resources that only listed kinds are measured by."""
    total: amounts.Amounts = {}
    for kind in _MEASURED:
        names = [name for name in resource_quota.spec.hard if quota.is_measured(kind, name)]
        total |= {name: Quantity.of(0) for name in names}
        for each in state.of(kind):
            is_here = metadata_of(each).namespace == resource_quota.metadata.namespace
            if is_here and quota.counts(resource_quota, kind, each):
                total = amounts.add(total, amounts.only(quota.usage(kind, each, state.now), names))
    return total


def endpoints(state: State) -> Iterator[Finding]:
    """Find services whose endpoint slices do not have exactly the ready pods that they select as ready."""
    if CONTROLLERS not in state.running:
        return
    for service in state.of(kinds.SERVICE):
        spec = service.spec
        if not spec.selector or spec.type == "ExternalName" or spec.publishNotReadyAddresses:
            continue
        pods = {
            name_of(pod)
            for pod in state.pods_by_namespace.get(service.metadata.namespace, ())
            if all(pod.metadata.labels.get(key) == value for key, value in spec.selector.items())
            and _serves(state, pod)
        }
        shown = _shown(state, service)
        if pods - shown:
            yield Finding(name_of(service), f"has no ready endpoint for {in_order(pods - shown)}")
        if shown - pods:
            text = f"has as a ready endpoint, and not as a ready pod: {in_order(shown - pods)}"
            yield Finding(name_of(service), text)


def _serves(state: State, pod: core.Pod) -> bool:
    return (
        condition_is(pod.status.conditions, "Ready")
        and bool(pod.status.podIP)
        and not is_terminating(pod)
        and not has_ended(pod)
        and pod.spec.nodeName in state.node_names
    )


def _shown(state: State, service: core.Service) -> set[str]:
    """Return the names of the pods that are ready endpoints of a service."""
    return {
        f"pod {endpoint.targetRef.namespace}/{endpoint.targetRef.name}"
        for each in state.of(kinds.ENDPOINT_SLICE)
        if each.metadata.namespace == service.metadata.namespace
        and each.metadata.labels.get(_SERVICE) == service.metadata.name
        and each.metadata.labels.get(_MANAGED_BY) == "endpointslice-controller.k8s.io"
        for endpoint in each.endpoints
        if endpoint.conditions.ready
    }
