"""`failpoint`: the state of a failpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.fields.comparison import described, matches
from nominee.lab.scenario.fields.declared import Count, ServingComponent, Text
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import Condition, Observed
from nominee.lab.scenario.observing.leader import leading
from nominee.machinery.runtime.faults.failpoint_registry import PointState
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.cluster import ScenarioCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class FailpointCondition(Condition):
    """The state of a failpoint: tasks that wait at it, how often it was hit, how often it acted."""

    key: ClassVar[str] = "failpoint"
    row: ClassVar[str] = "`component`, `name`, and `waiting`, `hits` or `fired`"
    about: ClassVar[str] = "The state of a failpoint."

    component: ServingComponent
    name: Text
    waiting: Count = None
    hits: Count = None
    fired: Count = None

    def check(self, parser: Parser, path: FieldPath, value: Mapping[str, Json]) -> None:
        parser.failpoint_name((*path, "name"), self.component, self.name)
        if not {"waiting", "hits", "fired"} & value.keys():
            parser.fault(path, "give waiting, hits or fired")

    def describe(self) -> str:
        counts = {"tasks waiting": self.waiting, "hits": self.hits, "actions": self.fired}
        texts = [f"{name} {described(value)}" for name, value in counts.items() if value is not None]
        return f"failpoint {self.name}: {', '.join(texts)}"

    async def probe(self, cluster: ScenarioCluster) -> Observed:
        # A process lists a failpoint when it has imported the module that declares it.
        unknown = PointState(name=self.name, action="", hits=0, fired=0, waiting=0, last={})
        points = await cluster.failpoints(await leading(cluster, self.component))
        point = next((each for each in points if each.name == self.name), unknown)
        holds = all(
            comparison is None or matches(comparison, [value])
            for comparison, value in (
                (self.waiting, point.waiting),
                (self.hits, point.hits),
                (self.fired, point.fired),
            )
        )
        text = f"{point.name}: {point.waiting} wait, {point.hits} hits, acted {point.fired} times"
        return Observed(holds=holds, text=text)
