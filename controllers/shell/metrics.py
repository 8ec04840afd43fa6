"""The controllers' metrics under upstream's names, with their stability in the help text.

Source: kube-controller-manager 1.36; component-base, metrics/prometheus/workqueue; the `metrics` packages of
pkg/controller/job and pkg/controller/cronjob; pkg/controller/podautoscaler/monitor.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeVar

from prometheus_client import Counter, Gauge, Histogram

from nominee.machinery.runtime.clock import Clock
from nominee.machinery.runtime.queues.work_queue import WorkQueue

K = TypeVar("K", bound=Hashable)
_QUEUES: Final = {
    "endpoints-controller": "endpoint",
    "endpointslice-controller": "endpoint_slice",
    "endpointslice-mirroring-controller": "endpoint_slice_mirroring",
    "horizontal-pod-autoscaler-controller": "horizontalpodautoscaler",
    "job-controller-orphaned-pods": "job_orphan_pod",
    "pv-protection": "pvprotection",
    "pvc-protection": "pvcprotection",
    "replicationcontroller-controller": "replicationmanager",
    "resourceclaim-controller": "resource_claim",
    "resourcequota-controller": "resourcequota_primary",
    "root-ca-certificate-publisher-controller": "root_ca_cert_publisher",
    "ttl-after-finished-controller": "ttl_jobs_to_delete",
}
"""Queues that are not named as their controllers."""
_SECONDS: Final = [1e-6 * 10**power for power in range(10)]
_DOUBLING: Final = [0.001 * 2**power for power in range(15)]

DEPTH = Gauge("workqueue_depth", "[BETA] Current depth of workqueue", ["name"])
ADDS = Counter("workqueue_adds", "[BETA] Total number of adds handled by workqueue", ["name"])
RETRIES = Counter("workqueue_retries", "[BETA] Total number of retries handled by workqueue", ["name"])
WAITED = Histogram(
    "workqueue_queue_duration_seconds",
    "[BETA] How long in seconds an item stays in workqueue before being requested.",
    ["name"],
    buckets=_SECONDS,
)
WORKED = Histogram(
    "workqueue_work_duration_seconds",
    "[BETA] How long in seconds processing an item from workqueue takes.",
    ["name"],
    buckets=_SECONDS,
)
UNFINISHED = Gauge(
    "workqueue_unfinished_work_seconds", "[BETA] How many seconds of work is in progress.", ["name"]
)
LONGEST = Gauge(
    "workqueue_longest_running_processor_seconds",
    "[BETA] How many seconds has the longest running processor for workqueue been running.",
    ["name"],
)

JOB_SYNCS = Counter(
    "job_controller_job_syncs",
    "[STABLE] The number of job syncs",
    ["completion_mode", "result", "action"],
)
JOB_SYNC_SECONDS = Histogram(
    "job_controller_job_sync_duration_seconds",
    "[STABLE] The time it took to sync a job",
    ["completion_mode", "result", "action"],
    buckets=[0.004 * 2**power for power in range(15)],
)
FINISHED_JOBS = Counter(
    "job_controller_jobs_finished",
    "[STABLE] The number of finished jobs",
    ["completion_mode", "result", "reason"],
)
FINISHED_PODS = Counter(
    "job_controller_job_pods_finished",
    "[STABLE] The number of finished Pods that are fully tracked",
    ["completion_mode", "result"],
)
POLICY_FAILURES = Counter(
    "job_controller_pod_failures_handled_by_failure_policy",
    "[BETA] The number of failed Pods handled by failure policy, by the action of the matched rule",
    ["action"],
)
TRACKED_PODS = Counter(
    "job_controller_terminated_pods_tracking_finalizer",
    "[BETA] The number of terminated pods that get and lose the finalizer batch.kubernetes.io/job-tracking",
    ["event"],
)
OTHERS_JOBS = Counter(
    "job_controller_jobs_by_external_controller",
    "[ALPHA] The number of Jobs managed by an external controller",
    ["controller_name"],
)
CREATION_SKEW = Histogram(
    "cronjob_controller_job_creation_skew_duration_seconds",
    "[STABLE] Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
    buckets=[2**power for power in range(10)],
)

RECONCILIATIONS = Counter(
    "horizontal_pod_autoscaler_controller_reconciliations",
    "[ALPHA] Number of reconciliations of HPA controller",
    ["action", "error"],
)
RECONCILIATION_SECONDS = Histogram(
    "horizontal_pod_autoscaler_controller_reconciliation_duration_seconds",
    "[ALPHA] The time(seconds) that the HPA controller takes to reconcile once",
    ["action", "error"],
    buckets=_DOUBLING,
)
COMPUTATIONS = Counter(
    "horizontal_pod_autoscaler_controller_metric_computation",
    "[ALPHA] Number of metric computations",
    ["action", "error", "metric_type"],
)


class MeasuredQueue(WorkQueue[K]):
    """The queue of a controller. Times are measured with its clock."""

    def __init__(self, clock: Clock, controller: str) -> None:
        super().__init__(clock)
        name = _QUEUES.get(controller, controller.removesuffix("-controller").replace("-", "_"))
        self._adds, self._retries = ADDS.labels(name), RETRIES.labels(name)
        self._waited, self._worked = WAITED.labels(name), WORKED.labels(name)
        self._added_at: dict[K, float] = {}
        self._begun_at: dict[K, float] = {}
        DEPTH.labels(name).set_function(lambda: len(self))
        UNFINISHED.labels(name).set_function(lambda: sum(self._running()))
        LONGEST.labels(name).set_function(lambda: max(self._running(), default=0.0))

    def _running(self) -> list[float]:
        now = self._clock.monotonic()
        return [now - begun for begun in self._begun_at.values()]

    def add(self, key: K) -> None:
        if key not in self._dirty:
            self._adds.inc()
            self._added_at.setdefault(key, self._clock.monotonic())
        super().add(key)

    def add_after(self, key: K, seconds: float) -> None:
        self._retries.inc()
        super().add_after(key, seconds)

    def get_nowait(self) -> K | None:
        key = super().get_nowait()
        if key is not None:
            now = self._begun_at[key] = self._clock.monotonic()
            self._waited.observe(now - self._added_at.pop(key, now))
        return key

    def done(self, key: K) -> None:
        now = self._clock.monotonic()
        self._worked.observe(now - self._begun_at.pop(key, now))
        super().done(key)


def action_label(before: int, after: int) -> str:
    """Return the label `action` of a change of replicas."""
    if before == after:
        return "none"
    return "scale_up" if after > before else "scale_down"
