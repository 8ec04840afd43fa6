"""Completion indexes of an Indexed Job and of its pods. Pure.

Source: kube-controller-manager 1.36, pkg/controller/job/indexed_job_utils.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final

from nominee.machinery.api.pb import batch, core
from nominee.machinery.api.selectors import parse_int64

INDEX: Final = "batch.kubernetes.io/job-completion-index"
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
_INT32_MAX: Final = 2**31 - 1


def index_of(pod: core.Pod) -> int | None:
    """Return a pod's completion index, or None."""
    index = parse_int64(pod.metadata.annotations.get(INDEX, ""))
    return index if index is not None and index >= 0 else None


def valid_index(job: batch.Job, pod: core.Pod) -> int | None:
    """Return a pod's completion index, or None if it has none below spec.completions."""
    index = index_of(pod)
    return index if index is not None and index < job.spec.completions else None


def of_pods(pods: Iterable[core.Pod]) -> set[int]:
    """Return the completion indexes of these pods."""
    return {index for pod in pods if (index := index_of(pod)) is not None}


def counted_failures(pod: core.Pod) -> int:
    """Return how often the pod's index had failed when it was created, without ignored failures."""
    return _number(pod, FAILURES)


def all_failures(pod: core.Pod) -> int:
    """Return how often the pod's index had failed when it was created, with ignored failures."""
    return _number(pod, FAILURES) + _number(pod, IGNORED_FAILURES)


def first_free(completions: int, taken: Collection[int], count: int) -> list[int]:
    """Return the first `count` indexes that are not taken."""
    return list(islice((index for index in range(completions) if index not in taken), count))


def _number(pod: core.Pod, annotation: str) -> int:
    number = parse_int64(pod.metadata.annotations.get(annotation, "")) or 0
    return number if 0 <= number <= _INT32_MAX else 0
