"""Stateful sets at rest: each ordinal has its pod, of the right revision. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.lab.chaos.rest.state import Finding, State, name_of
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS, are_available, wrong_numbers
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is, is_controlled_by, is_terminating
from nominee.machinery.api.pb import apps, core


def stateful_sets(state: State) -> Iterator[Finding]:
    """Find stateful sets with pods missing, too many or of an earlier revision; and their numbers.

    One that waits for a pod to become ready may wait for ever, for one to become available for long, and a
    quota may refuse pods.
    """
    if CONTROLLERS not in state.running:
        return
    for each in state.of(kinds.STATEFUL_SET):
        if is_terminating(each):
            continue
        namespace = each.metadata.namespace
        pods = [pod for pod in state.pods_by_namespace.get(namespace, ()) if is_controlled_by(pod, each)]
        ready = sum(_is_ready(pod) for pod in pods)
        is_settled = ready == len(pods) and not any(is_terminating(pod) for pod in pods)
        is_settled = is_settled and are_available(pods, each.spec.minReadySeconds, state.now)
        if is_settled or each.spec.podManagementPolicy == "Parallel":
            yield from _ordinals(each, pods, is_refused=namespace in state.namespaces_with_quotas)
        if is_settled and each.spec.updateStrategy.type == "RollingUpdate":
            yield from _revisions(each, pods)
        expected = {"replicas": len(pods), "readyReplicas": ready}
        if not each.spec.minReadySeconds:
            expected["availableReplicas"] = ready
        yield from wrong_numbers(each, expected)


def _is_ready(pod: core.Pod) -> bool:
    return pod.status.phase == "Running" and condition_is(pod.status.conditions, "Ready")


def _names(of: apps.StatefulSet, begin: int = 0) -> set[str]:
    """Return the names of the set's pods, from the index `begin`."""
    start = of.spec.ordinals.start
    return {f"{of.metadata.name}-{n}" for n in range(start + begin, start + of.spec.replicas)}


def _ordinals(of: apps.StatefulSet, pods: list[core.Pod], *, is_refused: bool) -> Iterator[Finding]:
    names = {pod.metadata.name for pod in pods}
    staying = {pod.metadata.name for pod in pods if not is_terminating(pod)}
    missing, superfluous = _names(of) - names, staying - _names(of)
    if missing and not is_refused:
        yield Finding(name_of(of), f"lacks the pods {', '.join(sorted(missing))}")
    if superfluous:
        yield Finding(name_of(of), f"has pods too many: {', '.join(sorted(superfluous))}")


def _revisions(of: apps.StatefulSet, pods: list[core.Pod]) -> Iterator[Finding]:
    updated = _names(of, of.spec.updateStrategy.rollingUpdate.partition)
    old = [
        pod.metadata.name
        for pod in pods
        if pod.metadata.name in updated
        and pod.metadata.labels.get("controller-revision-hash") != of.status.updateRevision
    ]
    if old:
        yield Finding(name_of(of), f"has pods of an earlier revision: {', '.join(sorted(old))}")
