"""The endpoints of one node: `/nodes/NAME/healthz`, `metrics`, `metrics/resource`, `pods`, `stats/summary`.

One process carries many nodes, so that a node's name comes first; a node that it does not carry is 421.
The API server asks on behalf of clients of `nodes/NAME/proxy`. Source: kubelet 1.36,
pkg/kubelet/server/server.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY
from prometheus_client.core import GaugeMetricFamily, Metric

from nominee.kubelet.node.summary import summary
from nominee.kubelet.runtime.sandbox import PodSandbox
from nominee.kubelet.shell.agent import Agent
from nominee.kubelet.shell.serving.resource_metrics import ResourceMetrics
from nominee.machinery.api.pb import core
from nominee.machinery.process.serving_port.health import HEADERS, NOT_FOUND, Health, prometheus_text
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.wire import codec

if TYPE_CHECKING:
    # Starlette is imported with the first page: most processes serve none.
    from starlette.requests import Request
    from starlette.responses import Response

ROUTE = "/nodes/{node}/{path:path}"
NOT_CARRIED = 421
"""The status of a node that another process carries (Misdirected Request)."""


class NodeEndpoints:
    """Answers for the nodes of a process."""

    def __init__(self, agents: Mapping[str, Agent], health: Health, clock: Clock) -> None:
        self._agents = agents
        self._health = health
        self._clock = clock
        self._resources: dict[str, ResourceMetrics] = {}

    async def answer(self, request: Request) -> Response:
        """GET of `ROUTE`."""
        from starlette.responses import JSONResponse, PlainTextResponse, Response

        agent = self._agents.get(request.path_params["node"])
        if agent is None:
            return PlainTextResponse("this kubelet does not carry the node\n", NOT_CARRIED)
        path: str = request.path_params["path"].rstrip("/")
        if path == "pods":
            return JSONResponse(pod_list(record.pod for record in agent.node.pods.values()))
        if path == "stats/summary":
            return JSONResponse(summary(agent.name, sandboxes(agent), self._clock.now()))
        if path == "metrics":
            return Response(metrics_of(agent), media_type=CONTENT_TYPE_LATEST)
        if path == "metrics/resource":
            read = self._resources.setdefault(agent.name, ResourceMetrics()).read
            return Response(read(sandboxes(agent), self._clock.now()), media_type=CONTENT_TYPE_LATEST)
        if path == "metrics/slis":
            return Response(self._health.slis(), media_type=CONTENT_TYPE_LATEST)
        answer = NOT_FOUND
        if path.partition("/")[0] == "healthz":
            query = {name: request.query_params.getlist(name) for name in request.query_params}
            answer = await self._health.answer(f"/{path}", query)
        return PlainTextResponse(answer.text, answer.code, headers=HEADERS)


def pod_list(pods: Iterable[core.Pod]) -> dict[str, object]:
    """Return a v1 PodList as JSON has it."""
    items = [codec.to_json(pod) for pod in pods]
    for item in items:
        del item["kind"], item["apiVersion"]
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}


def sandboxes(agent: Agent) -> Iterator[tuple[core.Pod, PodSandbox]]:
    """Return the pods that run on a node, with their sandboxes."""
    for uid, sandbox in agent.runtime.sandboxes.items():
        record = agent.node.pods.get(uid)
        if record is not None:
            yield record.pod, sandbox


def metrics_of(agent: Agent) -> bytes:
    """Return the node's own gauges, and the process's metrics that are not among them, as Prometheus text."""
    own = list(_own_metrics(agent))
    names = {metric.name for metric in own}
    return prometheus_text([*own, *(metric for metric in REGISTRY.collect() if metric.name not in names)])


def _own_metrics(agent: Agent) -> Iterator[Metric]:
    named = GaugeMetricFamily(
        "kubelet_node_name", "[ALPHA] The node's name. The count is always 1.", labels=["node"]
    )
    named.add_metric([agent.name], 1)
    yield named
    yield GaugeMetricFamily(
        "kubelet_running_pods",
        "[ALPHA] Number of pods that have a running pod sandbox",
        value=len(agent.runtime.sandboxes),
    )
    states: dict[str, int] = {}
    for sandbox in agent.runtime.sandboxes.values():
        for container in sandbox.containers:
            states[container.state] = states.get(container.state, 0) + 1
    containers = GaugeMetricFamily(
        "kubelet_running_containers",
        "[ALPHA] Number of containers currently running",
        labels=["container_state"],
    )
    for state, count in sorted(states.items()):
        containers.add_metric([state], count)
    yield containers
