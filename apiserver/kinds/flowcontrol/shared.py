"""Terms of FlowSchemas and PriorityLevelConfigurations (kube-apiserver 1.36, flowcontrol/validation)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from nominee.apiserver.validation import field
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import flowcontrol
from nominee.machinery.defaults import flow_control as defaults

ALL = "*"
EXEMPT, LIMITED = "Exempt", "Limited"
QUEUE, REJECT = "Queue", "Reject"
BY_USER, BY_NAMESPACE = "ByUser", "ByNamespace"
T = TypeVar("T", flowcontrol.FlowSchema, flowcontrol.PriorityLevelConfiguration)
_Condition = flowcontrol.FlowSchemaCondition | flowcontrol.PriorityLevelConfigurationCondition


def validate_status(new: T, old: T) -> list[Cause]:
    """Check the conditions of a changed status."""
    return list(conditions(new.status.conditions))


def conditions(found: Iterable[_Condition]) -> Iterator[Cause]:
    """Check a status' conditions: each type once."""
    seen: set[str] = set()
    for index, condition in enumerate(found):
        path = f"status.conditions[{index}].type"
        yield from field.unique(path, condition.type, seen)
        if not condition.type:
            yield field.required(path, "must not be empty")


def check_mandatory(obj: T, mandatory: Iterable[T]) -> list[Cause]:
    """Refuse another spec for an object that every cluster must have as it is."""
    for known in mandatory:
        if known.metadata.name == obj.metadata.name:
            given, expected = type(obj)(), type(obj)()
            given.CopyFrom(obj)
            expected.CopyFrom(known)
            _canonicalize(given)
            _canonicalize(expected)
            if given.spec != expected.spec:
                text = f"spec of '{obj.metadata.name}' must equal the fixed value"
                return [field.invalid("spec", field.OMIT, text)]
    return []


def _canonicalize(obj: flowcontrol.FlowSchema | flowcontrol.PriorityLevelConfiguration) -> None:
    """Set each optional bool or number that is zero explicitly, in place: absent and zero mean the same."""
    if isinstance(obj, flowcontrol.PriorityLevelConfiguration):
        defaults.set_shares(obj)
        return
    for rule in obj.spec.rules:
        for each in rule.resourceRules:
            each.clusterScope = each.clusterScope
