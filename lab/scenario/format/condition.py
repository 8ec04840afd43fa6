"""Conditions of a scenario: statements about objects, events and processes that hold or do not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nominee.machinery.wire.scalars import Json

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of a value; every field that is set must hold.

    `equal` compares as text, so that `"2"` and 2 are equal; None means that the value must be absent or
    empty.
    """

    equal: Json = None
    has_equal: bool = False
    unequal: Json = None
    has_unequal: bool = False
    contains: str = ""
    matches: str = ""
    one_of: tuple[Json, ...] = ()
    quantity: str = ""
    at_least: float | None = None
    at_most: float | None = None
    present: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCondition:
    """Objects of a kind, by name or selector, of which `count` have all the stated properties.

    `conditions` are texts `TYPE=STATUS`, `TYPE=STATUS/REASON` or `!TYPE` (there is no such condition).
    `count` None means at least one.
    """

    kind: str
    name: str = ""
    namespace: str = ""
    selector: str = ""
    conditions: tuple[str, ...] = ()
    json_path: Mapping[str, Comparison] = field(default_factory=dict)
    count: Comparison | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCondition:
    """Events (core/v1) about an object; `count` None means at least one."""

    reason: str = ""
    type: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    component: str = ""
    message: Comparison | None = None
    count: Comparison | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCondition:
    """The sum of a metric's samples with these labels; a metric without samples is 0."""

    component: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    value: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCondition:
    """A pod in one of the scheduler's queues; `queue` "" means in none of them.

    Without a pod: the number of pods in the queue.
    """

    queue: str = ""
    pod: str = ""
    namespace: str = DEFAULT_NAMESPACE
    count: Comparison | None = None
    component: str = "scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailpointCondition:
    """The state of a failpoint: tasks that wait at it, how often it was hit, how often it acted."""

    component: str
    name: str
    waiting: Comparison | None = None
    hits: Comparison | None = None
    fired: Comparison | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentCondition:
    """The supervisor's state of a process, and how often it was restarted after it died."""

    name: str
    state: str = ""
    restarts: Comparison | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugCondition:
    """Values of the JSON that a process serves at a path such as `/debug/loop`."""

    component: str
    path: str
    json_path: Mapping[str, Comparison]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf:
    """Conditions that must all hold at the same time."""

    conditions: Sequence[Condition]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """Conditions of which one must hold."""

    conditions: Sequence[Condition]


Condition = (
    ObjectCondition
    | EventCondition
    | MetricCondition
    | QueueCondition
    | FailpointCondition
    | ComponentCondition
    | DebugCondition
    | AllOf
    | AnyOf
)


def leaves(condition: Condition) -> list[Condition]:
    """Return the conditions without AllOf and AnyOf."""
    if isinstance(condition, AllOf | AnyOf):
        return [leaf for part in condition.conditions for leaf in leaves(part)]
    return [condition]
