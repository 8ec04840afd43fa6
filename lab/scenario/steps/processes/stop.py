"""`stop`: stop a process; `kill`: stop it with SIGKILL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import DONE, Performed, ProcessView
from nominee.lab.scenario.acting.control import Control
from nominee.lab.scenario.fields.fragments import Fragment, of_component
from nominee.lab.scenario.observing.base import JsonObject

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop(Control):
    """Stop a process; it stays down."""

    verb: ClassVar[str] = "stop"
    row: ClassVar[str] = "a component; it stays down"
    runs: ClassVar[bool] = False

    async def perform(self, stage: Stage) -> Performed:
        """Stop the process."""
        await stage.cluster.stop(self.component, kill=False)
        return DONE

    @classmethod
    def record(cls, before: ProcessView, now: ProcessView) -> list[JsonObject]:
        """Return the step if the process went down by itself or by SIGTERM."""
        is_stopped = before.state != "down" and now.state == "down" and now.last_exit != "SIGKILL"
        return [{cls.verb: now.name}] if is_stopped else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill(Control):
    """Stop a process with SIGKILL; it stays down."""

    verb: ClassVar[str] = "kill"
    row: ClassVar[str] = "a component: SIGKILL, after which it stays down"
    runs: ClassVar[bool] = False

    @classmethod
    def schema(cls) -> Fragment:
        return of_component("Stop with SIGKILL; the component stays down.", {}, inner="A component.")

    async def perform(self, stage: Stage) -> Performed:
        """Kill the process."""
        await stage.cluster.stop(self.component, kill=True)
        return DONE

    @classmethod
    def record(cls, before: ProcessView, now: ProcessView) -> list[JsonObject]:
        """Return the step if the process went down by SIGKILL."""
        is_killed = before.state != "down" and now.state == "down" and now.last_exit == "SIGKILL"
        return [{cls.verb: now.name}] if is_killed else []
