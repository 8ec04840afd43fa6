"""`metric`: the sum of a metric's samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from nominee.lab.scenario.fields.comparison import described, matches
from nominee.lab.scenario.fields.declared import Compared, Field, ServingComponent
from nominee.lab.scenario.fields.fragments import Fragment, text
from nominee.lab.scenario.observing.base import Condition, Observed
from nominee.lab.scenario.observing.leader import leading

if TYPE_CHECKING:
    from nominee.lab.scenario.cluster import ScenarioCluster

_LABELS: Final[Fragment] = {"type": "object", "additionalProperties": {"type": "string"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCondition(Condition):
    """The sum of a metric's samples with these labels; a metric without samples is 0."""

    key: ClassVar[str] = "metric"
    row: ClassVar[str] = "`component`, `name`, `labels`, `value`: the sum of the samples"
    about: ClassVar[str] = "The sum of a metric's samples with these labels."

    component: ServingComponent
    name: Annotated[str, Field(text("As in the text format; a counter with _total."))]
    labels: Annotated[Mapping[str, str], Field(_LABELS)] = field(default_factory=dict)
    value: Compared

    def describe(self) -> str:
        labels = ",".join(f'{name}="{value}"' for name, value in self.labels.items())
        name = f"{self.name}{{{labels}}}" if labels else self.name
        return f"{self.component}'s {name} {described(self.value)}"

    async def probe(self, cluster: ScenarioCluster) -> Observed:
        # 100 ms that reading a file would pay.
        from prometheus_client.parser import text_string_to_metric_families

        total = 0.0
        metrics = await cluster.metrics(await leading(cluster, self.component))
        for family in text_string_to_metric_families(metrics):
            for sample in family.samples:
                if sample.name == self.name and self.labels.items() <= sample.labels.items():
                    total += sample.value
        return Observed(holds=matches(self.value, [total]), text=f"{self.name} is {total:g}")
