"""`queue`: the scheduler's queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from nominee.lab.scenario.conditions.object import DEFAULT_NAMESPACE
from nominee.lab.scenario.fields.comparison import Comparison, counted, matches
from nominee.lab.scenario.fields.declared import ComponentName, Count, Field, Text
from nominee.lab.scenario.fields.fragments import one_of, text
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import Condition, Observed
from nominee.lab.scenario.observing.leader import leading
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.cluster import ScenarioCluster

_QUEUES = one_of("active", "backoff", "unschedulable", "gated", "waiting_on_permit", "binding", "none")


def _queue(_parser: Parser, _path: FieldPath, value: Json) -> str:
    return "" if value == "none" else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCondition(Condition):
    """A pod in one of the scheduler's queues; `queue` "" means in none of them.

    Without a pod: the number of pods in the queue.
    """

    key: ClassVar[str] = "queue"
    row: ClassVar[str] = (
        "`queue` (active, backoff, unschedulable, gated, waiting_on_permit, binding, none) and `pod` or "
        "`count`; `component` (default `scheduler`)"
    )
    about: ClassVar[str] = "The scheduler's queues."

    queue: Annotated[str, Field(_QUEUES, _queue)]
    pod: Annotated[str, Field(text("A pod that must be in the queue (in no queue: none)."))] = ""
    namespace: Text = DEFAULT_NAMESPACE
    count: Count = None
    component: ComponentName = "scheduler"

    def check(self, parser: Parser, path: FieldPath, value: Mapping[str, Json]) -> None:
        if value["queue"] == "none" and "pod" not in value:
            parser.fault(path, "queue none needs a pod")
        if "pod" in value and "count" in value:
            parser.fault((*path, "count"), "give a pod or a count, not both")
        if "pod" not in value and "count" not in value:
            parser.fault(path, "give a pod or a count")

    def describe(self) -> str:
        if not self.pod:
            return f"pods in the {self.queue} queue{counted(self.count)}"
        place = f"the {self.queue} queue" if self.queue else "no queue"
        return f"pod {self.pod} is in {place}"

    async def probe(self, cluster: ScenarioCluster) -> Observed:
        """Read the queues of the scheduler that leads."""
        name = await leading(cluster, self.component)
        document = await cluster.http_json(name, "/debug/queue")
        queues: dict[str, list[str]] = {}
        for queue, pods in document.items():
            if isinstance(pods, list):
                queues[queue] = [str(pod.get("pod")) for pod in pods if isinstance(pod, Mapping)]
        if not self.pod:
            count = len(queues.get(self.queue, ()))
            holds = matches(self.count or Comparison(), [count])
            return Observed(holds=holds, text=f"{count} pods are in the {self.queue} queue")
        pod = f"{self.namespace}/{self.pod}"
        places = [queue for queue, pods in queues.items() if pod in pods]
        holds = self.queue in places if self.queue else not places
        return Observed(holds=holds, text=f"pod {pod} is in {', '.join(places) or 'no queue'}")
