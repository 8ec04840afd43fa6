"""The pods of a Job: new ones, failed ones, and those that are deleted first. Pure.

Source: kube-controller-manager 1.36, pkg/controller/job (job_controller.go, indexed_job_utils.go).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from nominee.controllers.jobs import failure_policy, indexes
from nominee.controllers.owned_pods.deletion_order import ready_since, restarts, stage
from nominee.controllers.owned_pods.template import pod_of
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import batch, core

TRACKING: Final = "batch.kubernetes.io/job-tracking"
"""The finalizer of a pod that its Job has not counted."""
_COMPLETION_INDEX: Final = "JOB_COMPLETION_INDEX"
_GENERATE_NAME_MAX: Final = 58


def is_tracked(pod: core.Pod) -> bool:
    """Report whether the Job has yet to count the pod, or to remove its finalizer."""
    return TRACKING in pod.metadata.finalizers


def is_indexed(job: batch.Job) -> bool:
    return job.spec.completionMode == "Indexed"


def replaces_failed_only(job: batch.Job) -> bool:
    """Report whether a terminating pod is replaced only when it has ended (podReplacementPolicy)."""
    return job.spec.podReplacementPolicy == "Failed" or job.spec.HasField("podFailurePolicy")


def is_failed(job: batch.Job, pod: core.Pod) -> bool:
    """Report whether a pod failed, or is deleted before its end and counts as failed."""
    if pod.status.phase == "Failed":
        return True
    return not replaces_failed_only(job) and is_terminating(pod) and pod.status.phase != "Succeeded"


def new_pod(job: batch.Job, index: int | None = None, replaced: core.Pod | None = None) -> core.Pod:
    """Return a new pod, with `index` that of an Indexed Job; `replaced` failed before it in this index."""
    pod = pod_of(job, job.spec.template)
    if not is_tracked(pod):
        pod.metadata.finalizers.append(TRACKING)
    if index is None:
        return pod
    suffix = f"-{index}-"
    pod.metadata.generateName = job.metadata.name[: _GENERATE_NAME_MAX - len(suffix)] + suffix
    pod.metadata.annotations[indexes.INDEX] = pod.metadata.labels[indexes.INDEX] = str(index)
    pod.spec.hostname = f"{job.metadata.name}-{index}"
    for container in (*pod.spec.initContainers, *pod.spec.containers):
        if all(variable.name != _COMPLETION_INDEX for variable in container.env):
            source = container.env.add(name=_COMPLETION_INDEX).valueFrom.fieldRef
            source.fieldPath = f"metadata.labels['{indexes.INDEX}']"
    if job.spec.HasField("backoffLimitPerIndex"):
        _count_failures(job, pod, replaced)
    return pod


def _count_failures(job: batch.Job, pod: core.Pod, replaced: core.Pod | None) -> None:
    counted = ignored = 0
    if replaced is not None:
        counted = indexes.counted_failures(replaced)
        ignored = indexes.all_failures(replaced) - counted
        if failure_policy.match(job, replaced).counts:
            counted += 1
        else:
            ignored += 1
    pod.metadata.annotations[indexes.FAILURES] = str(counted)
    if ignored:
        pod.metadata.annotations[indexes.IGNORED_FAILURES] = str(ignored)


def surplus(job: batch.Job, active: Sequence[core.Pod], count: int) -> list[core.Pod]:
    """Return at least `count` active pods to delete; all that repeat an index or have no valid one are."""
    left, gone = list(active), list[core.Pod]()
    if is_indexed(job):
        by_index: dict[int | None, list[core.Pod]] = defaultdict(list)
        for pod in active:
            by_index[indexes.valid_index(job, pod)].append(pod)
        gone = by_index.pop(None, [])
        left = []
        for pods in by_index.values():
            *repeated, kept = sorted(pods, key=_order)
            gone += repeated
            left.append(kept)
    return gone + sorted(left, key=_order)[: max(count - len(gone), 0)]


def _order(pod: core.Pod) -> tuple[float, ...]:
    """Order pods by the work that is lost with them, the least first (ActivePods)."""
    often, sidecars_often = restarts(pod)
    created = pod.metadata.creationTimestamp.seconds
    return (*stage(pod), -ready_since(pod), -often, -sidecars_often, -created)
