"""The list of the kinds of conditions, in the order of the schema and of docs/scenarios.md."""

from __future__ import annotations

from nominee.lab.scenario.conditions.combined import AllOf, AnyOf
from nominee.lab.scenario.conditions.component import ComponentCondition
from nominee.lab.scenario.conditions.debug import DebugCondition
from nominee.lab.scenario.conditions.event import EventCondition
from nominee.lab.scenario.conditions.failpoint import FailpointCondition
from nominee.lab.scenario.conditions.metric import MetricCondition
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.conditions.queue import QueueCondition
from nominee.lab.scenario.observing.base import Condition

_KINDS: tuple[type[Condition], ...] = (
    ObjectCondition,
    EventCondition,
    MetricCondition,
    QueueCondition,
    FailpointCondition,
    ComponentCondition,
    DebugCondition,
    AllOf,
    AnyOf,
)
CONDITIONS: dict[str, type[Condition]] = {kind.key: kind for kind in _KINDS}
"""By the field of a file that has the condition."""
