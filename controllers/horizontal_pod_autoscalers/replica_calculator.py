"""The replicas that one resource metric asks for. Pure; quantities in thousandths.

Source: kube-controller-manager 1.36, pkg/controller/podautoscaler (replica_calculator, metrics).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nominee.machinery.api.objects import get_condition, is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import CPU, is_sidecar, pod_requests
from nominee.machinery.resources.quantity import milli
from nominee.machinery.runtime.clock import from_time
from nominee.machinery.wire.pod_metrics import PodMetrics

_NANO: Final = 1e9


class MetricError(Exception):
    """The metric gives no number of replicas; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Usage:
    """A pod's usage in thousandths, when it was measured (epoch seconds), and over how many seconds."""

    value: int
    time: float
    window: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The controller's options; times in seconds."""

    cpu_initialization_period: float = 300.0
    initial_readiness_delay: float = 30.0
    downscale_stabilization: float = 300.0
    tolerance: float = 0.1


@dataclass(frozen=True, slots=True)
class Tolerances:
    """The changes of a ratio that are ignored, downwards and upwards."""

    down: float
    up: float

    def ignore(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(frozen=True, slots=True)
class Proposal:
    """The replicas for a metric, the average usage of its pods, and the percentage of the requests."""

    replicas: int
    average: int
    utilization: int | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """One metric of the spec; of `utilization` (percent) and `average` (thousandths) one is given."""

    resource: str
    container: str = ""
    utilization: int | None = None
    average: int = 0


@dataclass(frozen=True, slots=True)
class _Groups:
    """The names of the pods, by how they count; `ready` is a number."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    left_out: frozenset[str]


def usages(rows: Sequence[PodMetrics], target: Target) -> dict[str, Usage]:
    """Return the usage by pod. Raises: MetricError."""
    if not rows:
        raise MetricError("no metrics returned from resource metrics API")
    found = {}
    for row in rows:
        containers = [one for one in row.containers if target.container in ("", one.name)]
        if target.container and not containers:
            name = f"{row.metadata.namespace}/{row.metadata.name}"
            problem = f"container {target.container} not present in metrics for pod {name}"
            raise MetricError(f"failed to get container metrics: {problem}")
        if containers and all(target.resource in one.usage for one in containers):
            value = sum(milli(one.usage[target.resource]) for one in containers)
            window = row.window.duration / _NANO
            found[row.metadata.name] = Usage(value, from_time(row.timestamp), window)
    return found


def propose(
    target: Target,
    current: int,
    metrics: Mapping[str, Usage],
    pods: Sequence[core.Pod],
    tolerances: Tolerances,
    settings: Settings,
    now: float,
) -> Proposal:
    """Return the replicas with which the pods' average usage would be the target's.

    Pods without metrics count as if they used their target when the others use less, and as if they used
    nothing when the others use more; so do pods that are not ready in the second case. Raises: MetricError.
    """
    if not pods:
        raise MetricError("no pods returned by selector while calculating replica count")
    groups = _group(pods, metrics, target.resource, settings, now)
    counted = {
        name: each.value
        for name, each in metrics.items()
        if name not in groups.unready and name not in groups.left_out
    }
    if not counted:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
    requests = {} if target.utilization is None else _requests(pods, target)
    measure = _measure(target, requests)
    ratio, utilization, average = measure(counted)
    unchanged = Proposal(current, average, utilization)
    fill = bool(groups.unready) and ratio > 1.0
    if not fill and not groups.missing:
        if tolerances.ignore(ratio):
            return unchanged
        return Proposal(_ceil(ratio * groups.ready), average, utilization)
    if ratio < 1.0:
        counted.update({name: _full_usage(target, requests, name) for name in groups.missing})
    elif ratio > 1.0 or target.utilization is None:
        counted.update(dict.fromkeys(groups.missing, 0))
    if fill:
        counted.update(dict.fromkeys(groups.unready, 0))
    again, _, _ = measure(counted)
    if tolerances.ignore(again) or (ratio < 1.0 < again) or (again < 1.0 < ratio):
        return unchanged
    replicas = _ceil(again * len(counted))
    if (again < 1.0 and replicas > current) or (again > 1.0 and replicas < current):
        return unchanged
    return Proposal(replicas, average, utilization)


def _ceil(number: float) -> int:
    return math.ceil(number)


def _measure(
    target: Target, requests: Mapping[str, int]
) -> Callable[[Mapping[str, int]], tuple[float, int | None, int]]:
    """Return the function from usages to their ratio to the target, their utilization and average."""

    def of_requests(usage: Mapping[str, int]) -> tuple[float, int | None, int]:
        known = [name for name in usage if name in requests]
        requested, used = sum(requests[name] for name in known), sum(usage[name] for name in known)
        if not requested:
            raise MetricError("no metrics returned matched known pods")
        percent = used * 100 // requested
        return percent / (target.utilization or 1), percent, used // len(known)

    def of_average(usage: Mapping[str, int]) -> tuple[float, int | None, int]:
        average = sum(usage.values()) // len(usage)
        return average / target.average, None, average

    return of_average if target.utilization is None else of_requests


def _full_usage(target: Target, requests: Mapping[str, int], name: str) -> int:
    """Return the usage that keeps a pod's share of the replicas."""
    if target.utilization is None:
        return target.average
    return requests[name] * max(100, target.utilization) // 100


def _group(
    pods: Iterable[core.Pod], metrics: Mapping[str, Usage], resource: str, settings: Settings, now: float
) -> _Groups:
    ready, unready, missing, left_out = 0, set(), set(), set()
    for pod in pods:
        name = pod.metadata.name
        if is_terminating(pod) or pod.status.phase == "Failed":
            left_out.add(name)
        elif pod.status.phase == "Pending":
            unready.add(name)
        elif name not in metrics:
            missing.add(name)
        elif resource == CPU and _is_starting(pod, metrics[name], settings, now):
            unready.add(name)
        else:
            ready += 1
    return _Groups(ready, frozenset(unready), frozenset(missing), frozenset(left_out))


def _is_starting(pod: core.Pod, usage: Usage, settings: Settings, now: float) -> bool:
    """Report whether the usage of cpu may be that of the pod's start."""
    ready = get_condition(pod.status.conditions, "Ready")
    if ready is None or not pod.status.HasField("startTime"):
        return True
    started, since = from_time(pod.status.startTime), from_time(ready.lastTransitionTime)
    if started + settings.cpu_initialization_period > now:
        return ready.status == "False" or usage.time < since + usage.window
    return ready.status == "False" and started + settings.initial_readiness_delay > since


def _requests(pods: Iterable[core.Pod], target: Target) -> dict[str, int]:
    """Return the requests by pod. Raises: MetricError where a container has none."""
    found = {}
    for pod in pods:
        if pod.spec.resources.requests and not target.container:
            # The pod's own requests, and the containers' sums of what it does not request itself.
            of_pod = pod_requests(pod)
            if target.resource not in of_pod:
                raise MetricError(
                    f"missing pod-level request for {target.resource} in Pod {pod.metadata.name}"
                )
            found[pod.metadata.name] = of_pod[target.resource] * (1 if target.resource == CPU else 1000)
            continue
        total = 0
        for container in (*pod.spec.containers, *filter(is_sidecar, pod.spec.initContainers)):
            if target.container in ("", container.name):
                if target.resource not in container.resources.requests:
                    where = f"in container {container.name} of Pod {pod.metadata.name}"
                    raise MetricError(f"missing request for {target.resource} {where}")
                total += milli(container.resources.requests[target.resource])
        found[pod.metadata.name] = total
    return found
