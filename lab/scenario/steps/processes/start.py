"""`start`: start a process that is down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import Action, ProcessView
from nominee.lab.scenario.acting.control import (
    OPTIONS,
    Launch,
    named,
    options_of,
    recorded_options,
    recorded_target,
)
from nominee.lab.scenario.fields.fragments import Fragment, of_component
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import ConditionParser, JsonObject
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(Launch):
    """Start a process that is down, also with other options."""

    verb: ClassVar[str] = "start"
    row: ClassVar[str] = (
        'a component that is down, or `{component: scheduler, emulatedVersion: "1.36", featureGates: {...}, '
        "args: [...], failpoints: {...}}`: an upgrade, or its rollback. The options are merged with those of "
        "the cluster and hold until the next start"
    )

    @classmethod
    def schema(cls) -> Fragment:
        return {"description": "Start a component that is down.", "$ref": "#/$defs/control"}

    @classmethod
    def definitions(cls) -> Mapping[str, Fragment]:
        outer, inner = "A component, or a component with options.", "A component with options."
        return {"control": of_component(outer, OPTIONS, inner=inner)}

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the step that starts the process."""
        process = named(parser, path, value)
        return cls(component=process, options=options_of(parser, path, value, process), rejected=rejected)

    async def launch(self, stage: Stage) -> None:
        """Start the process."""
        await stage.cluster.start(self.component, self.options)

    @classmethod
    def record(cls, before: ProcessView, now: ProcessView) -> list[JsonObject]:
        """Return the step if the process was down and is ready."""
        if before.state not in ("down", "crashed") or now.state != "ready":
            return []
        return [{cls.verb: recorded_target(now.name, recorded_options(before, now))}]
