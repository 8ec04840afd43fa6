"""`queue`: the scheduler's queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.conditions.object import DEFAULT_NAMESPACE
from nominee.lab.scenario.fields.comparison import Comparison, counted, matches
from nominee.lab.scenario.fields.fragments import COMPONENT, COUNT, TEXT, Fragment, mapping, one_of, text
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import Condition, ConditionParser, Observed
from nominee.lab.scenario.observing.leader import leading
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.cluster import ScenarioCluster


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

    queue: str = ""
    pod: str = ""
    namespace: str = DEFAULT_NAMESPACE
    count: Comparison | None = None
    component: str = "scheduler"

    @classmethod
    def schema(cls) -> Fragment:
        properties = {
            "queue": one_of(
                "active", "backoff", "unschedulable", "gated", "waiting_on_permit", "binding", "none"
            ),
            "pod": text("A pod that must be in the queue (in no queue: none)."),
            "namespace": TEXT,
            "count": COUNT,
            "component": COMPONENT,
        }
        return mapping("The scheduler's queues.", properties, required=["queue"])

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Mapping[str, Json]) -> Condition:
        queue = value["queue"]
        if queue == "none" and "pod" not in value:
            parser.fault(path, "queue none needs a pod")
        if "pod" in value and "count" in value:
            parser.fault((*path, "count"), "give a pod or a count, not both")
        if "pod" not in value and "count" not in value:
            parser.fault(path, "give a pod or a count")
        return cls(
            queue="" if queue == "none" else queue,
            pod=value.get("pod", ""),
            namespace=value.get("namespace", DEFAULT_NAMESPACE),
            component=parser.component((*path, "component"), value.get("component", "scheduler")),
            count=parser.comparison_of(path, value, "count"),
        )

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
