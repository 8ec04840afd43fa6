"""`component`: the state of a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from nominee.lab.scenario.fields.comparison import described, matches
from nominee.lab.scenario.fields.declared import ComponentName, Count, Field
from nominee.lab.scenario.fields.fragments import one_of
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import Condition, Observed
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.cluster import ScenarioCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentCondition(Condition):
    """The supervisor's state of a process, and how often it was restarted after it died."""

    key: ClassVar[str] = "component"
    row: ClassVar[str] = "`name`, `state` (ready, starting, paused, down, backoff, crashed), `restarts`"
    about: ClassVar[str] = "The state of a process."

    name: ComponentName
    state: Annotated[str, Field(one_of("ready", "starting", "paused", "down", "backoff", "crashed"))] = ""
    restarts: Count = None

    def check(self, parser: Parser, path: FieldPath, value: Mapping[str, Json]) -> None:
        if "state" not in value and "restarts" not in value:
            parser.fault(path, "give state or restarts")

    def describe(self) -> str:
        state = f" is {self.state}" if self.state else ""
        restarts = f" restarts {described(self.restarts)}" if self.restarts is not None else ""
        return f"{self.name}{state}{restarts}"

    async def probe(self, cluster: ScenarioCluster) -> Observed:
        found = [p for p in await cluster.processes() if self.name in (p.name, p.component)]
        holds = bool(found) and all(
            (not self.state or process.state == self.state)
            and (self.restarts is None or matches(self.restarts, [process.restarts]))
            for process in found
        )
        text = ", ".join(f"{p.name} is {p.state}, {p.restarts} restarts" for p in found)
        return Observed(holds=holds, text=text or f"there is no process {self.name}")
