"""Conditions of the common type in a status (apimachinery/pkg/apis/meta/v1/validation 1.36)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nominee.apiserver.validation import field, names
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.names import regex_problem
from nominee.machinery.api.pb import meta

_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_reason = re.compile(_REASON, re.ASCII)
_REASON_PROBLEM = regex_problem(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric"
    " characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)
_REASON_BYTES_MAX = 1024
_MESSAGE_BYTES_MAX = 32 * 1024
_STATUSES = ("False", "True", "Unknown")


def conditions(path: str, found: Iterable[meta.Condition]) -> Iterator[Cause]:
    """Check the conditions of a status: types, reasons, messages, each type once (ValidateConditions)."""
    seen: set[str] = set()
    for index, condition in enumerate(found):
        at = f"{path}[{index}]"
        yield from field.unique(f"{at}.type", condition.type, seen)
        yield from _condition(at, condition)


def _condition(path: str, condition: meta.Condition) -> Iterator[Cause]:
    yield from field.check(f"{path}.type", condition.type, names.qualified_name)
    yield from field.one_of(f"{path}.status", condition.status, _STATUSES)
    if condition.observedGeneration < 0:
        problem = "must be greater than or equal to zero"
        yield field.invalid(f"{path}.observedGeneration", condition.observedGeneration, problem)
    if not condition.lastTransitionTime.seconds and not condition.lastTransitionTime.nanos:
        yield field.required(f"{path}.lastTransitionTime")
    if not condition.reason:
        yield field.required(f"{path}.reason")
    elif not _reason.fullmatch(condition.reason):
        yield field.invalid(f"{path}.reason", condition.reason, _REASON_PROBLEM)
    if len(condition.reason.encode()) > _REASON_BYTES_MAX:
        yield field.too_long(f"{path}.reason", _REASON_BYTES_MAX)
    if len(condition.message.encode()) > _MESSAGE_BYTES_MAX:
        yield field.too_long(f"{path}.message", _MESSAGE_BYTES_MAX)
