"""The strategies of flow schemas and priority levels (kube-apiserver 1.36, registry/flowcontrol)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.registry.strategy import Environment, StatusStrategy, Strategy
from apiserver.validation import flow_control, metadata
from machinery.api import kinds
from machinery.api.errors import Cause
from machinery.api.kinds import Kind


class FlowControlStrategy(Strategy):
    """Both kinds: a status apart, and a generation."""

    counts_generation = True

    def __init__(self, kind: Kind[Any], rules: Callable[[Any], list[Cause]]) -> None:
        super().__init__(kind, {"status": FlowControlStatusStrategy(kind)})
        self._rules = rules

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + self._rules(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return metadata.object_meta_update(new.metadata, old.metadata) + self._rules(new)


class FlowControlStatusStrategy(StatusStrategy):
    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return metadata.object_meta_update(new.metadata, old.metadata) + flow_control.conditions(new.status)


STRATEGIES: dict[Kind[Any], Strategy] = {
    kinds.FLOW_SCHEMA: FlowControlStrategy(kinds.FLOW_SCHEMA, flow_control.flow_schema),
    kinds.PRIORITY_LEVEL_CONFIGURATION: FlowControlStrategy(
        kinds.PRIORITY_LEVEL_CONFIGURATION, flow_control.priority_level
    ),
}
