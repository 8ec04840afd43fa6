"""A Job counts each of its pods exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.pods import is_terminal
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import JOB, POD
from nominee.machinery.api.objects import condition_is, controller_of, is_terminating
from nominee.machinery.api.pb import batch, core
from nominee.machinery.wire.values import index_ranges

_TRACKING: Final = "batch.kubernetes.io/job-tracking"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"


@dataclass(slots=True)
class _Job:
    """A Job with its newest write, the uids that it has named, and the indexes of pods that succeeded."""

    newest: Revision
    known_uids: set[str] = field(default_factory=set)
    counted_uids: set[str] = field(default_factory=set)
    """Uids that were moved from the status into a counter."""
    succeeded_indexes: set[int] = field(default_factory=set)
    creations: int = 0


class JobCounts(Checker):
    """Follows the uids of pods through each Job's status, and the finalizers of its pods.

    A uid is named in status.uncountedTerminatedPods; when its pod has lost its finalizer it is removed, and a
    counter rises by one. Of an Indexed Job the indexes that succeeded are named instead. Pods that the
    controller deletes itself are not counted: while a Job is suspended, after its spec was changed, and those
    that were created twice since an answer was lost.
    Source: kube-controller-manager 1.36, trackJobStatusAndRemoveFinalizers; KEP-2307.
    """

    about = Invariant(
        name="jobs-count-pods-once",
        description="A Job counts each pod that ended once, and each index that succeeded.",
        checks="writes of Jobs, and finalizers of ended pods that were removed",
        exceptions={
            "deleted-pods": "the Job was suspended, its spec changed, or it got more pods than it needs: its "
            "controller may have deleted a pod that ended at the same time",
        },
    )
    kinds = frozenset({JOB, POD})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._jobs: dict[str, _Job] = {}

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Check a write of a Job, or of a pod."""
        if revision.kind is POD:
            yield from self._observe_pod(revision)
            return
        before, after = revision.before(JOB), revision.after(JOB)
        if before is not None and (after is None or after.metadata.uid != before.metadata.uid):
            self._jobs.pop(before.metadata.uid, None)
            before = None
        if after is None:
            return
        job = self._jobs.get(after.metadata.uid)
        if job is None or before is None:
            job = self._jobs[after.metadata.uid] = _Job(revision)
            job.succeeded_indexes |= index_ranges.parse(after.status.completedIndexes, after.spec.completions)
        else:
            self.checked += 1
            for message in self._problems(job, before, after):
                yield self.violation(f"{revision.subject} {message}", job.newest, revision)
        job.newest = revision
        uncounted = after.status.uncountedTerminatedPods
        job.known_uids |= {*uncounted.succeeded, *uncounted.failed}

    def _problems(self, job: _Job, before: batch.Job, after: batch.Job) -> Iterator[str]:
        old, new = before.status, after.status
        indexed = after.spec.completionMode == "Indexed"
        for name in ("succeeded", "failed"):
            was = list(getattr(old.uncountedTerminatedPods, name))
            now = list(getattr(new.uncountedTerminatedPods, name))
            gone = set(was) - set(now)
            risen = getattr(new, name) - getattr(old, name)
            if len(set(now)) < len(now):
                yield f"names a pod twice in uncountedTerminatedPods.{name}"
            if again := sorted(job.counted_uids & set(now)):
                yield f"names the pod with the uid {again[0]} again, which it has counted"
            if risen != len(gone) and not (indexed and name == "succeeded"):
                yield f"counts {risen} pods more as {name}, and {len(gone)} have left uncountedTerminatedPods"
            job.counted_uids |= gone
        if both := set(new.uncountedTerminatedPods.succeeded) & set(new.uncountedTerminatedPods.failed):
            yield f"counts the pod with the uid {min(both)} as succeeded and as failed"
        if indexed:
            yield from self._index_problems(job, before, after)

    def _index_problems(self, job: _Job, before: batch.Job, after: batch.Job) -> Iterator[str]:
        completions = after.spec.completions
        completed = index_ranges.parse(after.status.completedIndexes, completions)
        if after.status.completedIndexes != before.status.completedIndexes:
            if after.status.succeeded != len(completed):
                yield f"has {after.status.succeeded} successes, and {len(completed)} completed indexes"
            if unknown := sorted(completed - job.succeeded_indexes):
                yield f"has completed the index {unknown[0]}, of which no pod succeeded"
            lost = index_ranges.parse(before.status.completedIndexes, completions) - completed
            if lost:
                yield f"has lost the completed index {min(lost)}"

    def _observe_pod(self, revision: Revision) -> Iterator[Violation]:
        before, after = revision.before(POD), revision.after(POD)
        pod = after if after is not None else before
        owner = controller_of(pod) if pod is not None else None
        job = self._jobs.get(owner.uid) if owner is not None else None
        if job is None or pod is None:
            return
        job.creations += before is None
        if pod.status.phase == "Succeeded" and _TRACKING in pod.metadata.finalizers:
            index = pod.metadata.annotations.get(_INDEX, "")
            job.succeeded_indexes |= {int(index)} if index.isdecimal() else set()
        if before is None or not _is_released(before, after) or not is_terminal(before):
            return
        self.checked += 1
        yield from self._check_release(job, pod, revision)

    def _check_release(self, job: _Job, pod: core.Pod, revision: Revision) -> Iterator[Violation]:
        """Check that an ended pod that is no longer tracked was named in the status."""
        live = job.newest.after(JOB)
        if live is None or is_terminating(live) or _ends(live) or pod.metadata.uid in job.known_uids:
            return
        succeeded = pod.status.phase == "Succeeded"
        if not succeeded and live.spec.HasField("podFailurePolicy"):
            return  # it may ignore the failure
        index, completions = pod.metadata.annotations.get(_INDEX, ""), live.spec.completions
        if live.spec.completionMode == "Indexed":
            if not index.isdecimal() or int(index) >= completions:
                return
            completed = index_ranges.parse(live.status.completedIndexes, completions)
            if succeeded and int(index) in completed:
                return
        if live.spec.suspend or live.metadata.generation > 1 or job.creations > _needed(live):
            self.allow("deleted-pods")
            return
        yield self.violation(
            f"{revision.subject} ended and lost its finalizer, and its Job has not counted it",
            job.newest,
            revision,
        )


def _is_released(before: core.Pod, after: core.Pod | None) -> bool:
    """Report whether the write removed the finalizer."""
    return _TRACKING in before.metadata.finalizers and (
        after is None or _TRACKING not in after.metadata.finalizers
    )


def _needed(job: batch.Job) -> int:
    """Return how many pods the Job has needed: its completions, and another one for each failure."""
    spec, status = job.spec, job.status
    needed = spec.completions if spec.HasField("completions") else spec.parallelism
    return needed + status.failed + len(status.uncountedTerminatedPods.failed)


def _ends(job: batch.Job) -> bool:
    """Report whether the Job is finished, or has succeeded and counts no more pods."""
    ends = ("Complete", "Failed", "SuccessCriteriaMet")
    return any(condition_is(job.status.conditions, end) for end in ends)
