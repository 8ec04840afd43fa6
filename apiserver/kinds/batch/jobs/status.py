"""A Job's status: its valid values, and its valid changes (kube-apiserver 1.36).

Source: pkg/apis/batch/validation ValidateJobStatusUpdate; pkg/registry/batch/job getStatusValidationOptions.
A rule is asked only where one of its fields changes: a status that broke it before can still be written.
"""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.batch.jobs import indexes as job_indexes
from nominee.apiserver.validation import field
from nominee.apiserver.validation.go_dump import dump
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import batch, meta
from nominee.machinery.runtime.clock import rfc3339

_TERMINAL = ("Failed", "Complete", "FailureTarget")
_CONDITIONS = "status.conditions"


def _is(status: batch.JobStatus, condition: str) -> bool:
    return any(each.type == condition and each.status == "True" for each in status.conditions)


def _is_finished(status: batch.JobStatus) -> bool:
    return _is(status, "Complete") or _is(status, "Failed")


def _time(status: batch.JobStatus, name: str) -> meta.Time | None:
    return getattr(status, name) if status.HasField(name) else None


def update(new: batch.Job, old: batch.Job) -> list[Cause]:
    """Check a new status and how it differs from the stored one."""
    return [*_counts(new.status), *_rules(new, old), *_changes(new, old)]


def _counts(status: batch.JobStatus) -> Iterator[Cause]:
    for name in ("active", "succeeded", "failed", "ready", "terminating"):
        yield from field.non_negative(f"status.{name}", getattr(status, name))
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate(getattr(status.uncountedTerminatedPods, name)):
            path = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                yield field.invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield field.duplicate(path, uid)
            seen.add(uid)


def _rules(new: batch.Job, old: batch.Job) -> Iterator[Cause]:
    """In upstream's order."""
    status, before = new.status, old.status

    def turned(*conditions: str) -> bool:
        return any(_is(status, each) != _is(before, each) for each in conditions)

    def changed(*names: str) -> bool:
        return any(
            getattr(status, each) != getattr(before, each) or _has(status, each) != _has(before, each)
            for each in names
        )

    complete, failed = _is(status, "Complete"), _is(status, "Failed")
    target, met = _is(status, "FailureTarget"), _is(status, "SuccessCriteriaMet")
    if turned("Complete", "Failed") and complete and failed:
        yield _conditions("cannot set Complete=True and Failed=true conditions")
    if turned("Complete", "FailureTarget") and complete and target:
        yield _conditions("cannot set Complete=True and FailureTarget=true conditions")
    yield from _completion_time(status, asked=turned("Complete") or changed("completionTime"))
    if changed("startTime", "completionTime") and _ends_before_it_starts(status):
        problem = "completionTime cannot be set before startTime"
        yield field.invalid("status.completionTime", rfc3339(status.completionTime), problem)
    if turned("Failed", "FailureTarget") and failed and not target:
        yield _conditions("cannot set Failed=True condition without the FailureTarget=true condition")
    if turned("Complete", "SuccessCriteriaMet") and complete and not met:
        yield _conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
    finishes = _is_finished(status) != _is_finished(before)
    if _is_finished(status):
        if (finishes or changed("active")) and status.active > 0:
            yield field.invalid("status.active", status.active, "active>0 is invalid for finished job")
        if (finishes or changed("startTime")) and not status.HasField("startTime"):
            yield field.required("status.startTime", "startTime is required for finished job")
        uncounted = status.uncountedTerminatedPods
        if (finishes or changed("uncountedTerminatedPods")) and (uncounted.succeeded or uncounted.failed):
            problem = "uncountedTerminatedPods needs to be empty for finished job"
            yield field.invalid("status.uncountedTerminatedPods", dump(uncounted), problem)
    yield from _indexes(new, completed=changed("completedIndexes"), failed=changed("failedIndexes"))
    if _is_finished(status) and (finishes or changed("terminating")) and status.terminating > 0:
        problem = "terminating>0 is invalid for finished job"
        yield field.invalid("status.terminating", status.terminating, problem)
    if changed("ready", "active") and status.HasField("ready") and status.ready > status.active:
        yield field.invalid("status.ready", status.ready, "cannot set more ready pods than active")
    if met and failed:
        yield _conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if met and target:
        yield _conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if new.spec.HasField("successPolicy") and not met and complete:
        yield _conditions(
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        )


def _has(status: batch.JobStatus, name: str) -> bool:
    return any(given.name == name for given, _ in status.ListFields())


def _conditions(problem: str) -> Cause:
    return field.invalid(_CONDITIONS, field.OMIT, problem)


def _completion_time(status: batch.JobStatus, *, asked: bool) -> Iterator[Cause]:
    if not asked:
        return
    path, complete, set_ = "status.completionTime", _is(status, "Complete"), status.HasField("completionTime")
    if set_ and not complete:
        problem = "cannot set completionTime when there is no Complete=True condition"
        yield field.invalid(path, rfc3339(status.completionTime), problem)
    if complete and not set_:
        yield field.required(path, "completionTime is required for Complete jobs")


def _ends_before_it_starts(status: batch.JobStatus) -> bool:
    start, end = _time(status, "startTime"), _time(status, "completionTime")
    if start is None or end is None:
        return False
    return (end.seconds, end.nanos) < (start.seconds, start.nanos)


def _indexes(job: batch.Job, *, completed: bool, failed: bool) -> Iterator[Cause]:
    spec, status = job.spec, job.status
    limited, listed = spec.HasField("backoffLimitPerIndex"), status.HasField("failedIndexes")
    counted = spec.HasField("completions")
    if completed and counted:
        yield from _format("completedIndexes", status.completedIndexes, spec.completions)
    if failed and counted and limited and listed:
        yield from _format("failedIndexes", status.failedIndexes, spec.completions)
    if completed and status.completedIndexes and spec.completionMode != "Indexed":
        problem = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield field.invalid("status.completedIndexes", status.completedIndexes, problem)
    if failed and listed and not limited:
        problem = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield field.invalid("status.failedIndexes", status.failedIndexes, problem)
    if (completed or failed) and counted and listed:
        index = job_indexes.overlap(status.completedIndexes, status.failedIndexes, spec.completions)
        if index is not None:
            problem = f"failedIndexes and completedIndexes overlap at index: {index}"
            yield field.invalid("status.failedIndexes", status.failedIndexes, problem)


def _format(name: str, text: str, completions: int) -> Iterator[Cause]:
    try:
        job_indexes.count(text, completions)
    except job_indexes.IndexesError as error:
        yield field.invalid(f"status.{name}", text, f"error parsing {name}: {error}")


def _changes(new: batch.Job, old: batch.Job) -> Iterator[Cause]:
    """ValidateJobStatusUpdate, after the status itself."""
    status, before = new.status, old.status
    for condition in _TERMINAL:
        if _is(before, condition) and not _is(status, condition):
            yield _conditions(f"cannot disable the terminal {condition}=True condition")
    if status.failed < before.failed:
        yield field.invalid("status.failed", status.failed, "cannot decrease the failed counter")
    # An Indexed Job whose parallelism and completions are equal may be made smaller.
    elastic = new.spec.completionMode == "Indexed" and new.spec.completions == new.spec.parallelism
    if status.succeeded < before.succeeded and not elastic:
        yield field.invalid("status.succeeded", status.succeeded, "cannot decrease the succeeded counter")
    ended, was = _time(status, "completionTime"), _time(before, "completionTime")
    if ended is not None and was is not None and ended != was:
        yield field.invalid("status.completionTime", rfc3339(ended), "completionTime cannot be mutated")
    started = _time(before, "startTime")
    # A Job that is resumed starts again (kubernetes/kubernetes#134769).
    is_running = not new.spec.suspend and not (_is(before, "Suspended") and not _is(status, "Suspended"))
    if started is not None and _time(status, "startTime") != started and is_running:
        yield field.required("status.startTime", "startTime cannot be removed for unsuspended job")
    met, was_met = _is(status, "SuccessCriteriaMet"), _is(before, "SuccessCriteriaMet")
    if was_met and not met:
        yield _conditions("cannot disable the SuccessCriteriaMet=True condition")
    if _is(before, "Complete") and not was_met and met:
        yield _conditions("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
