"""The spec of a Job, in Jobs and in the templates of CronJobs (kube-apiserver 1.36, validateJobSpec)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.batch.jobs import policies as job_policies
from nominee.apiserver.validation import field
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.pods import templates
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.apiserver.validation.values import paths
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import batch

COMPLETIONS_SOFT_LIMIT = 100_000
PARALLELISM_SOFT_LIMIT = 10_000
_INDEXED_MAX = 100_000
_FAILED_INDEXES_MAX_OF_MANY = 10_000
_MANAGED_BY_BYTES_MAX = 63
_MODES = ("NonIndexed", "Indexed")
_RESTARTS = ("OnFailure", "Never")
_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip


def job_spec(path: str, spec: batch.JobSpec, options: PodOptions) -> Iterator[Cause]:
    """Check a Job's spec without its selector, which only a Job has."""
    for name in _COUNTS:
        yield from field.non_negative(f"{path}.{name}", getattr(spec, name))
    if spec.HasField("maxFailedIndexes") and not spec.HasField("backoffLimitPerIndex"):
        yield field.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.HasField("managedBy"):
        yield from paths.domain_prefixed(f"{path}.managedBy", spec.managedBy)
        if len(spec.managedBy.encode()) > _MANAGED_BY_BYTES_MAX:
            yield field.too_long(f"{path}.managedBy", _MANAGED_BY_BYTES_MAX)
    yield from _completion_mode(path, spec)
    if spec.HasField("podFailurePolicy"):
        yield from job_policies.failure(f"{path}.podFailurePolicy", spec)
    if spec.HasField("successPolicy"):
        at = f"{path}.successPolicy"
        if spec.completionMode != "Indexed":
            yield field.invalid(at, dump(spec.successPolicy), "requires indexed completion mode")
        elif spec.HasField("completions"):
            yield from job_policies.success(at, spec)
    yield from job_policies.replacement(f"{path}.podReplacementPolicy", spec)
    yield from templates.pod_template(f"{path}.template", spec.template, options)
    yield from _restarts(f"{path}.template.spec.restartPolicy", spec)


def _completion_mode(path: str, spec: batch.JobSpec) -> Iterator[Cause]:
    mode = spec.completionMode if spec.HasField("completionMode") else "NonIndexed"
    yield from field.one_of(f"{path}.completionMode", mode, _MODES)
    if mode == "Indexed":
        yield from _indexed(path, spec)
    if mode == "NonIndexed":
        problem = "requires indexed completion mode"
        if spec.HasField("backoffLimitPerIndex"):
            at = f"{path}.backoffLimitPerIndex"
            yield field.invalid(at, spec.backoffLimitPerIndex, problem)
        if spec.HasField("maxFailedIndexes"):
            yield field.invalid(f"{path}.maxFailedIndexes", spec.maxFailedIndexes, problem)


def _indexed(path: str, spec: batch.JobSpec) -> Iterator[Cause]:
    """Check the limits of an indexed Job, whose status lists the indexes."""
    if not spec.HasField("completions"):
        yield field.required(f"{path}.completions", "when completion mode is Indexed")
    if spec.parallelism > _INDEXED_MAX:
        problem = f"must be less than or equal to {_INDEXED_MAX} when completion mode is Indexed"
        yield field.invalid(f"{path}.parallelism", spec.parallelism, problem)
    at, failed = f"{path}.maxFailedIndexes", spec.maxFailedIndexes
    if spec.HasField("completions") and failed > spec.completions:
        yield field.invalid(at, failed, "must be less than or equal to completions")
    if failed > _INDEXED_MAX:
        yield field.invalid(at, failed, f"must be less than or equal to {_INDEXED_MAX}")
    if spec.completions <= COMPLETIONS_SOFT_LIMIT or not spec.HasField("backoffLimitPerIndex"):
        return
    if not spec.HasField("maxFailedIndexes"):
        yield field.required(at, f"must be specified when completions is above {COMPLETIONS_SOFT_LIMIT}")
    when = f"when completions are above {COMPLETIONS_SOFT_LIMIT} and used with backoff limit per index"
    for name, most in (
        ("parallelism", PARALLELISM_SOFT_LIMIT),
        ("maxFailedIndexes", _FAILED_INDEXES_MAX_OF_MANY),
    ):
        number = getattr(spec, name)
        if number > most:
            yield field.invalid(f"{path}.{name}", number, f"must be less than or equal to {most} {when}")


def _restarts(path: str, spec: batch.JobSpec) -> list[Cause]:
    policy = spec.template.spec.restartPolicy
    if policy in ("", "Always"):
        return [field.required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in _RESTARTS:
        return [field.not_supported(path, policy, _RESTARTS)]
    if spec.HasField("podFailurePolicy") and policy != "Never":
        return [field.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def many_indexes(path: str, spec: batch.JobSpec) -> list[str]:
    """Warn of an Indexed Job whose failed indexes may be too many to list."""
    many = spec.completions > COMPLETIONS_SOFT_LIMIT and spec.parallelism > PARALLELISM_SOFT_LIMIT
    if spec.completionMode != "Indexed" or not many:
        return []
    return [
        f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and parallelism higher than"
        " 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
    ]
