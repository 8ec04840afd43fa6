"""Validation of a request's options, for both fronts. Each check raises StatusError 422.

Source: apimachinery 1.36, meta/v1/validation and meta/internalversion/validation.
"""

from __future__ import annotations

from collections.abc import Iterable

from nominee.apiserver.validation import field
from nominee.machinery.api import errors
from nominee.machinery.api.errors import Cause, GroupKind

_GROUP = "meta.k8s.io"


def check_field_validation(value: str, kind: str) -> None:
    """Check fieldValidation; `kind` is that of the options: CreateOptions, UpdateOptions, PatchOptions."""
    if value not in ("", "Ignore", "Warn", "Strict"):
        cause = field.not_supported("fieldValidation", value, ("", "Ignore", "Strict", "Warn"))
        raise errors.invalid(GroupKind(_GROUP, kind), "", [cause])


def check_dry_run(values: Iterable[str], kind: str) -> None:
    """Check that dryRun is empty or "All"."""
    given = list(values)
    if any(value != "All" for value in given):
        cause = field.not_supported("dryRun", given, ("All",))
        raise errors.invalid(GroupKind(_GROUP, kind), "", [cause])


def check_initial_events(initial: bool | None, match: str, continue_token: str = "") -> None:
    """Check that sendInitialEvents and resourceVersionMatch of a watch fit together."""
    path = "resourceVersionMatch"
    causes: list[Cause] = []

    def forbid(problem: str) -> None:
        causes.append(field.forbidden(path, problem))

    if initial is not None and match != "NotOlderThan":
        forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    if match:
        if initial is None:
            forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        if match != "NotOlderThan":
            causes.append(field.not_supported(path, match, ("NotOlderThan",)))
    # Upstream first converts a watch from the beginning to one with initial events.
    if continue_token:
        forbid("resourceVersionMatch is forbidden when continue is provided")
    if causes:
        raise errors.invalid(GroupKind(_GROUP, "ListOptions"), "", causes)
