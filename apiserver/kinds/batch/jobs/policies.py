"""The policies that end a Job: podFailurePolicy, successPolicy, podReplacementPolicy (kube-apiserver 1.36).

Source: pkg/apis/batch/validation, validatePodFailurePolicy and validateSuccessPolicy.
"""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.batch.jobs import indexes as job_indexes
from nominee.apiserver.validation import field, names
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.names import go_quote
from nominee.machinery.api.pb import batch

_RULES_MAX = 20
_EXIT_CODES_MAX = 255
_PATTERNS_MAX = 20
_INDEXES_BYTES_MAX = 64 * 1024
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")


def replacement(path: str, spec: batch.JobSpec) -> list[Cause]:
    """Check podReplacementPolicy, which depends on podFailurePolicy."""
    if not spec.HasField("podReplacementPolicy"):
        return []
    known = ("Failed",) if spec.HasField("podFailurePolicy") else _REPLACEMENTS
    value = spec.podReplacementPolicy
    return field.one_of(path, value, known)


def failure(path: str, spec: batch.JobSpec) -> Iterator[Cause]:
    """Check podFailurePolicy."""
    rules, at = spec.podFailurePolicy.rules, f"{path}.rules"
    if len(rules) > _RULES_MAX:
        yield field.too_many(at, len(rules), _RULES_MAX)
    for index, rule in enumerate(rules):
        yield from _rule(f"{at}[{index}]", rule, spec)


def _missing(path: str, value: str, known: tuple[str, ...]) -> list[Cause]:
    if not value:
        listed = " ".join(go_quote(each) for each in known)
        return [field.required(path, f"valid values: [{listed}]")]
    return field.one_of(path, value, known)


def _rule(path: str, rule: batch.PodFailurePolicyRule, spec: batch.JobSpec) -> Iterator[Cause]:
    if rule.action == "FailIndex":
        if not spec.HasField("backoffLimitPerIndex"):
            yield field.invalid(f"{path}.action", rule.action, "requires the backoffLimitPerIndex to be set")
    else:
        yield from _missing(f"{path}.action", rule.action, _ACTIONS)
    codes, patterns = rule.HasField("onExitCodes"), bool(rule.onPodConditions)
    if codes:
        yield from _exit_codes(f"{path}.onExitCodes", rule.onExitCodes, spec)
    if patterns:
        yield from _conditions(f"{path}.onPodConditions", rule)
    if codes and patterns:
        problem = "specifying both OnExitCodes and OnPodConditions is not supported"
        yield field.invalid(path, field.OMIT, problem)
    if not codes and not patterns:
        yield field.invalid(path, field.OMIT, "specifying one of OnExitCodes and OnPodConditions is required")


def _conditions(path: str, rule: batch.PodFailurePolicyRule) -> Iterator[Cause]:
    patterns = rule.onPodConditions
    if len(patterns) > _PATTERNS_MAX:
        yield field.too_many(path, len(patterns), _PATTERNS_MAX)
    for index, pattern in enumerate(patterns):
        at = f"{path}[{index}]"
        problems = names.qualified_name(pattern.type)
        yield from field.problems(f"{at}.type", pattern.type, problems)
        yield from _missing(f"{at}.status", pattern.status, _STATUSES)


def _exit_codes(
    path: str, found: batch.PodFailurePolicyOnExitCodesRequirement, spec: batch.JobSpec
) -> Iterator[Cause]:
    yield from _missing(f"{path}.operator", found.operator, _OPERATORS)
    pod = spec.template.spec
    known = {container.name for container in (*pod.containers, *pod.initContainers)}
    if found.HasField("containerName") and found.containerName not in known:
        problem = "must be one of the container or initContainer names in the pod template"
        yield field.invalid(f"{path}.containerName", found.containerName, problem)
    at, values = f"{path}.values", list(found.values)
    if not values:
        yield field.invalid(at, None, "at least one value is required")
    elif len(values) > _EXIT_CODES_MAX:
        yield field.too_many(at, len(values), _EXIT_CODES_MAX)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if found.operator == "In" and value == 0:
            yield field.invalid(f"{at}[{index}]", value, "must not be 0 for the In operator")
        yield from field.unique(f"{at}[{index}]", value, seen)
    if values != sorted(values):
        yield field.invalid(at, values, "must be ordered")


def success(path: str, spec: batch.JobSpec) -> Iterator[Cause]:
    """Check the successPolicy of an Indexed Job."""
    rules, at = spec.successPolicy.rules, f"{path}.rules"
    if not rules:
        yield field.required(at, "at least one rules must be specified when the successPolicy is specified")
    if len(rules) > _RULES_MAX:
        yield field.too_many(at, len(rules), _RULES_MAX)
    for index, rule in enumerate(rules):
        yield from _success_rule(f"{at}[{index}]", rule, spec.completions)


def _success_rule(path: str, rule: batch.SuccessPolicyRule, completions: int) -> Iterator[Cause]:
    counted, listed = rule.HasField("succeededCount"), rule.HasField("succeededIndexes")
    if not counted and not listed:
        yield field.required(path, "at least one of succeededCount or succeededIndexes must be specified")
    total = 0
    if listed:
        at, text = f"{path}.succeededIndexes", rule.succeededIndexes
        if len(text.encode()) > _INDEXES_BYTES_MAX:
            yield field.too_long(at, _INDEXES_BYTES_MAX)
        try:
            total = job_indexes.count(text, completions)
        except job_indexes.IndexesError as error:
            yield field.invalid(at, text, f"error parsing succeededIndexes: {error}")
    if counted:
        at, number = f"{path}.succeededCount", rule.succeededCount
        yield from field.non_negative(at, number)
        if number > completions:
            problem = f"must be less than or equal to {completions} (the number of specified completions)"
            yield field.invalid(at, number, problem)
        if listed and number > total:
            of = "the number of indexes in the specified succeededIndexes field"
            yield field.invalid(at, number, f"must be less than or equal to {total} ({of})")
