"""Owners and their dependents: replica sets, deployments, garbage. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from google.protobuf.message import Message

from nominee.lab.chaos.rest.state import LISTED, Finding, State, name_of
from nominee.lab.chaos.rest.workloads.refusals import may_refuse
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Object
from nominee.machinery.api.objects import (
    condition_is,
    copy_of,
    get_condition,
    has_ended,
    is_controlled_by,
    is_terminating,
    metadata_of,
)
from nominee.machinery.api.pb import apps, core, intstr
from nominee.machinery.api.selectors import LabelSelector
from nominee.machinery.runtime.clock import from_time
from nominee.machinery.wire.codec import to_json
from nominee.machinery.wire.values.scalars import Json

CONTROLLERS: Final = "controllers"
STRING: Final = 1
"""The type of an IntOrString with text, such as a percentage."""
DUE_SECONDS_MAX: Final = 300.0
"""A step that is due later is no finding: a cluster of real processes is waited for, too, and a rollout has
several steps. minReadySeconds may be an hour."""


def replica_sets(state: State) -> Iterator[Finding]:
    """Find replica sets, and replication controllers, without their replicas or with a wrong status.

    Without DeploymentReplicaSetTerminatingReplicas a status has no number of pods that terminate.
    """
    if CONTROLLERS not in state.running:
        return
    replicated: list[apps.ReplicaSet | core.ReplicationController] = [*state.of(kinds.REPLICA_SET)]
    for each in [*replicated, *state.of(kinds.REPLICATION_CONTROLLER)]:
        if is_terminating(each):
            continue
        pods = live_pods(state, each)
        # It does not count as a failure that no pod can be created in a namespace that ends.
        is_refused = len(pods) < each.spec.replicas and (
            (condition_is(each.status.conditions, "ReplicaFailure") and may_refuse(state, each))
            or _is_in_ending_namespace(state, each)
        )
        if len(pods) != each.spec.replicas and not is_refused:
            yield Finding(name_of(each), f"has {len(pods)} live pods and {each.spec.replicas} replicas")
        if len(pods) == each.spec.replicas and condition_is(each.status.conditions, "ReplicaFailure"):
            yield Finding(name_of(each), "shows a ReplicaFailure, and has its replicas")
        numbers = {"replicas": len(pods), "readyReplicas": _ready(pods)}
        numbers["fullyLabeledReplicas"] = _fully_labeled(each, pods)
        if isinstance(each, apps.ReplicaSet) and each.status.HasField("terminatingReplicas"):
            numbers["terminatingReplicas"] = _terminating(state, each)
        yield from wrong_numbers(each, numbers)
        if (due := due_of(pods, each.spec.minReadySeconds, state.now)) is not None:
            yield from wrong_numbers(each, {"availableReplicas": _ready(pods)}, due)


def deployments(state: State) -> Iterator[Finding]:
    """Find deployments whose replica sets do not have their replicas, or are not counted in the status.

    A rollout that waits for a pod to become ready, to be allowed or to end is left out: it may wait forever.
    """
    if CONTROLLERS not in state.running:
        return
    for each in state.of(kinds.DEPLOYMENT):
        if is_terminating(each):
            continue
        sets = [one for one in state.of(kinds.REPLICA_SET) if is_controlled_by(one, each)]
        pods = [pod for one in sets for pod in live_pods(state, one)]
        desired = sum(one.spec.replicas for one in sets)
        is_refused = any(
            condition_is(one.status.conditions, "ReplicaFailure")
            and one.status.replicas < one.spec.replicas
            and may_refuse(state, one)
            for one in sets
        )
        is_still = (
            each.spec.paused
            or is_refused
            or _is_in_ending_namespace(state, each)
            or _ready(pods) != len(pods)
            or _waits_for_ends(state, each, sets)
        )
        due = due_of(pods, each.spec.minReadySeconds, state.now)
        if desired != each.spec.replicas and not is_still and due is not None:
            sentence = f"has {each.spec.replicas} replicas, and its replica sets have {desired}"
            yield Finding(name_of(each), sentence, due=due)
        numbers = {"replicas": len(pods), "readyReplicas": _ready(pods)}
        new = _new_set(each, sets)
        numbers["updatedReplicas"] = len(live_pods(state, new)) if new is not None else 0
        if each.status.HasField("terminatingReplicas"):
            numbers["terminatingReplicas"] = sum(_terminating(state, one) for one in sets)
        yield from wrong_numbers(each, numbers)
        if due is not None:
            unavailable = max(desired - _ready(pods), 0)
            expected = {"availableReplicas": _ready(pods), "unavailableReplicas": unavailable}
            yield from wrong_numbers(each, expected, due)
        available = get_condition(each.status.conditions, "Available")
        is_enough = each.status.availableReplicas >= each.spec.replicas - _max_unavailable(each)
        if available is not None and (available.status == "True") is not is_enough:
            number = each.status.availableReplicas
            yield Finding(
                name_of(each), f"shows Available={available.status}, and {number} replicas are available"
            )
        if not each.spec.paused:  # The conditions of a rollout stay as they were when it was paused.
            yield from _rollout_conditions(each, sets, new)


def _rollout_conditions(
    deployment: apps.Deployment, sets: Sequence[apps.ReplicaSet], new: apps.ReplicaSet | None
) -> Iterator[Finding]:
    """Find conditions of a rollout that do not agree with the numbers, or with the sets.

    A rollout that is not complete shows how it went on last, and when that was decides on its reason. One
    whose set cannot be created stays as it was (kube-controller-manager 1.36, deployment/progress.go).
    """
    status, size = deployment.status, deployment.spec.replicas
    if new is None or status.observedGeneration < deployment.metadata.generation:
        return
    failed = condition_is(status.conditions, "ReplicaFailure")
    if failed is not any(condition_is(one.status.conditions, "ReplicaFailure") for one in sets):
        yield Finding(name_of(deployment), f"shows ReplicaFailure={failed}, and its replica sets do not")
    progressing = get_condition(status.conditions, "Progressing")
    if progressing is None or progressing.reason == "NewReplicaSetAvailable":
        return
    if {status.updatedReplicas, status.replicas, status.availableReplicas} == {size}:
        yield Finding(name_of(deployment), f"is complete, and shows Progressing: {progressing.reason}")


def _new_set(deployment: apps.Deployment, sets: Sequence[apps.ReplicaSet]) -> apps.ReplicaSet | None:
    """Return the oldest set that has the template of its Deployment (deployment/util, FindNewReplicaSet)."""
    template = _without_hash(deployment.spec.template)
    equal = [one for one in sets if _without_hash(one.spec.template) == template]
    return min(equal, key=age_of, default=None)


def age_of(obj: Object) -> tuple[float, str]:
    """Return the key by which controllers sort objects by age, the oldest first."""
    return from_time(obj.metadata.creationTimestamp), obj.metadata.name


def _without_hash(template: core.PodTemplateSpec) -> Json:
    found = copy_of(template)
    found.metadata.labels.pop("pod-template-hash", None)
    return to_json(found)


def _fully_labeled(owner: apps.ReplicaSet | core.ReplicationController, pods: Sequence[core.Pod]) -> int:
    labels = owner.spec.template.metadata.labels
    return sum(all(pod.metadata.labels.get(key) == labels[key] for key in labels) for pod in pods)


def _terminating(state: State, replica_set: apps.ReplicaSet) -> int:
    """Return how many pods of a set terminate, and have not ended."""
    selector = LabelSelector.from_message(replica_set.spec.selector)
    return sum(
        is_terminating(pod) and not has_ended(pod) and selector.matches(pod.metadata.labels)
        for pod in state.pods_by_namespace.get(replica_set.metadata.namespace, ())
        if is_controlled_by(pod, replica_set)
    )


def _is_in_ending_namespace(state: State, owner: Object) -> bool:
    return owner.metadata.namespace in state.ending_namespaces


def _waits_for_ends(state: State, deployment: apps.Deployment, sets: Sequence[apps.ReplicaSet]) -> bool:
    """Return whether a Deployment recreates its pods, and one of a set without replicas has not ended.

    On a node without a kubelet it never ends, and the new set gets no replicas before
    (kube-controller-manager 1.36, deployment/recreate.go, oldPodsRunning).
    """
    if deployment.spec.strategy.type != "Recreate":
        return False
    return any(
        is_controlled_by(pod, one) and is_terminating(pod) and not has_ended(pod)
        for one in sets
        if not one.spec.replicas
        for pod in state.pods_by_namespace.get(one.metadata.namespace, ())
    )


def _max_unavailable(deployment: apps.Deployment) -> int:
    """Return how many replicas may be unavailable (deployment/util, MaxUnavailable and ResolveFenceposts)."""
    spec = deployment.spec
    if spec.strategy.type != "RollingUpdate" or not spec.replicas:
        return 0
    rolling = spec.strategy.rollingUpdate
    unavailable = amount(rolling.maxUnavailable, spec.replicas, is_rounded_up=False)
    if not unavailable and not amount(rolling.maxSurge, spec.replicas, is_rounded_up=True):
        return 1
    return min(unavailable, spec.replicas)


def amount(value: intstr.IntOrString, total: int, *, is_rounded_up: bool) -> int:
    """Return a number of pods, which may be a share of the total."""
    if value.type != STRING:
        return value.intVal
    share = int(value.strVal.rstrip("%")) * total
    return -(-share // 100) if is_rounded_up else share // 100


def garbage(state: State) -> Iterator[Finding]:
    """Find objects that should have been collected: none of their owners exists."""
    if CONTROLLERS not in state.running:
        return
    known = {(kind.api_version, kind.kind) for kind in LISTED}
    for row in state.objects.values():
        for each in row:
            metadata = metadata_of(each)
            owners = metadata.ownerReferences
            if not owners or metadata.HasField("deletionTimestamp"):
                continue
            if all((one.apiVersion, one.kind) in known and one.uid not in state.by_uid for one in owners):
                gone = f"{owners[0].kind.lower()} {owners[0].name}"
                yield Finding(name_of(each), f"exists, and its owner, the {gone}, does not")


def namespaces(state: State) -> Iterator[Finding]:
    """Find objects that were left behind by a namespace that is gone."""
    existing = {each.metadata.name for each in state.of(kinds.NAMESPACE)}
    for row in state.objects.values() if existing else ():
        for each in row:
            namespace = metadata_of(each).namespace
            if namespace and namespace not in existing:
                yield Finding(name_of(each), "exists, and its namespace does not")


def live_pods(state: State, owner: Object) -> list[core.Pod]:
    """Return the pods of an owner that have not ended and do not terminate."""
    return [
        pod
        for pod in state.pods_by_namespace.get(owner.metadata.namespace, ())
        if is_controlled_by(pod, owner) and not has_ended(pod) and not is_terminating(pod)
    ]


def due_of(pods: Sequence[core.Pod], seconds: int, now: float) -> float | None:
    """Return when a step that waits for available pods is due, None if that is too late for a finding.

    `seconds` is minReadySeconds of their owner. A controller that looks for an earlier pod looks at the last
    one when they are over once more.
    """
    found = (get_condition(pod.status.conditions, "Ready") for pod in pods) if seconds else ()
    times = (
        from_time(ready.lastTransitionTime) + 2 * seconds
        for ready in found
        if ready is not None and ready.status == "True"
    )
    due = max(times, default=0.0)
    return due if due <= now + DUE_SECONDS_MAX else None


def _ready(pods: Sequence[core.Pod]) -> int:
    return sum(condition_is(pod.status.conditions, "Ready") for pod in pods)


def wrong_numbers(owner: Message, expected: dict[str, int], due: float = 0.0) -> Iterator[Finding]:
    """Find numbers in an owner's status that differ from those of its pods."""
    status = owner.status  # type: ignore[attr-defined]  # owners have one
    if status.observedGeneration < metadata_of(owner).generation:
        yield Finding(name_of(owner), f"has a status of generation {status.observedGeneration} only")
        return
    for name, number in expected.items():
        shown = getattr(status, name)
        if shown != number:
            yield Finding(
                name_of(owner), f"shows {shown} {name} in its status, and its pods are {number}", due=due
            )
