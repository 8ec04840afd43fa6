"""PriorityClasses (kube-apiserver 1.36, pkg/apis/scheduling/validation and pkg/registry/scheduling)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.kinds.strategy import Environment
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import scheduling
from nominee.machinery.scheduling.priority import HIGHEST_USER_DEFINABLE, SYSTEM_CLASSES

_SYSTEM_PREFIX = "system-"
_POLICIES = ("Never", "PreemptLowerPriority")


def _validate(obj: scheduling.PriorityClass) -> Iterator[Cause]:
    """Beside its metadata. Only the built-in classes may have the system's prefix and values."""
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
            yield field.forbidden("metadata.name", problem)
    elif obj.value > HIGHEST_USER_DEFINABLE:
        problem = f"maximum allowed value of a user defined priority is {HIGHEST_USER_DEFINABLE}"
        yield field.forbidden("value", problem)
    yield from _policy(obj)


def _policy(obj: scheduling.PriorityClass) -> list[Cause]:
    if not obj.HasField("preemptionPolicy") or obj.preemptionPolicy in _POLICIES:
        return []
    if not obj.preemptionPolicy:
        return [field.required("preemptionPolicy")]
    return [field.not_supported("preemptionPolicy", obj.preemptionPolicy, sorted(_POLICIES, reverse=True))]


def _validate_change(new: scheduling.PriorityClass, old: scheduling.PriorityClass) -> Iterator[Cause]:
    if new.value != old.value:
        yield field.forbidden("value", "may not be changed in an update.")
    yield from field.immutable("preemptionPolicy", new.preemptionPolicy, old.preemptionPolicy)


class PriorityClassStrategy(SimpleStrategy[scheduling.PriorityClass]):
    """The main resource; the built-in classes cannot be deleted."""

    def undeletable(self, name: str) -> str:
        return "this is a system priority class and cannot be deleted" if name in SYSTEM_CLASSES else ""

    def prepare_for_create(self, new: scheduling.PriorityClass, env: Environment) -> None:
        new.metadata.generation = 1


def _row(priority: scheduling.PriorityClass, now: float) -> Cells:
    return [priority.value, priority.globalDefault, priority.preemptionPolicy]


RULES = KindRules(
    kind=kinds.PRIORITY_CLASS,
    strategy=PriorityClassStrategy(
        kinds.PRIORITY_CLASS, _validate, _validate_change, updates=UpdateCheck.NOTHING
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Value", "priorityclass-scheduling-v1#value", "integer"),
        Column("Global-Default", "priorityclass-scheduling-v1#globalDefault", "boolean"),
        AGE,
        Column("PreemptionPolicy", "priorityclass-scheduling-v1#preemptionPolicy"),
    ),
    read_your_write=True,
)
