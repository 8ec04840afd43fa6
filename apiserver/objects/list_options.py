"""The options of lists and watches: selectors and resource versions, checked as kube-apiserver does."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import ListOptions
from nominee.apiserver.objects.selectable_fields import SelectableFields, UnknownFieldLabel
from nominee.machinery.api import errors
from nominee.machinery.api.errors import Cause, GroupKind, StatusError
from nominee.machinery.api.names import go_quote
from nominee.machinery.api.selectors import FieldSelector, LabelSelector, SelectorError

EXACT, NOT_OLDER_THAN = "Exact", "NotOlderThan"
_LIST_OPTIONS = GroupKind("meta.k8s.io", "ListOptions")
_FIELD = "resourceVersionMatch"
_INITIAL_EVENTS = "sendInitialEvents"
_UINT = re.compile(r"[0-9]+", re.ASCII)
_UINT64_MAX = (1 << 64) - 1
_UINT64_DIGITS = 20
"""The digits of the largest uint64: Python refuses to parse numbers of thousands of digits."""

Predicate = Callable[[CachedObject], bool]


@dataclass(frozen=True, slots=True)
class Selectors:
    """The label and field selectors of a request, parsed for any kind."""

    labels: LabelSelector
    fields: FieldSelector


def parse_selectors(label_selector: str, field_selector: str) -> Selectors:
    """Parse the selectors of a request.

    Raises: StatusError 400.
    """
    try:
        return Selectors(LabelSelector.parse(label_selector), FieldSelector.parse(field_selector))
    except SelectorError as error:
        raise errors.bad_request(str(error)) from None


def predicate_of(selectors: Selectors, selectable: SelectableFields[Any]) -> Predicate | None:
    """Return whether an object is selected, or None for a selector of all objects of a kind.

    `selectable` are the kind's fields. Raises: StatusError 400 for fields that the kind lacks.
    """
    labels, values = selectors.labels, selectable.values
    try:
        fields = selectors.fields.transformed(lambda label, value: (selectable.key_of(label), value))
    except UnknownFieldLabel as error:
        raise errors.bad_request(str(error)) from None
    by_label, by_field = labels.matches, fields.matches
    if labels.empty:
        return None if fields.empty else lambda obj: by_field(obj.field_values(values))
    if fields.empty:
        return lambda obj: by_label(obj.labels)
    return lambda obj: by_label(obj.labels) and by_field(obj.field_values(values))


def check_list(options: ListOptions) -> None:
    """Check that the options of a list fit together.

    Raises: StatusError 422 with all violations.
    """
    causes = _match_problems(options) if options.resource_version_match else []
    if options.send_initial_events is not None:
        causes.append(_forbidden(_INITIAL_EVENTS, f"{_INITIAL_EVENTS} is forbidden for list"))
    if causes:
        raise errors.invalid(_LIST_OPTIONS, "", causes)


def _match_problems(options: ListOptions) -> list[Cause]:
    match, version = options.resource_version_match, options.resource_version
    causes = []
    if not version:
        causes.append(_forbidden(_FIELD, f"{_FIELD} is forbidden unless resourceVersion is provided"))
    if options.continue_token:
        causes.append(_forbidden(_FIELD, f"{_FIELD} is forbidden when continue is provided"))
    if match not in (EXACT, NOT_OLDER_THAN):
        text = f'Unsupported value: {go_quote(match)}: supported values: "{EXACT}", "{NOT_OLDER_THAN}", ""'
        causes.append(Cause("FieldValueNotSupported", text, _FIELD))
    if match == EXACT and version == "0":
        causes.append(_forbidden(_FIELD, f'{_FIELD} "exact" is forbidden for resourceVersion "0"'))
    return causes


def _forbidden(field: str, text: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {text}", field)


class InvalidResourceVersion(ValueError):
    """A resourceVersion that is not a revision. Get and watch answer 500 with it, list 400."""

    def status(self) -> StatusError:
        return StatusError(500, "", str(self))


def parse_revision(text: str) -> int:
    """Return the revision of a resourceVersion ("" is 0).

    Raises: InvalidResourceVersion.
    """
    if not text:
        return 0
    if not _UINT.fullmatch(text):
        problem = "invalid syntax"
    elif len(text.lstrip("0")) > _UINT64_DIGITS or int(text.lstrip("0") or "0") > _UINT64_MAX:
        problem = "value out of range"
    else:
        return int(text.lstrip("0") or "0")
    quoted = go_quote(text)
    raise InvalidResourceVersion(
        f"resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: {problem}"
    )
