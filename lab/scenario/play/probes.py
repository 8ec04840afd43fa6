"""Evaluate conditions on processes: metrics, queues, failpoints, states, debug pages."""

from __future__ import annotations

from collections.abc import Mapping

from nominee.lab.scenario.clusters.cluster import ScenarioCluster
from nominee.lab.scenario.clusters.leader import leading
from nominee.lab.scenario.format import paths
from nominee.lab.scenario.format.condition import (
    AllOf,
    AnyOf,
    Comparison,
    ComponentCondition,
    Condition,
    DebugCondition,
    FailpointCondition,
    MetricCondition,
    QueueCondition,
)
from nominee.lab.scenario.play.evaluation import Observed, matches, shown
from nominee.lab.scenario.play.world import World, combined, is_about_objects
from nominee.localcluster.cluster import ClusterError, FailpointState
from nominee.machinery.wire.scalars import Json


async def evaluate(condition: Condition, world: World, cluster: ScenarioCluster) -> Observed:
    """Evaluate any condition; a process that does not answer is an observation, no error."""
    if is_about_objects(condition):
        return world.evaluate(condition)
    match condition:
        case AllOf():
            return combined([await evaluate(each, world, cluster) for each in condition.conditions], all)
        case AnyOf():
            return combined([await evaluate(each, world, cluster) for each in condition.conditions], any)
    try:
        return await _probe(condition, cluster)
    except ClusterError as error:
        return Observed(holds=False, text=str(error))


async def _probe(condition: Condition, cluster: ScenarioCluster) -> Observed:
    match condition:
        case MetricCondition():
            return _metric(condition, await cluster.metrics(await leading(cluster, condition.component)))
        case QueueCondition():
            name = await leading(cluster, condition.component)
            return _queue(condition, await cluster.http_json(name, "/debug/queue"))
        case FailpointCondition():
            return await _failpoint(condition, cluster)
        case ComponentCondition():
            return await _component(condition, cluster)
        case DebugCondition():
            name = await leading(cluster, condition.component)
            return _debug(condition, await cluster.http_json(name, condition.path))
        case _:
            raise TypeError(f"{type(condition).__name__} cannot be asked of a process")


def _metric(condition: MetricCondition, text: str) -> Observed:
    from prometheus_client.parser import text_string_to_metric_families

    total = 0.0
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == condition.name and condition.labels.items() <= sample.labels.items():
                total += sample.value
    return Observed(holds=matches(condition.value, [total]), text=f"{condition.name} is {total:g}")


def _queue(condition: QueueCondition, document: Json) -> Observed:
    queues: dict[str, list[str]] = {}
    for name, pods in document.items():
        if isinstance(pods, list):
            queues[name] = [str(pod.get("pod")) for pod in pods if isinstance(pod, Mapping)]
    if not condition.pod:
        count = len(queues.get(condition.queue, ()))
        holds = matches(condition.count or Comparison(), [count])
        return Observed(holds=holds, text=f"{count} pods are in the {condition.queue} queue")
    pod = f"{condition.namespace}/{condition.pod}"
    places = [name for name, pods in queues.items() if pod in pods]
    holds = condition.queue in places if condition.queue else not places
    return Observed(holds=holds, text=f"pod {pod} is in {', '.join(places) or 'no queue'}")


async def _failpoint(condition: FailpointCondition, cluster: ScenarioCluster) -> Observed:
    # A process lists a failpoint when it has imported the module that declares it.
    unknown = FailpointState(name=condition.name, action="", hits=0, fired=0, waiting=0)
    points = await cluster.failpoints(await leading(cluster, condition.component))
    point = next((each for each in points if each.name == condition.name), unknown)
    holds = all(
        comparison is None or matches(comparison, [value])
        for comparison, value in (
            (condition.waiting, point.waiting),
            (condition.hits, point.hits),
            (condition.fired, point.fired),
        )
    )
    text = f"{point.name}: {point.waiting} wait, {point.hits} hits, acted {point.fired} times"
    return Observed(holds=holds, text=text)


async def _component(condition: ComponentCondition, cluster: ScenarioCluster) -> Observed:
    found = [p for p in await cluster.processes() if condition.name in (p.name, p.component)]
    holds = bool(found) and all(
        (not condition.state or process.state == condition.state)
        and (condition.restarts is None or matches(condition.restarts, [process.restarts]))
        for process in found
    )
    text = ", ".join(f"{p.name} is {p.state}, {p.restarts} restarts" for p in found)
    return Observed(holds=holds, text=text or f"there is no process {condition.name}")


def _debug(condition: DebugCondition, document: Json) -> Observed:
    values = {path: paths.find(path, document) for path in condition.json_path}
    holds = all(matches(comparison, values[path]) for path, comparison in condition.json_path.items())
    text = ", ".join(f"{path} = {', '.join(map(shown, found)) or 'unset'}" for path, found in values.items())
    return Observed(holds=holds, text=text)
