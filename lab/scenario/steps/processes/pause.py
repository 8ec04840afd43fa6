"""`pause`: freeze a process; `resume`: continue it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import DONE, Performed, ProcessView
from nominee.lab.scenario.acting.control import Control
from nominee.lab.scenario.observing.base import JsonObject

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(Control):
    """Freeze a process (SIGSTOP)."""

    verb: ClassVar[str] = "pause"
    row: ClassVar[str] = "a component: SIGSTOP"
    runs: ClassVar[bool] = False

    async def perform(self, stage: Stage) -> Performed:
        """Freeze the process."""
        await stage.cluster.pause(self.component)
        return DONE

    @classmethod
    def record(cls, before: ProcessView, now: ProcessView) -> list[JsonObject]:
        """Return the step if the process was frozen."""
        return [{cls.verb: now.name}] if (before.state, now.state) == ("ready", "paused") else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(Control):
    """Continue a paused process (SIGCONT)."""

    verb: ClassVar[str] = "resume"
    row: ClassVar[str] = "a paused component"
    runs: ClassVar[bool] = True

    async def perform(self, stage: Stage) -> Performed:
        """Continue the process."""
        await stage.cluster.resume(self.component)
        return DONE

    @classmethod
    def record(cls, before: ProcessView, now: ProcessView) -> list[JsonObject]:
        """Return the step if the same process runs again."""
        is_resumed = (before.state, now.state) == ("paused", "ready") and before.pid == now.pid
        return [{cls.verb: now.name}] if is_resumed else []
