"""PriorityClasses (kube-apiserver 1.36, pkg/apis/scheduling/validation)."""

from __future__ import annotations

from apiserver.validation import field, metadata
from machinery.api.errors import Cause
from machinery.api.pb import scheduling
from machinery.scheduling.priority import HIGHEST_USER_DEFINABLE, SYSTEM_CLASSES

_SYSTEM_PREFIX = "system-"
_POLICIES = ("Never", "PreemptLowerPriority")


def priority_class(obj: scheduling.PriorityClass) -> list[Cause]:
    """Beside its metadata. Only the built-in classes may have the system's prefix and values."""
    errors: list[Cause] = []
    name = obj.metadata.name
    if name.startswith(_SYSTEM_PREFIX):
        if SYSTEM_CLASSES.get(name) != obj.value:
            problem = (
                f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only."
                f" error: {name} is not a known system priority class"
                if name not in SYSTEM_CLASSES
                else f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only."
                f" error: value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
            )
            errors.append(field.forbidden("metadata.name", problem))
    elif obj.value > HIGHEST_USER_DEFINABLE:
        problem = f"maximum allowed value of a user defined priority is {HIGHEST_USER_DEFINABLE}"
        errors.append(field.forbidden("value", problem))
    return errors + _policy(obj)


def _policy(obj: scheduling.PriorityClass) -> list[Cause]:
    if not obj.HasField("preemptionPolicy") or obj.preemptionPolicy in _POLICIES:
        return []
    if not obj.preemptionPolicy:
        return [field.required("preemptionPolicy")]
    return [field.not_supported("preemptionPolicy", obj.preemptionPolicy, sorted(_POLICIES, reverse=True))]


def update(new: scheduling.PriorityClass, old: scheduling.PriorityClass) -> list[Cause]:
    errors = metadata.object_meta_update(new.metadata, old.metadata)
    if new.value != old.value:
        errors.append(field.forbidden("value", "may not be changed in an update."))
    if new.preemptionPolicy != old.preemptionPolicy:
        errors.append(field.invalid("preemptionPolicy", new.preemptionPolicy, field.IMMUTABLE))
    return errors
