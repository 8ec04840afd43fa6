"""Autoscalers, scales, pods and their metrics."""

from __future__ import annotations

from typing import Any

from nominee.controllers.horizontal_pod_autoscalers.replica_calculator import Usage
from nominee.machinery.api.pb import autoscaling, autoscaling_v1, core
from nominee.machinery.runtime.clock import Moment, to_time
from nominee.machinery.wire import codec
from nominee.machinery.wire.pod_metrics import PodMetrics

NOW = 1_700_000_000.0
START_SECONDS = 1_000.0
"""Of the monotonic clock, at NOW."""
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}}


def autoscaler(
    *metrics: Any, least: int = 1, most: int = 10, **spec: Any
) -> autoscaling.HorizontalPodAutoscaler:
    """Return an autoscaler of the deployment `web`."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return codec.from_json(
        autoscaling.HorizontalPodAutoscaler,
        {
            "metadata": {"name": "web", "namespace": "default", "uid": "uid-hpa"},
            "spec": {
                "scaleTargetRef": target,
                "minReplicas": least,
                "maxReplicas": most,
                "metrics": list(metrics) or [CPU],
                **spec,
            },
        },
    )


def moment(seconds: float = 0.0, *, jump: float = 0.0) -> Moment:
    """Return the moment so many seconds after NOW; the wall clock has jumped meanwhile."""
    return Moment(NOW + seconds + jump, START_SECONDS + seconds)


def scale(replicas: int, *, selector: str = "app=web") -> autoscaling_v1.Scale:
    """Return the scale of the target."""
    found = autoscaling_v1.Scale()
    found.metadata.name, found.metadata.namespace, found.metadata.resourceVersion = "web", "default", "7"
    found.spec.replicas = found.status.replicas = replicas
    found.status.selector = selector
    return found


def pod(
    name: str,
    *,
    phase: str = "Running",
    ready: bool = True,
    started: float = -1000.0,
    ready_since: float = -900.0,
    request: str = "100m",
    deleted: bool = False,
) -> core.Pod:
    """Return a pod; times are relative to NOW."""
    found = core.Pod()
    found.metadata.name, found.metadata.namespace = name, "default"
    found.metadata.labels["app"] = "web"
    if deleted:
        found.metadata.deletionTimestamp.CopyFrom(to_time(NOW))
    container = found.spec.containers.add(name="main")
    if request:
        container.resources.requests["cpu"].string = request
    found.status.phase = phase
    if phase != "Pending":
        found.status.startTime.CopyFrom(to_time(NOW + started))
        found.status.conditions.add(
            type="Ready",
            status="True" if ready else "False",
            lastTransitionTime=to_time(NOW + ready_since),
        )
    return found


def usage(milli: int, *, age: float = 0.0) -> Usage:
    """Return a pod's usage, measured over ten seconds."""
    return Usage(milli, NOW - age, 10.0)


def row(name: str, cpu: str, *, container: str = "main", resource: str = "cpu") -> PodMetrics:
    """Return a row of metrics.k8s.io."""
    found = PodMetrics()
    found.metadata.name, found.metadata.namespace = name, "default"
    found.timestamp.CopyFrom(to_time(NOW))
    found.window.duration = 10_000_000_000
    found.containers.add(name=container).usage[resource].string = cpu
    return found
