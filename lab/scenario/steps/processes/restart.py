"""`restart`: restart a process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import Action, ProcessView
from nominee.lab.scenario.acting.control import (
    OPTIONS,
    Launch,
    fields_of,
    named,
    options_of,
    recorded_options,
    recorded_target,
)
from nominee.lab.scenario.fields.fragments import Fragment, flag, of_component
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import ConditionParser, JsonObject
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart(Launch):
    """Restart a process, also with other options; `kill`: it ends by SIGKILL."""

    verb: ClassVar[str] = "restart"
    row: ClassVar[str] = "as `start`, of a component that runs; `kill: true` ends it with SIGKILL"

    kill: bool = False

    @classmethod
    def schema(cls) -> Fragment:
        outer, inner = "A component, or a component with options.", "A component with options."
        return of_component(outer, {"kill": flag("Send SIGKILL."), **OPTIONS}, inner=inner)

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the step that restarts the process."""
        process = named(parser, path, value)
        return cls(
            component=process,
            options=options_of(parser, path, value, process),
            kill=fields_of(value).get("kill", False),
            rejected=rejected,
        )

    async def launch(self, stage: Stage) -> None:
        """Restart the process."""
        await stage.cluster.restart(self.component, self.options, kill=self.kill)

    @classmethod
    def record(cls, before: ProcessView, now: ProcessView) -> list[JsonObject]:
        """Return the step if another process of the component is ready, unless a failpoint ended the last."""
        was_down = before.state in ("down", "crashed")
        if was_down or now.state != "ready" or before.pid == now.pid:
            return []
        # A crash that a failpoint caused comes again by itself.
        if any(action.endswith("crash") for action in before.failpoints.values()):
            return []
        options = recorded_options(before, now)
        if now.last_exit == "SIGKILL":
            return [{cls.verb: {"component": now.name, "kill": True, **options}}]
        return [{cls.verb: recorded_target(now.name, options)}]
