"""`debug`: values of the JSON that a process serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.fields import paths
from nominee.lab.scenario.fields.comparison import Comparison, described_paths, matches, shown
from nominee.lab.scenario.fields.fragments import COMPONENT, JSON_PATH, Fragment, mapping
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import Condition, ConditionParser, Observed
from nominee.lab.scenario.observing.leader import leading
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.cluster import ScenarioCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugCondition(Condition):
    """Values of the JSON that a process serves at a path such as `/debug/loop`."""

    key: ClassVar[str] = "debug"
    row: ClassVar[str] = (
        "`component`, `path`, `jsonPath`: values of the JSON that it serves, as the "
        "autoscaler's `/debug/loop`"
    )

    component: str
    path: str
    json_path: Mapping[str, Comparison]

    @classmethod
    def schema(cls) -> Fragment:
        properties: dict[str, Fragment] = {
            "component": COMPONENT,
            "path": {"type": "string", "description": "", "pattern": "^/"},
            "jsonPath": JSON_PATH,
        }
        return mapping(
            "Values of the JSON that a process serves, for example at /debug/loop of the autoscaler.",
            properties,
            required=["component", "path", "jsonPath"],
        )

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Mapping[str, Json]) -> Condition:
        return cls(
            component=parser.component((*path, "component"), value["component"], serves=True),
            path=value["path"],
            json_path=parser.json_path((*path, "jsonPath"), value["jsonPath"]),
        )

    def describe(self) -> str:
        return f"{self.component}{self.path}: {described_paths(self.json_path)}"

    async def probe(self, cluster: ScenarioCluster) -> Observed:
        document = await cluster.http_json(await leading(cluster, self.component), self.path)
        values = {path: paths.find(path, document) for path in self.json_path}
        holds = all(matches(comparison, values[path]) for path, comparison in self.json_path.items())
        text = ", ".join(
            f"{path} = {', '.join(map(shown, found)) or 'unset'}" for path, found in values.items()
        )
        return Observed(holds=holds, text=text)
