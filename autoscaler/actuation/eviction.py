"""Eviction of a pod, with retries. Pure. Source: cluster-autoscaler 1.36, actuation's Evictor."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.autoscaler.options import Options
from nominee.autoscaler.orders import CountEviction, EvictPod, Orders, RecordEvents, RunInParallel, Sleep
from nominee.autoscaler.planning.objects import annotation_keys, pods
from nominee.autoscaler.planning.objects.events import Event, EventType
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import Clock

EVICTION_RETRY_SECONDS = 10.0


def evict_pod(pod: core.Pod, options: Options, clock: Clock, *, required: bool) -> Orders[str]:
    """Evict a pod, and retry for `--max-pod-eviction-time`; return the last error, or "".

    Only the evictions of `required` pods are counted, and their failures reported. Events are recorded at
    once, because the retries take minutes.
    """
    yield from _record(pod, "Normal", "ScaleDown", "deleting pod for node scale down")
    deadline = clock.monotonic() + options.max_pod_eviction_time
    grace = min(pods.grace_seconds(pod), options.max_graceful_termination_sec)
    while True:
        failure = yield from EvictPod(pod, grace)
        if failure is None or failure.not_found:
            if required:
                yield from CountEviction(succeeded=True)
            return ""
        yield from Sleep(EVICTION_RETRY_SECONDS)
        if clock.monotonic() >= deadline:
            break
    if required:
        yield from CountEviction(succeeded=False)
        yield from _record(pod, "Warning", "ScaleDownFailed", "failed to delete pod for ScaleDown")
    return f"failed to evict pod {key_of(pod)} within allowed timeout (last error: {failure})"


def evict_pods(
    required: Iterable[core.Pod],
    best_effort: Iterable[core.Pod],
    options: Options,
    clock: Clock,
) -> Orders[list[str]]:
    """Evict pods in parallel; return the errors of the required pods, sorted."""
    parts = [evict_pod(pod, options, clock, required=True) for pod in required]
    others = [evict_pod(pod, options, clock, required=False) for pod in best_effort]
    errors = yield from RunInParallel((*parts, *others))
    return sorted(filter(None, errors[: len(parts)]))


def _record(pod: core.Pod, type_: EventType, reason: str, message: str) -> Orders[None]:
    yield from RecordEvents((Event(type_, reason, pod, message),))


def drained_pods(on_node: Iterable[core.Pod]) -> list[core.Pod]:
    """Return the pods that a drain must evict: all but those of DaemonSets and mirror pods."""
    return [pod for pod in on_node if not pods.is_mirror(pod) and not pods.is_daemon(pod)]


def daemons_to_evict(on_node: Iterable[core.Pod], *, by_default: bool) -> list[core.Pod]:
    """Return the DaemonSet pods to evict, by their annotation or else by the flag."""
    default = "true" if by_default else "false"
    return [
        pod
        for pod in on_node
        if pods.is_daemon(pod)
        and not pods.is_mirror(pod)
        and pod.metadata.annotations.get(annotation_keys.ENABLE_DS_EVICTION, default) == "true"
    ]
