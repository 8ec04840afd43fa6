"""A Job counts each pod once."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.workloads.job_counts import JobCounts
from nominee.machinery.api.pb import batch, core
from tests.lab.invariants.histories import History, pod, result_of, violations_of

TRACKING = "batch.kubernetes.io/job-tracking"


def job(
    *,
    succeeded: int = 0,
    failed: int = 0,
    ended: str = "",
    lost: str = "",
    completed: str | None = None,
    completions: int = 3,
    suspend: bool = False,
    generation: int = 1,
    finished: bool = False,
) -> batch.Job:
    """Return a Job that names pods, `ended` as succeeded, `lost` as failed; with `completed` Indexed."""
    found = batch.Job()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "work", "default", "uid-work"
    found.metadata.generation = generation
    found.spec.completions, found.spec.suspend = completions, suspend
    found.spec.completionMode = "NonIndexed" if completed is None else "Indexed"
    found.status.succeeded, found.status.failed = succeeded, failed
    found.status.completedIndexes = completed or ""
    found.status.uncountedTerminatedPods.succeeded.extend(f"uid-{name}" for name in ended.split())
    found.status.uncountedTerminatedPods.failed.extend(f"uid-{name}" for name in lost.split())
    if finished:
        found.status.conditions.add(type="Complete", status="True")
    return found


def owned(name: str, phase: str = "Running", *, tracked: bool = True, index: int | None = None) -> core.Pod:
    """Return a pod of the Job."""
    found = pod(name, phase=phase, finalizers=[TRACKING] if tracked else [])
    found.metadata.ownerReferences.add(
        apiVersion="batch/v1", kind="Job", name="work", uid="uid-work", controller=True
    )
    if index is not None:
        found.metadata.annotations["batch.kubernetes.io/job-completion-index"] = str(index)
    return found


def ended(name: str, index: int | None = None) -> core.Pod:
    return owned(name, "Succeeded", index=index)


def released(name: str, index: int | None = None) -> core.Pod:
    return owned(name, "Succeeded", tracked=False, index=index)


INDEXED = job(completed="")


@pytest.mark.parametrize(
    "history",
    [
        History().put(job(), ended("a"), job(ended="a"), released("a"), job(succeeded=1)),
        History().put(job(), ended("a"), job(ended="a", lost="b"), released("a"), job(succeeded=1, lost="b"))
        .put(job(succeeded=1, failed=1)),
        History().put(INDEXED, ended("a", 1), job(completed="1", succeeded=1), released("a", 1)),
        History().put(INDEXED, ended("a", 1), ended("b", 1), job(completed="1", succeeded=1))
        .put(released("a", 1), released("b", 1)),
        # It is made smaller.
        History().put(INDEXED, ended("a", 2), job(completed="2", succeeded=1))
        .put(job(completed="", completions=2, generation=2)),
        # It was deleted, and succeeds nevertheless: it has failed.
        History().put(INDEXED, job(completed="", lost="a"), ended("a", 1), released("a", 1)),
        # Its history is not known from the beginning.
        History().put(job(completed="0,1", succeeded=2), ended("a", 2), job(completed="0-2", succeeded=3)),
        History().put(job(finished=True), ended("a"), released("a")),
        History().put(ended("a"), released("a")),
        # A pod that is deleted with its finalizer removed.
        History().put(job(), ended("a"), job(ended="a")).delete(ended("a")).put(job(succeeded=1)),
    ],
)  # fmt: skip
def test_histories_of_jobs_that_count_once(history: History) -> None:
    assert violations_of(JobCounts, history) == []


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (History().put(job(), job(ended="a"), job(succeeded=2)),
         "counts 2 pods more as succeeded, and 1 have left"),
        (History().put(job(), job(lost="a"), job()), "counts 0 pods more as failed, and 1 have left"),
        (History().put(job(), job(ended="a"), job(succeeded=1), job(succeeded=1, ended="a")),
         "names the pod with the uid uid-a again, which it has counted"),
        (History().put(job(), job(ended="a a")), "names a pod twice"),
        (History().put(job(), job(ended="a", lost="a")), "as succeeded and as failed"),
        (History().put(job(failed=1), job()), "counts -1 pods more as failed"),
        (History().put(job(), ended("a"), released("a")), "and its Job has not counted it"),
        (History().put(job(), ended("a")).delete(ended("a")), "and its Job has not counted it"),
        (History().put(job(), owned("a", "Failed"), owned("a", "Failed", tracked=False)),
         "and its Job has not counted it"),
        (History().put(INDEXED, ended("a", 1), released("a", 1)), "and its Job has not counted it"),
        (History().put(INDEXED, ended("a", 1), job(completed="1", succeeded=2)),
         "has 2 successes, and 1 completed indexes"),
        (History().put(INDEXED, ended("a", 1), job(completed="0,1", succeeded=2)),
         "has completed the index 0, of which no pod succeeded"),
        (History().put(job(completed="0,1", succeeded=2), job(completed="1", succeeded=1)),
         "has lost the completed index 0"),
    ],
)  # fmt: skip
def test_histories_of_jobs_that_do_not(history: History, message: str) -> None:
    assert any(message in each.message for each in violations_of(JobCounts, history))


def test_a_pod_that_a_suspended_job_deletes_may_succeed_at_the_same_time() -> None:
    for of in (job(suspend=True), job(generation=2), job(completions=0)):
        history = History().put(of, ended("a"), released("a"))
        assert violations_of(JobCounts, history) == []
        assert result_of(JobCounts, history).exceptions == {"deleted-pods": 1}
