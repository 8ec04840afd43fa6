"""Stateful sets at rest: each ordinal has its pod, of the right revision. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.lab.chaos.rest.state import Finding, State, name_of
from nominee.lab.chaos.rest.workloads.ordinals import missing_names, names_of
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS, due_of, wrong_numbers
from nominee.lab.chaos.rest.workloads.refusals import may_refuse
from nominee.lab.chaos.rest.workloads.revisions import REVISION, latest_revision
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is, controller_of, is_controlled_by, is_terminating
from nominee.machinery.api.pb import apps, core
from nominee.machinery.api.selectors import LabelSelector


def stateful_sets(state: State) -> Iterator[Finding]:
    """Find stateful sets with pods missing, too many or of an earlier revision; and their numbers.

    One that waits for a pod to become ready may wait for ever, and pods may be refused.
    """
    if CONTROLLERS not in state.running:
        return
    for each in state.of(kinds.STATEFUL_SET):
        if is_terminating(each):
            continue
        pods = state.pods_by_namespace.get(each.metadata.namespace, ())
        pods = [pod for pod in pods if is_controlled_by(pod, each)]
        ready = sum(_is_ready(pod) for pod in pods)
        waits = ready != len(pods) or any(is_terminating(pod) for pod in pods)
        available = due_of(pods, each.spec.minReadySeconds, state.now)
        settled = None if waits else available
        due = 0.0 if each.spec.podManagementPolicy == "Parallel" else settled
        missing = missing_names(state, each)
        refused = [name for name in missing if may_refuse(state, each) or _is_taken(state, each, name)]
        if due is not None:
            # After a pod that cannot be created the controller does nothing.
            yield from _lacks(each, missing[: missing.index(refused[0])] if refused else missing, due)
            if not refused:
                yield from _superfluous(each, pods, due)
        if settled is not None and each.spec.updateStrategy.type == "RollingUpdate" and not refused:
            yield from _revisions(each, pods, settled)
        numbers = {"replicas": len(pods), "readyReplicas": ready}
        staying = [pod.metadata.labels.get(REVISION) for pod in pods if not is_terminating(pod)]
        numbers["currentReplicas"] = staying.count(each.status.currentRevision)
        numbers["updatedReplicas"] = updated = staying.count(each.status.updateRevision)
        yield from wrong_numbers(each, numbers)
        if {updated, ready, len(pods)} == {each.spec.replicas}:
            yield from _completion(each)
        yield from _latest(state, each)
        if available is not None:
            yield from wrong_numbers(each, {"availableReplicas": ready}, available)


def _completion(of: apps.StatefulSet) -> Iterator[Finding]:
    """Find a set whose pods are all updated, and whose current revision is an earlier one.

    Nothing completes the update of a set whose pods are updated on deletion: its current revision stays
    (kube-controller-manager 1.36, stateful_set_utils.go, completeRollingUpdate).
    """
    current, status = of.status.currentRevision, of.status
    is_seen = status.observedGeneration >= of.metadata.generation
    if is_seen and of.spec.updateStrategy.type == "RollingUpdate" and current != status.updateRevision:
        yield Finding(name_of(of), f"is updated, and its current revision is {current}")


def _latest(state: State, of: apps.StatefulSet) -> Iterator[Finding]:
    """Find a set whose update revision is not the latest one."""
    latest = latest_revision(state, of)
    if latest is not None and latest.metadata.name != of.status.updateRevision:
        shown = of.status.updateRevision
        yield Finding(
            name_of(of), f"has the update revision {shown}, and the latest is {latest.metadata.name}"
        )


def _is_ready(pod: core.Pod) -> bool:
    return pod.status.phase == "Running" and condition_is(pod.status.conditions, "Ready")


def _is_taken(state: State, of: apps.StatefulSet, name: str) -> bool:
    """Return whether another pod has a name of the set, or a claim of the pod terminates.

    Where a pod cannot be created the controller creates no later one, deletes none and updates none
    (kube-controller-manager 1.36, stateful_set_control.go, updateStatefulSet).
    """
    namespace = of.metadata.namespace
    claims = {f"{each.metadata.name}-{name}" for each in of.spec.volumeClaimTemplates}
    others = (pod for pod in state.pods_by_namespace.get(namespace, ()) if pod.metadata.name == name)
    return any(not _is_adopted(pod, of) for pod in others) or any(
        claim.metadata.namespace == namespace and claim.metadata.name in claims and is_terminating(claim)
        for claim in state.of(kinds.PERSISTENT_VOLUME_CLAIM)
    )


def _is_adopted(pod: core.Pod, of: apps.StatefulSet) -> bool:
    """Return whether a controller makes a pod, which has none, a pod of the set."""
    matches = LabelSelector.from_message(of.spec.selector).matches(pod.metadata.labels)
    return matches and controller_of(pod) is None and not is_terminating(pod)


def _lacks(of: apps.StatefulSet, missing: Sequence[str], due: float) -> Iterator[Finding]:
    if missing:
        yield Finding(name_of(of), f"lacks the pods {', '.join(sorted(missing))}", due=due)


def _superfluous(of: apps.StatefulSet, pods: Sequence[core.Pod], due: float) -> Iterator[Finding]:
    staying = {pod.metadata.name for pod in pods if not is_terminating(pod)}
    if superfluous := staying.difference(names_of(of)):
        yield Finding(name_of(of), f"has pods too many: {', '.join(sorted(superfluous))}", due=due)


def _revisions(of: apps.StatefulSet, pods: list[core.Pod], due: float) -> Iterator[Finding]:
    updated = names_of(of, of.spec.updateStrategy.rollingUpdate.partition)
    old = [
        pod.metadata.name
        for pod in pods
        if pod.metadata.name in updated and pod.metadata.labels.get(REVISION) != of.status.updateRevision
    ]
    if old:
        yield Finding(name_of(of), f"has pods of an earlier revision: {', '.join(sorted(old))}", due=due)
