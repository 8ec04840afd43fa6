"""`failpoint`: the state of a failpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.fields.comparison import Comparison, described, matches
from nominee.lab.scenario.fields.fragments import COMPONENT, COUNT, TEXT, Fragment, mapping
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import Condition, ConditionParser, Observed
from nominee.lab.scenario.observing.leader import leading
from nominee.localcluster.cluster import FailpointState
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.cluster import ScenarioCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class FailpointCondition(Condition):
    """The state of a failpoint: tasks that wait at it, how often it was hit, how often it acted."""

    key: ClassVar[str] = "failpoint"
    row: ClassVar[str] = "`component`, `name`, and `waiting`, `hits` or `fired`"

    component: str
    name: str
    waiting: Comparison | None = None
    hits: Comparison | None = None
    fired: Comparison | None = None

    @classmethod
    def schema(cls) -> Fragment:
        properties = {
            "component": COMPONENT,
            "name": TEXT,
            "waiting": COUNT,
            "hits": COUNT,
            "fired": COUNT,
        }
        return mapping("The state of a failpoint.", properties, required=["component", "name"])

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Mapping[str, Json]) -> Condition:
        component = parser.component((*path, "component"), value["component"], serves=True)
        parser.failpoint_name((*path, "name"), component, value["name"])
        if not {"waiting", "hits", "fired"} & value.keys():
            parser.fault(path, "give waiting, hits or fired")
        return cls(
            component=component,
            name=value["name"],
            waiting=parser.comparison_of(path, value, "waiting"),
            hits=parser.comparison_of(path, value, "hits"),
            fired=parser.comparison_of(path, value, "fired"),
        )

    def describe(self) -> str:
        counts = {"tasks waiting": self.waiting, "hits": self.hits, "actions": self.fired}
        texts = [f"{name} {described(value)}" for name, value in counts.items() if value is not None]
        return f"failpoint {self.name}: {', '.join(texts)}"

    async def probe(self, cluster: ScenarioCluster) -> Observed:
        # A process lists a failpoint when it has imported the module that declares it.
        unknown = FailpointState(name=self.name, action="", hits=0, fired=0, waiting=0)
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
