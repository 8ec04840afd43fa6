"""Whether a cluster has come to rest: the next change that each pod waits for. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import CONFIG_MAP, EVENT, LEASE
from nominee.machinery.api.objects import condition_is, get_condition, is_terminating, metadata_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import from_time

WRITES_MAX: Final = 5
"""Of one object while all rests: what components renew, they renew each 10 s."""
BUSY_TIMES: Final = 3.0
BUSY_CALLBACKS: Final = 30.0
"""For each second: so much more than usual, in both ways, is work that does not end."""
BUSY_CALLBACKS_MAX: Final = 200.0
"""Where it is not known how much is usual."""
TRY_SECONDS: Final = 12.0
"""A pod that no event concerns is tried again after five minutes, and after an error each 10 s."""
_GRACE_SECONDS_MAX: Final = 300.0
"""No scenario waits for a longer grace period."""
_SILENT_SECONDS: Final = 60.0
"""After so long a node whose kubelet does not run is not ready: --node-monitor-grace-period is 50 s, and the
controller looks each 5 s."""
_RENEWED: Final = frozenset({LEASE, EVENT, CONFIG_MAP})
_ENDED = frozenset({"Succeeded", "Failed"})
TRACKING: Final = "batch.kubernetes.io/job-tracking"
"""The finalizer of a pod that its Job has not counted yet."""
_OF_CONTROLLERS: Final = frozenset({TRACKING, "foregroundDeletion", "orphan"})
_INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
"""The annotation of pods whose Job has backoffLimitPerIndex."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for unrest, and how many seconds longer than others it may last."""

    text: str
    extra_seconds: float | None = None
    """None: it is no pod's, and does not wait for one."""


class Deadlines:
    """Until when the reasons for unrest must have ended.

    One that appears later has its own time, since it may follow from the end of a pod that had extra time:
    its owner replaces that pod, or another one takes its room. All must have ended after the longest extra
    time.
    """

    def __init__(self, began: float, seconds_max: float) -> None:
        self._end = began + seconds_max
        self._seconds_max = seconds_max
        self._longest = 0.0
        self._since: dict[str, float] = {}

    def overdue(self, found: Iterable[Reason], longest: float, now: float) -> list[str]:
        """Return the reasons of now that should have ended; `longest` is the longest extra time of now."""
        self._longest = max(self._longest, longest)
        reasons = {each.text: each.extra_seconds for each in found}
        self._since = {text: self._since.get(text, now) for text in reasons}
        return [text for text, extra in reasons.items() if now >= self._end_of(text, extra)]

    def _end_of(self, text: str, extra: float | None) -> float:
        if extra is None:
            return self._end
        return min(self._since[text] + self._seconds_max + extra, self._end + self._longest)


def work_of(before: Mapping[str, int], after: Mapping[str, int], seconds: float) -> dict[str, float]:
    """Return how many callbacks the processes of each component ran in a second."""
    work = Counter[str]()
    for name, count in after.items():
        work[name.rstrip("-0123456789")] += max(count - before.get(name, 0), 0)
    return {component: count / seconds for component, count in work.items()}


def busy(work: Mapping[str, float], usual: Mapping[str, float] | None) -> list[str]:
    """Return the components that work too much at rest: `usual` is the work after the undisturbed run."""
    known = usual or {}
    return [
        f"the processes of {component} work {count:.0f} times a second, though nothing happens"
        for component, count in sorted(work.items())
        if count > BUSY_TIMES * known.get(component, 0.0) + (BUSY_CALLBACKS if usual else BUSY_CALLBACKS_MAX)
    ]


def attempts_at_rest(before: Mapping[str, int], after: Mapping[str, int], seconds: float) -> list[str]:
    """Return the pods that a scheduler tries again and again at rest; `before` and `after` are attempts."""
    return [
        f"pod {pod} is tried {count} times within {seconds:g} s, though nothing happens"
        for pod, number in sorted(after.items())
        if (count := number - before.get(pod, number)) > 1 + seconds / TRY_SECONDS
    ]


def unrest(
    pods: Iterable[core.Pod],
    nodes: Iterable[core.Node],
    unschedulable: Container[str],
    now: float,
    *,
    on_the_way: Container[str] = (),
    scheduled: bool = True,
    silent: Container[str] = (),
) -> list[Reason]:
    """Return for each pod that must still change the reason; `now` is in seconds since the epoch.

    At rest is a pod that runs or has ended on its node, one that the scheduler found unschedulable (by its
    condition, or by its queue: `unschedulable` has names as `default/p`), one of a scheduler that does not
    exist (among `unschedulable`, too), and one with scheduling gates. A pod on a node that is not ready, or
    that terminates within its grace period, may stay as it is; so may one whose containers are ready and that
    waits for a readiness gate, and one that has a node for the scheduler (`on_the_way`) and waits for its
    volumes, its devices or a plugin. A pod whose node does not exist waits for the pod garbage collector,
    which takes its time (lab/chaos/rest/pods.py), and a pod without a node for a scheduler, which may not run
    (not `scheduled`). The kubelets of `silent` nodes do not run.
    """
    ready = {node.metadata.name: condition_is(node.status.conditions, "Ready") for node in nodes}
    found = []
    for pod in pods:
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        waits = not is_terminating(pod) and (
            name in unschedulable or (name in on_the_way and _needs_preparation(pod))
        )
        reason = "" if waits else _unrest(pod, ready, now, scheduled)
        if reason:
            found.append(Reason(f"pod {name} {reason}", extra_seconds(pod, silent)))
    return found


def extra_seconds(pod: core.Pod, silent: Container[str]) -> float:
    """Return how much longer than others a pod may take: its grace period if it terminates.

    A kubelet that has started meanwhile gives containers all of it once more (kubelet 1.36, pod_workers.go,
    calculateEffectiveGracePeriod). On a `silent` node it has the time in which the node stays ready, too.
    """
    grace = float(pod.metadata.deletionGracePeriodSeconds) if is_terminating(pod) else 0.0
    return min(grace, _GRACE_SECONDS_MAX) + (_SILENT_SECONDS if pod.spec.nodeName in silent else 0.0)


def is_tried(pod: core.Pod) -> bool:
    """Return whether the scheduler has shown an attempt at a pod, or that it is gated."""
    return get_condition(pod.status.conditions, "PodScheduled") is not None


def foreign_finalizers(pod: core.Pod) -> set[str]:
    """Return the finalizers of a pod that no controller of Kubernetes removes."""
    return set(pod.metadata.finalizers) - _OF_CONTROLLERS


def _waits_for_another(pod: core.Pod) -> bool:
    """Return whether a pod failed whose Job counts it when its index gets another pod, after a back-off.

    How long that may take is a rule of Jobs (lab/chaos/rest/workloads/jobs.py). Source:
    kube-controller-manager 1.36, job_controller.go (canRemoveFinalizer).
    """
    metadata = pod.metadata
    is_kept = pod.status.phase == "Failed" and TRACKING in metadata.finalizers
    return is_kept and _INDEX_FAILURES in metadata.annotations


def _needs_preparation(pod: core.Pod) -> bool:
    """Return whether binding may take long: volumes are created, devices are prepared, or a plugin waits.

    The scheduler nominates a pod to its node before such work only (KEP-5278).
    """
    volumes = (volume.volumeSource for volume in pod.spec.volumes)
    return bool(pod.status.nominatedNodeName or pod.spec.resourceClaims) or any(
        source.HasField("persistentVolumeClaim") or source.HasField("ephemeral") for source in volumes
    )


def _unrest(pod: core.Pod, ready: Mapping[str, bool], now: float, scheduled: bool) -> str:
    node = pod.spec.nodeName
    acts = not node or ready.get(node, False)  # the API server deletes a pod without a node itself
    if pod.metadata.HasField("deletionTimestamp"):
        ends = from_time(pod.metadata.deletionTimestamp)
        is_held = foreign_finalizers(pod) and (pod.status.phase in _ENDED or not node)
        is_held = is_held or _waits_for_another(pod)
        return "is terminating beyond its grace period" if now >= ends and acts and not is_held else ""
    if pod.status.phase in _ENDED:
        return ""
    if not node:
        if pod.spec.schedulingGates or not scheduled:
            return ""
        return "" if is_tried(pod) else "has not been scheduled, and has no condition PodScheduled"
    if not acts:
        return ""
    # Users write the conditions of readiness gates: a pod may wait for them for ever.
    conditions = pod.status.conditions
    is_open = all(condition_is(conditions, gate.conditionType) for gate in pod.spec.readinessGates)
    condition = "Ready" if is_open else "ContainersReady"
    return "" if condition_is(conditions, condition) else f"is bound to {node} and is not ready"


def rewritten(writes: Iterable[Revision], seconds: float) -> list[str]:
    """Return the objects that were written too often for a cluster at rest, in a period of `seconds`.

    Leases, events, and the autoscaler's status, which each of its loops writes, are left out. An object that
    is created again by the same name, as a StatefulSet's pod, is another one.
    """
    counts = Counter((write.subject, _uid(write)) for write in writes if write.kind not in _RENEWED)
    lives = Counter(subject for subject, _ in counts)
    written = [(f"{subject} is written", count) for (subject, _), count in sorted(counts.items())]
    created = [(f"{subject} is created", count) for subject, count in sorted(lives.items())]
    return [
        f"{text} {count} times within {seconds:g} s, though nothing happens"
        for text, count in (*written, *created)
        if count > WRITES_MAX
    ]


def has_events(writes: Iterable[Revision]) -> bool:
    """Return whether an event is among the writes."""
    return any(write.kind == EVENT for write in writes)


def _uid(write: Revision) -> str:
    found = (write.object or write.previous) if write.is_readable else None
    return "" if found is None else metadata_of(found).uid
