"""One reconciliation of a Job: which pods it creates and deletes, and how it counts those that ended. Pure.

Each pod is counted exactly once, whatever fails in between, since it carries a finalizer until it is counted:
its uid (of an Indexed Job: the index that succeeded) is first written to the status, then the finalizer is
removed, and then the uid moves into the counter.

Source: kube-controller-manager 1.36, pkg/controller/job/job_controller.go (syncJob, what it calls); KEP-2307.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from nominee.controllers.jobs import failure_policy, indexes, success_policy
from nominee.controllers.jobs.backoff import Failures, ended_at, of_index
from nominee.controllers.jobs.conditions import condition, ensure, true_condition
from nominee.controllers.jobs.pods import (
    is_failed,
    is_indexed,
    is_tracked,
    new_pod,
    replaces_failed_only,
    surplus,
)
from nominee.controllers.owned_pods.readiness import is_active, is_ready
from nominee.controllers.planned_events import PlannedEvent
from nominee.machinery.api.objects import copy_of, get_condition, has_ended, is_terminating
from nominee.machinery.api.pb import batch, core
from nominee.machinery.runtime.clock import from_time, to_time
from nominee.machinery.wire.values import index_ranges

BATCH_SECONDS: Final = 1.0
"""How long to collect events of pods, and the shortest wait for a back-off to end."""
BURST_MAX: Final = 500
"""Pods created or deleted in one reconciliation, and uids in status.uncountedTerminatedPods."""


@dataclass(frozen=True, slots=True)
class Work:
    """Pods to create or to delete; `final`: the Job ends, and counts the deleted ones as failed.

    `action` is for the metrics of reconciliations.
    """

    create: Sequence[core.Pod] = ()
    delete: Sequence[core.Pod] = ()
    final: bool = False
    action: str = "reconciling"


class JobSync:
    """One reconciliation; call `work`, `note_work`, `count`, `note_release` and `finish` in this order.

    After `count` and `finish` the shell writes `job.status`, if that changed; between the two it removes
    finalizers. `satisfied`: the watch has shown all creations and deletions.
    """

    def __init__(
        self,
        job: batch.Job,
        pods: Sequence[core.Pod],
        failures: Failures,
        *,
        now: float,
        satisfied: bool,
        clears_start_time: bool = True,
    ) -> None:
        self.job = copy_of(job)
        self.now = now
        self.again: float | None = None
        self.events: list[PlannedEvent] = []
        self.policy_actions: list[str] = []
        """The actions of the podFailurePolicy for pods that `count` found to have failed."""
        self._satisfied = satisfied
        self._clears_start_time = clears_start_time
        self._all_released = True
        self._pods = list(pods)
        self._tracked = [pod for pod in pods if is_tracked(pod)]
        self._active = [pod for pod in pods if is_active(pod)]
        status, spec = self.job.status, self.job.spec
        status.uncountedTerminatedPods.SetInParent()
        self._counted = {*status.uncountedTerminatedPods.succeeded, *status.uncountedTerminatedPods.failed}
        self._failed_before = set(status.uncountedTerminatedPods.failed)
        self.active, self.ready = len(self._active), sum(map(is_ready, self._active))
        self.terminating = sum(is_terminating(pod) and not has_ended(pod) for pod in pods)
        if not status.HasField("startTime") and not spec.suspend:
            status.startTime.CopyFrom(to_time(now))
        succeeded, failed = self._newly_ended()
        self.failures = failures.with_ended(succeeded, failed)
        uncounted = status.uncountedTerminatedPods
        self._succeeded = status.succeeded + len(uncounted.succeeded) + len(succeeded)
        counted_failures = sum(failure_policy.match(job, pod).counts for pod in failed)
        self._failed = status.failed + len(uncounted.failed) + counted_failures
        self._finish = self._earlier_finish() or self._failure()
        self._indexes()

    # --- what is known before anything is done ---

    def _newly_ended(self) -> tuple[list[core.Pod], list[core.Pod]]:
        """Return the pods that succeeded and failed, and of which the status does not know."""
        job = self.job
        valid = [pod for pod in self._tracked if pod.metadata.uid not in self._counted]
        if is_indexed(job):
            valid = [pod for pod in valid if indexes.valid_index(job, pod) is not None]
        succeeded = [pod for pod in valid if pod.status.phase == "Succeeded"]
        return succeeded, [pod for pod in valid if is_failed(job, pod)]

    def _earlier_finish(self) -> batch.JobCondition | None:
        """Return the condition with which an earlier reconciliation found the Job to succeed or to fail."""
        met = true_condition(self.job, "SuccessCriteriaMet")
        if met is not None:
            return copy_of(met)
        target = true_condition(self.job, "FailureTarget")
        return None if target is None else condition("Failed", target.reason, target.message, self.now)

    def _failure(self) -> batch.JobCondition | None:
        """Return why the Job fails, by its pods and by time."""
        job, spec = self.job, self.job.spec
        failed = [pod for pod in self._pods if is_failed(job, pod)]
        if message := failure_policy.fail_message(job, failed):
            return self._target("PodFailurePolicy", message)
        if self._failed > spec.backoffLimit or self._restarted_too_often():
            return self._target("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        if spec.HasField("activeDeadlineSeconds") and not spec.suspend:
            left = from_time(job.status.startTime) + spec.activeDeadlineSeconds - self.now
            if left <= 0:
                return self._target("DeadlineExceeded", "Job was active longer than specified deadline")
            self._again_after(left)
        return None

    def _target(self, reason: str, message: str) -> batch.JobCondition:
        return condition("FailureTarget", reason, message, self.now)

    def _restarted_too_often(self) -> bool:
        """Report whether the containers were restarted as often as backoffLimit (restartPolicy OnFailure)."""
        spec = self.job.spec
        if spec.template.spec.restartPolicy != "OnFailure":
            return False
        restarts = sum(
            each.restartCount
            for pod in self._pods
            if pod.status.phase in ("Running", "Pending")
            for each in (*pod.status.initContainerStatuses, *pod.status.containerStatuses)
        )
        return restarts > 0 if spec.backoffLimit == 0 else restarts >= spec.backoffLimit

    def _indexes(self) -> None:
        """Find the indexes that succeeded and failed, by which the Job may end."""
        job, spec = self.job, self.job.spec
        self._per_index = is_indexed(job) and spec.HasField("backoffLimitPerIndex")
        self._completed: set[int] = set()
        self._failed_indexes: set[int] = set()
        self._replaced: dict[int, core.Pod] = {}
        if not is_indexed(job):
            return
        self._completed_before = index_ranges.parse(job.status.completedIndexes, spec.completions)
        ended = [pod for pod in self._tracked if pod.status.phase == "Succeeded"]
        new = {index for pod in ended if (index := indexes.valid_index(job, pod)) is not None}
        self._completed = self._completed_before | new
        self._succeeded = len(self._completed)
        if self._per_index:
            self._failed_indexes = index_ranges.parse(job.status.failedIndexes, spec.completions)
            self._failed_indexes |= {
                index
                for pod in self._tracked
                if self._index_fails(pod) and (index := indexes.valid_index(job, pod)) is not None
            }
            self._finish = self._finish or self._too_many_failed_indexes()
            self._replaced = self._pods_to_replace()
        if self._finish is None and (message := success_policy.matching_rule(job, self._completed)):
            self._finish = condition("SuccessCriteriaMet", "SuccessPolicy", message, self.now)

    def _index_fails(self, pod: core.Pod) -> bool:
        if not is_failed(self.job, pod):
            return False
        found = failure_policy.match(self.job, pod)
        if found.action == "FailIndex":
            return True
        return found.counts and indexes.counted_failures(pod) >= self.job.spec.backoffLimitPerIndex

    def _too_many_failed_indexes(self) -> batch.JobCondition | None:
        spec, failed = self.job.spec, len(self._failed_indexes)
        if spec.HasField("maxFailedIndexes") and failed > spec.maxFailedIndexes:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return self._target("MaxFailedIndexesExceeded", message)
        if failed and failed + len(self._completed) >= spec.completions:
            return self._target("FailedIndexes", "Job has failed indexes")
        return None

    def _pods_to_replace(self) -> dict[int, core.Pod]:
        """Return the last failed pod of each index that gets another: it stays until that has its count."""
        job = self.job
        settled = self._completed | self._failed_indexes | indexes.of_pods(self._active)
        last: dict[int, core.Pod] = {}
        for pod in self._tracked:
            index = indexes.valid_index(job, pod)
            if index is None or index in settled or not is_failed(job, pod):
                continue
            old = last.get(index)
            if old is None or (
                indexes.all_failures(old) <= indexes.all_failures(pod) and ended_at(pod) >= ended_at(old)
            ):
                last[index] = pod
        return last

    # --- pods to create and to delete ---

    def work(self) -> Work:
        """Return the pods to create or delete."""
        job, spec = self.job, self.job.spec
        if self._finish is not None:
            return Work(delete=self._active, final=True)
        if not self._manages():
            return Work()
        if spec.suspend:
            return Work(delete=surplus(job, self._active, self.active), action="pods_deleted")
        wanted = self._wanted()
        gone = surplus(job, self._active, max(self.active - wanted, 0))
        if gone:
            return Work(delete=gone[:BURST_MAX], action="pods_deleted")
        missing = wanted - self.active - (self.terminating if replaces_failed_only(job) else 0)
        created = self._new_pods(min(missing, BURST_MAX)) if missing > 0 else []
        return Work(create=created, action="pods_created" if created else "tracking")

    def _manages(self) -> bool:
        return self._satisfied and not is_terminating(self.job)

    def _wanted(self) -> int:
        """Return how many pods should be active."""
        spec = self.job.spec
        if not spec.HasField("completions"):
            return self.active if self._succeeded else spec.parallelism
        return max(min(spec.completions - self._succeeded, spec.parallelism), 0)

    def _new_pods(self, count: int) -> list[core.Pod]:
        """Return the pods that may be created by now, after the back-off."""
        job = self.job
        if not self._per_index and (wait := self.failures.remaining_seconds(self.now)) > 0:
            self._again_after(max(wait, BATCH_SECONDS))
            return []
        if not is_indexed(job):
            return [new_pod(job) for _ in range(count)]
        taken = self._completed | self._failed_indexes | indexes.of_pods(self._active)
        if replaces_failed_only(job):
            taken |= indexes.of_pods(pod for pod in self._pods if is_terminating(pod) and not has_ended(pod))
        free = indexes.first_free(job.spec.completions, taken, count)
        waits = {index: of_index(self._replaced.get(index)).remaining_seconds(self.now) for index in free}
        now = [index for index in free if waits[index] <= 0]
        if len(now) < len(free):
            self._again_after(max(min(wait for wait in waits.values() if wait > 0), BATCH_SECONDS))
        return [new_pod(job, index, self._replaced.get(index)) for index in now]

    def _again_after(self, seconds: float) -> None:
        self.again = seconds if self.again is None else min(seconds, self.again)

    def note_work(self, created: int, deleted: Sequence[core.Pod]) -> None:
        """Take note of the pods that were created and deleted."""
        status = self.job.status
        self.active += created - len(deleted)
        self.terminating += len(deleted)
        self.ready -= sum(map(is_ready, deleted))
        if self._finish is not None:
            if self.active > 0 or not self._satisfied:
                self._finish = None  # there may be pods that the watch has not shown
        elif self._is_complete():
            message = "Reached expected number of succeeded pods"
            self._finish = condition("SuccessCriteriaMet", "CompletionsReached", message, self.now)
        elif self._manages():
            self._note_suspension()
        status.active, status.ready, status.terminating = self.active, self.ready, self.terminating

    def _is_complete(self) -> bool:
        """Report whether so many pods succeeded; without spec.completions one is enough."""
        spec = self.job.spec
        return self.active == 0 and self._succeeded >= (
            spec.completions if spec.HasField("completions") else 1
        )

    def _note_suspension(self) -> None:
        status = self.job.status
        if self.job.spec.suspend:
            if ensure(status, condition("Suspended", "JobSuspended", "Job suspended", self.now)):
                self.events.append(PlannedEvent("Suspended", "Job suspended"))
            if self._clears_start_time:
                status.ClearField("startTime")
            return
        if ensure(status, condition("Suspended", "JobResumed", "Job resumed", self.now, status="False")):
            self.events.append(PlannedEvent("Resumed", "Job resumed"))
            status.startTime.CopyFrom(to_time(self.now))

    # --- counting ---

    def count(self) -> list[core.Pod]:
        """Enter ended pods into the status, and return those of which the finalizer may be removed then."""
        job, status = self.job, self.job.status
        uncounted = status.uncountedTerminatedPods
        self._move_to_counters({pod.metadata.uid for pod in self._tracked})
        release: list[core.Pod] = []
        new: list[int] = []
        for pod in sorted(self._tracked, key=lambda pod: indexes.index_of(pod) or 0):
            failed = is_failed(job, pod)
            if not self._may_release(pod, failed=failed):
                continue
            release.append(pod)
            uid = pod.metadata.uid
            if pod.status.phase == "Succeeded" and uid not in self._failed_before:
                if is_indexed(job):
                    index = indexes.valid_index(job, pod)
                    if index is not None and index not in self._completed_before:
                        new.append(index)
                elif uid not in self._counted:
                    uncounted.succeeded.append(uid)
            elif (failed or self._fails()) and self._counts_as_failed(pod):
                uncounted.failed.append(uid)
            if len(new) + len(uncounted.succeeded) + len(uncounted.failed) >= BURST_MAX:
                self._all_released = False
                break
        if is_indexed(job):
            status.succeeded = len(self._completed)
            status.completedIndexes = index_ranges.to_text(self._completed)
            if self._per_index:
                status.failedIndexes = index_ranges.to_text(self._failed_indexes)
            else:
                status.ClearField("failedIndexes")
        self._note_finish()
        return release

    def _fails(self) -> bool:
        """Report whether the Job fails, so that each pod that has not ended counts as failed."""
        return self._finish is not None and self._finish.type != "SuccessCriteriaMet"

    def _may_release(self, pod: core.Pod, *, failed: bool) -> bool:
        if is_terminating(self.job) or self._finish is not None or pod.status.phase == "Succeeded":
            return True
        index = indexes.index_of(pod) if self._per_index else None
        replaced = self._replaced.get(index) if index is not None else None
        return failed and (replaced is None or replaced.metadata.uid != pod.metadata.uid)

    def _counts_as_failed(self, pod: core.Pod) -> bool:
        if pod.metadata.uid in self._failed_before:
            return False
        if is_indexed(self.job) and indexes.valid_index(self.job, pod) is None:
            return False
        found = failure_policy.match(self.job, pod)
        if found.action:
            self.policy_actions.append(found.action)
        return found.counts

    def _note_finish(self) -> None:
        """Set the condition that announces the end; the one that follows it is set by `finish`."""
        status, announced = self.job.status, self._finish
        if announced is None or announced.type == "Failed":
            return
        if get_condition(status.conditions, announced.type) is None:
            status.conditions.append(announced)
        end = "Complete" if announced.type == "SuccessCriteriaMet" else "Failed"
        self._finish = condition(end, announced.reason, announced.message, self.now)

    def _move_to_counters(self, tracked: Collection[str]) -> None:
        """Count the uids of pods that have no finalizer any more."""
        status = self.job.status
        uncounted = status.uncountedTerminatedPods
        for uids, name in ((uncounted.succeeded, "succeeded"), (uncounted.failed, "failed")):
            left = [uid for uid in uids if uid in tracked]
            if len(left) < len(uids):
                setattr(status, name, getattr(status, name) + len(uids) - len(left))
                del uids[:]
                uids.extend(left)

    def note_release(self, written: batch.Job, removed: Collection[str]) -> None:
        """Continue with the Job as written, after the finalizers of these pods (uids) were removed."""
        self.job = copy_of(written)
        self.job.status.uncountedTerminatedPods.SetInParent()
        self._move_to_counters({pod.metadata.uid for pod in self._tracked} - set(removed))

    def finish(self) -> None:
        """Set the condition Complete or Failed, when all pods are counted and none terminates."""
        status, end = self.job.status, self._finish
        uncounted = status.uncountedTerminatedPods
        if (
            end is None
            or not self._all_released
            or uncounted.succeeded
            or uncounted.failed
            or self.terminating
        ):
            return
        ensure(status, end)
        if not status.HasField("startTime"):
            status.startTime.CopyFrom(to_time(self.now))  # a suspended Job has none, a finished one must
        if end.type == "Failed":
            self.events.append(PlannedEvent(end.reason, end.message, "Warning"))
            return
        status.completionTime.CopyFrom(end.lastTransitionTime)
        if self.job.spec.HasField("completions") and status.succeeded > self.job.spec.completions:
            note = "Too many succeeded pods running after completion count reached"
            self.events.append(PlannedEvent("TooManySucceededPods", note, "Warning"))
        self.events.append(PlannedEvent("Completed", "Job completed"))
