"""Changes that are due at rest: deadlines, ends of containers, evictions, volumes, and nodes. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from nominee.lab.chaos.cases.perturbations import JUMP_SECONDS
from nominee.lab.chaos.rest.nodes import AUTOSCALER, LOOP
from nominee.lab.chaos.rest.state import State
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS, live_pods
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is, get_condition, has_ended, is_terminating
from nominee.machinery.api.pb import apps, batch, core
from nominee.machinery.runtime.clock import from_time
from nominee.machinery.scheduling.taints import NO_EXECUTE, matching_toleration
from nominee.machinery.scheduling.volume_matching import class_of
from nominee.machinery.wire.values.scalars import parse_seconds

_RUN_DURATION: Final = "nominee.dev/run-duration"
_RULES: Final = "nominee.dev/rules"
_DURATION_OF_RULE: Final = re.compile(r"\brun-duration=(\S+)")
_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
"""On a claim for which its provisioner has been asked for a volume."""
_PROVISIONING_DELAY: Final = "nominee.dev/provisioning-delay"
_PROGRESSING: Final = "Progressing"
_AVAILABLE: Final = "NewReplicaSetAvailable"
"""The reason of a Deployment that is complete: its deadline for progress does not count."""
_SYNC_SECONDS: Final = 16.0
"""--horizontal-pod-autoscaler-sync-period (15 s by default); times of objects are whole seconds."""
_DONE_SECONDS: Final = 2.0
"""For so long after its time a change may be under way: controllers look at an object a second later."""
_DISRUPTED_SECONDS: Final = 121.0
"""For so long a budget counts a pod as disrupted that was not deleted, and a second until it is looked at.

Source: kube-controller-manager 1.36, disruption, DeletionTimeout."""


def due_seconds(state: State, seconds_max: float) -> float:
    """Return in how many seconds the last change of the next `seconds_max` is due; 0.0 without one.

    What was due just now may not be done yet.
    """
    times = [*_of_pods(state), *_of_jobs(state), *_of_deployments(state), *_of_ready_pods(state)]
    times += _of_unneeded_nodes(state)
    if CONTROLLERS in state.running:
        times += [*_of_tainted_nodes(state), *_of_tainted_devices(state), *_of_budgets(state)]
        times += [*_of_claims(state), *_of_pod_autoscalers(state)]
    seconds = (time - state.now for time in times)
    left = (each + _DONE_SECONDS if -_DONE_SECONDS < each < 0.0 else each for each in seconds)
    return max((each for each in left if 0.0 < each <= seconds_max), default=0.0)


def _of_pods(state: State) -> Iterator[float]:
    """Yield when a pod is gone after its grace period, fails by its deadline, or its containers exit.

    A kubelet that has started meanwhile gives containers the whole grace period once more (kubelet 1.36,
    pod_workers.go, calculateEffectiveGracePeriod).
    """
    for pod in state.of(kinds.POD):
        if is_terminating(pod):
            yield from_time(pod.metadata.deletionTimestamp)
        if has_ended(pod) or not pod.status.HasField("startTime"):
            continue
        if is_terminating(pod):
            yield state.now + pod.metadata.deletionGracePeriodSeconds
        if pod.spec.HasField("activeDeadlineSeconds"):
            yield from_time(pod.status.startTime) + pod.spec.activeDeadlineSeconds
        yield from _exits(pod, state.now)


def _exits(pod: core.Pod, now: float) -> Iterator[float]:
    """Yield when containers that run exit at the latest, by any of the rules among the pod's annotations.

    The time of a run begins again for a kubelet that starts, and startedAt is by its clock.
    """
    annotations = pod.metadata.annotations
    texts = _DURATION_OF_RULE.findall(annotations.get(_RULES, ""))
    for text in (annotations.get(_RUN_DURATION, ""), *texts):
        with suppress(ValueError):  # it does not count
            seconds = parse_seconds(text)
            for container in (*pod.status.initContainerStatuses, *pod.status.containerStatuses):
                if container.state.HasField("running"):
                    yield max(from_time(container.state.running.startedAt), now) + seconds


def _of_tainted_nodes(state: State) -> Iterator[float]:
    """Yield when pods at the latest leave a node that they tolerate for a while.

    The time begins when the controller first sees the pod on the tainted node, and again when it starts.
    """
    for pod, seconds in tolerated_seconds(state):
        if not is_terminating(pod):
            yield state.now + seconds


def tolerated_seconds(state: State) -> Iterator[tuple[core.Pod, int]]:
    """Yield the pods that tolerate a taint NoExecute of their node for a while, and for how long."""
    taints = {
        node.metadata.name: [taint for taint in node.spec.taints if taint.effect == NO_EXECUTE]
        for node in state.of(kinds.NODE)
    }
    for pod in state.of(kinds.POD):
        for taint in taints.get(pod.spec.nodeName, ()):
            first = matching_toleration(pod.spec.tolerations, taint, comparison=True)
            if first is not None and first.HasField("tolerationSeconds"):
                yield pod, first.tolerationSeconds


def _of_tainted_devices(state: State) -> Iterator[float]:
    """Yield when pods at the latest leave a device whose taints they tolerate for a while.

    The time begins when a taint is added, or is first seen by a controller. The slices, which have the
    taints, are not read: the device may have none.
    """
    for claim in state.of(kinds.RESOURCE_CLAIM):
        for result in claim.status.allocation.devices.results if claim.status.reservedFor else ():
            for toleration in result.tolerations:
                if toleration.HasField("tolerationSeconds") and toleration.effect in ("", NO_EXECUTE):
                    yield state.now + toleration.tolerationSeconds


def _of_unneeded_nodes(state: State) -> Iterator[float]:
    """Yield when nodes have been unneeded for long enough: the autoscaler deletes them.

    For one that starts, the time of --scale-down-unneeded-time begins again.
    """
    document = state.debug.get((AUTOSCALER, LOOP)) or {}
    left: Mapping[str, float] = document.get("unneededLeftSeconds", {})
    yield from (state.now + seconds for seconds in left.values())


def _of_budgets(state: State) -> Iterator[float]:
    """Yield when a budget counts a pod again whose eviction was allowed, and that was not deleted.

    The time is the API server's: a controller whose clock is behind waits for longer.
    """
    for budget in state.of(kinds.POD_DISRUPTION_BUDGET):
        for each in budget.status.disruptedPods.values():
            end = from_time(each) + _DISRUPTED_SECONDS
            yield end if end > state.now else end + JUMP_SECONDS


def _of_claims(state: State) -> Iterator[float]:
    """Yield when volumes that are being made come at the latest: a provisioner that starts begins again."""
    delays = {each.metadata.name: each.parameters.get("delay", "") for each in state.of(kinds.STORAGE_CLASS)}
    for claim in state.of(kinds.PERSISTENT_VOLUME_CLAIM):
        annotations = claim.metadata.annotations
        if claim.status.phase != "Pending" or _PROVISIONER not in annotations or is_terminating(claim):
            continue
        with suppress(ValueError):  # the provisioner refuses it
            text = annotations.get(_PROVISIONING_DELAY, delays.get(class_of(claim), ""))
            yield state.now + parse_seconds(text)


def _of_jobs(state: State) -> Iterator[float]:
    """Yield when a Job fails by its deadline, or is deleted after its end."""
    for job in state.of(kinds.JOB):
        end = _end(job)
        if end is None and job.spec.HasField("activeDeadlineSeconds") and job.status.HasField("startTime"):
            yield from_time(job.status.startTime) + job.spec.activeDeadlineSeconds
        if end is not None and job.spec.HasField("ttlSecondsAfterFinished"):
            yield end + job.spec.ttlSecondsAfterFinished


def _end(job: batch.Job) -> float | None:
    """Return when a Job was finished, None while it is not."""
    ends = (get_condition(job.status.conditions, name) for name in ("Complete", "Failed"))
    return next(
        (from_time(each.lastTransitionTime) for each in ends if each is not None and each.status == "True"),
        None,
    )


def _of_deployments(state: State) -> Iterator[float]:
    """Yield when a Deployment has made no progress for too long."""
    for deployment in state.of(kinds.DEPLOYMENT):
        if (updated := _last_progress(deployment)) is not None:
            yield updated + deployment.spec.progressDeadlineSeconds


def _of_pod_autoscalers(state: State) -> Iterator[float]:
    """Yield when an autoscaler of pods is looked at again of which a condition has just changed.

    Metrics may be missing for one period only, as when the clock of a kubelet has jumped, and the next period
    forgets an update of the scale that failed (FailedUpdateScale).
    """
    for each in state.of(kinds.HORIZONTAL_POD_AUTOSCALER):
        for condition in each.status.conditions:
            yield from_time(condition.lastTransitionTime) + _SYNC_SECONDS


def _of_ready_pods(state: State) -> Iterator[float]:
    """Yield when ready pods become available: a rollout, or the next pod of a set, waits for that."""
    owners: list[apps.ReplicaSet | apps.StatefulSet | apps.DaemonSet] = []
    owners += state.of(kinds.REPLICA_SET)
    owners += state.of(kinds.STATEFUL_SET)
    owners += state.of(kinds.DAEMON_SET)
    for each in owners:
        for pod in live_pods(state, each) if each.spec.minReadySeconds else ():
            ready = get_condition(pod.status.conditions, "Ready")
            if ready is not None and condition_is(pod.status.conditions, "Ready"):
                yield from_time(ready.lastTransitionTime) + each.spec.minReadySeconds


def _last_progress(deployment: apps.Deployment) -> float | None:
    """Return the last progress of a Deployment that may miss its deadline, None for another one."""
    for each in deployment.status.conditions:
        if each.type == _PROGRESSING and each.status == "True" and each.reason != _AVAILABLE:
            has_deadline = deployment.spec.HasField("progressDeadlineSeconds") and not deployment.spec.paused
            return from_time(each.lastUpdateTime) if has_deadline else None
    return None
