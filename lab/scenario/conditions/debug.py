"""`debug`: values of the JSON that a process serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from nominee.lab.scenario.fields import paths
from nominee.lab.scenario.fields.comparison import described_paths, matches, shown
from nominee.lab.scenario.fields.declared import Field, JsonPaths, ServingComponent
from nominee.lab.scenario.observing.base import Condition, Observed
from nominee.lab.scenario.observing.leader import leading

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
    about: ClassVar[str] = (
        "Values of the JSON that a process serves, for example at /debug/loop of the autoscaler."
    )

    component: ServingComponent
    path: Annotated[str, Field({"type": "string", "description": "", "pattern": "^/"})]
    json_path: JsonPaths

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
