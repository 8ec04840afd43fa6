"""One sync of an autoscaler: conditions, events, status, and the change of the replicas.

Reasons and messages as kube-controller-manager 1.36's, pkg/controller/podautoscaler/horizontal.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from nominee.controllers.horizontal_pod_autoscalers.autoscaling import (
    Rescale,
    Sync,
    Usages,
    decide,
    reads_metrics,
    target_kind,
)
from nominee.controllers.horizontal_pod_autoscalers.normalization import History
from nominee.controllers.horizontal_pod_autoscalers.replica_calculator import Settings
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.pb import autoscaling
from nominee.machinery.wire import codec
from tests.controllers.horizontal_pod_autoscalers.builders import (
    CPU,
    NOW,
    autoscaler,
    moment,
    pod,
    row,
    scale,
)

UTILIZATION = "cpu resource utilization (percentage of request)"


def synced(
    hpa: autoscaling.HorizontalPodAutoscaler,
    replicas: int,
    cpu: str = "50m",
    *,
    rows: Usages | None = None,
    selector: str = "app=web",
) -> tuple[Sync, Rescale | None]:
    """Return a sync and its decision; each pod uses so much."""
    pods = [pod(f"p{number}") for number in range(replicas)]
    if rows is None:
        rows = [row(each.metadata.name, cpu) for each in pods]
    sync = Sync.of(hpa, moment())
    target = scale(replicas, selector=selector)
    return sync, decide(sync, target, rows, pods, History(), Settings())


def conditions(sync: Sync) -> list[str]:
    return [f"{one.type}={one.status} {one.reason}" for one in sync.hpa.status.conditions]


def message(sync: Sync, name: str) -> str:
    (found,) = [one.message for one in sync.hpa.status.conditions if one.type == name]
    return found


def events(sync: Sync) -> list[str]:
    return [f"{one.type} {one.reason}: {one.note}" for one in sync.events]


def test_usage_above_the_target() -> None:
    sync, rescale = synced(autoscaler(), 2, "100m")
    assert rescale == Rescale(4, f"{UTILIZATION} above target")
    sync.rescale_done(rescale, 2, History())
    assert conditions(sync) == [
        "AbleToScale=True SucceededRescale",
        "ScalingActive=True ValidMetricFound",
        "ScalingLimited=False DesiredWithinRange",
    ]
    expected = f"the HPA was able to successfully calculate a replica count from {UTILIZATION}"
    assert message(sync, "ScalingActive") == expected
    assert message(sync, "AbleToScale") == "the HPA controller was able to update the target scale to 4"
    assert events(sync) == [f"Normal SuccessfulRescale: New size: 4; reason: {UTILIZATION} above target"]
    status = codec.to_json(sync.hpa.status)
    assert status["currentMetrics"] == [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "current": {"averageValue": "100m", "averageUtilization": 100}},
        }
    ]
    assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 4)
    assert sync.hpa.status.lastScaleTime.seconds == int(NOW)


@pytest.mark.parametrize("behavior", [True, False])
def test_a_scale_counts_for_later_policies_with_a_behavior(behavior: bool) -> None:
    hpa, history = autoscaler(), History()
    if behavior:
        hpa.spec.behavior.SetInParent()
    sync = Sync.of(hpa, moment())
    sync.rescale_done(Rescale(4, "because"), 2, history)
    assert history.change(60, sync.now) == (2 if behavior else 0)


def test_usage_at_the_target_changes_nothing() -> None:
    sync, rescale = synced(autoscaler(), 3, "50m")
    assert rescale is None
    assert conditions(sync)[0] == "AbleToScale=True ReadyForNewScale"
    assert (sync.hpa.status.currentReplicas, sync.hpa.status.desiredReplicas) == (3, 3)
    assert events(sync) == []


def test_the_first_sync_does_not_scale_down() -> None:
    """A controller that was restarted has no history: the present replicas count as recommended."""
    sync, rescale = synced(autoscaler(), 5, "10m")
    assert rescale is None
    assert conditions(sync)[0] == "AbleToScale=True ScaleDownStabilized"


def test_scaling_down_when_the_window_is_over() -> None:
    history, target, rows = History(), scale(4), [row(f"p{n}", "10m") for n in range(4)]
    pods = [pod(f"p{n}") for n in range(4)]
    first = Sync.of(autoscaler(), moment())
    assert decide(first, target, rows, pods, history, Settings()) is None
    second = Sync.of(first.hpa, moment(301))
    found = decide(second, target, rows, pods, history, Settings())
    assert found == Rescale(1, "All metrics below target")


@pytest.mark.parametrize(("seconds", "is_over"), [(299, False), (301, True)])
@pytest.mark.parametrize("jump", [-61.5, 61.5])
def test_a_jump_of_the_wall_clock_ends_no_window(seconds: float, jump: float, *, is_over: bool) -> None:
    """Times of recommendations and of scalings have Go's monotonic reading; those in the status have not."""
    history, target, rows = History(), scale(4), [row(f"p{n}", "10m") for n in range(4)]
    pods = [pod(f"p{n}") for n in range(4)]
    first = Sync.of(autoscaler(), moment())
    assert decide(first, target, rows, pods, history, Settings()) is None
    second = Sync.of(first.hpa, moment(seconds, jump=jump))
    found = decide(second, target, rows, pods, history, Settings())
    assert (found is not None) is is_over
    if found is not None:
        second.rescale_done(found, 4, history)
        assert second.hpa.status.lastScaleTime.seconds == int(NOW + seconds + jump)


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        (12, Rescale(10, "Current number of replicas above Spec.MaxReplicas")),
        (1, Rescale(2, "Current number of replicas below Spec.MinReplicas")),
    ],
)
def test_replicas_out_of_bounds_need_no_metrics(replicas: int, expected: Rescale) -> None:
    hpa = autoscaler(least=2)
    assert not reads_metrics(hpa, scale(replicas))
    assert reads_metrics(hpa, scale(5))
    assert synced(hpa, replicas, rows=[])[1] == expected


@pytest.mark.parametrize("least", [0, 1])
def test_a_target_of_no_replicas_is_left_alone(least: int) -> None:
    """Source: kubernetes/kubernetes#135118 (without the condition ScaledToZero, also with minReplicas 0)."""
    sync, rescale = synced(autoscaler(least=least), 0)
    assert rescale is None
    assert conditions(sync)[1] == "ScalingActive=False ScalingDisabled"
    text = "scaling is disabled since the replica count of the target is zero"
    assert message(sync, "ScalingActive") == text
    assert not reads_metrics(autoscaler(least=least), scale(0))


def test_the_largest_of_several_metrics_counts() -> None:
    average = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageValue": "20m"}}}
    container = {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "main", "target": {"averageValue": "80m"}},
    }
    sync, rescale = synced(autoscaler(CPU, average, container), 2, "60m")
    assert rescale == Rescale(4, "cpu resource above target")
    assert message(sync, "ScalingActive").endswith("from cpu resource")
    types = [one.type for one in sync.hpa.status.currentMetrics]
    assert types == ["Resource", "Resource", "ContainerResource"]
    assert sync.hpa.status.currentMetrics[2].containerResource.container == "main"


def test_the_utilization_of_a_container_is_named_so() -> None:
    target = {"name": "cpu", "container": "main", "target": {"averageUtilization": 50}}
    sync, rescale = synced(autoscaler({"type": "ContainerResource", "containerResource": target}), 2, "100m")
    name = "cpu container resource utilization (percentage of request)"
    assert rescale == Rescale(4, f"{name} above target")
    assert message(sync, "ScalingActive").endswith(f"from {name}")


NO_CUSTOM = (
    "unable to fetch metrics from custom metrics API: "
    "no custom metrics API (custom.metrics.k8s.io) registered"
)
NO_EXTERNAL = (
    "unable to fetch metrics from external metrics API: the server could not find the requested resource "
    "(get queue.external.metrics.k8s.io)"
)
ABOUT = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}


@pytest.mark.parametrize(
    ("metric", "reason", "text"),
    [
        (
            {"type": "Pods", "pods": {"metric": {"name": "rate"}, "target": {"averageValue": "1"}}},
            "FailedGetPodsMetric",
            f"unable to get metric rate: {NO_CUSTOM}",
        ),
        (
            {
                "type": "Object",
                "object": {"metric": {"name": "rate"}, "describedObject": ABOUT, "target": {"value": "1"}},
            },
            "FailedGetObjectMetric",
            f"unable to get metric rate: Ingress on default main/{NO_CUSTOM}",
        ),
        (
            {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"value": "1"}}},
            "FailedGetExternalMetric",
            f"unable to get external metric default/queue/nil: {NO_EXTERNAL}",
        ),
        (
            {
                "type": "External",
                "external": {
                    "metric": {"name": "queue", "selector": {"matchLabels": {"of": "web"}}},
                    "target": {"averageValue": "1"},
                },
            },
            "FailedGetExternalMetric",
            "unable to get external metric default/queue/&LabelSelector{MatchLabels:map[string]string{of: web"
            f",}},MatchExpressions:[]LabelSelectorRequirement{{}},}}: {NO_EXTERNAL}",
        ),
    ],
)
def test_metrics_of_other_apis_cannot_be_fetched(metric: Any, reason: str, text: str) -> None:
    sync, rescale = synced(autoscaler(metric), 2)
    assert rescale is None
    assert conditions(sync)[1] == f"ScalingActive=False {reason}"
    assert message(sync, "ScalingActive") == f"the HPA was unable to compute the replica count: {text}"
    assert events(sync)[0] == f"Warning {reason}: {text}"
    assert "FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1)" in events(sync)[1]


@pytest.mark.parametrize(
    ("metric", "error"),
    [
        (
            {"object": {"metric": {"name": "rate"}, "describedObject": ABOUT, "target": {"value": "1"}}},
            "failed to get object metric value: unable to get metric rate: ",
        ),
        (
            {
                "object": {
                    "metric": {"name": "rate"},
                    "describedObject": ABOUT,
                    "target": {"averageValue": "1"},
                }
            },
            "failed to get object metric value: failed to get rate object metric: unable to get metric rate",
        ),
        (
            {"external": {"metric": {"name": "queue"}, "target": {"value": "1"}}},
            "failed to get queue external metric value: failed to get external metric queue: unable to get ",
        ),
        (
            {"external": {"metric": {"name": "queue"}, "target": {"averageValue": "1"}}},
            "failed to get queue external metric value: failed to get queue external metric: unable to get ",
        ),
    ],
)
def test_the_error_of_a_metric_names_its_target(metric: dict[str, Any], error: str) -> None:
    (name,) = metric
    sync, _ = synced(autoscaler({"type": name.capitalize(), **metric}), 2)
    assert f"first error is: {error}" in events(sync)[1]


def test_a_failed_metric_allows_scaling_up_alone() -> None:
    broken = {"type": "Pods", "pods": {"metric": {"name": "rate"}, "target": {"averageValue": "1"}}}
    _, rescale = synced(autoscaler(broken, CPU), 2, "100m")
    assert rescale == Rescale(4, f"{UTILIZATION} above target")
    sync, rescale = synced(autoscaler(broken, CPU), 4, "10m")
    assert rescale is None
    assert conditions(sync)[1] == "ScalingActive=False FailedGetPodsMetric"


def test_metrics_that_cannot_be_read() -> None:
    sync, _ = synced(autoscaler(), 2, rows=errors.service_unavailable("the server stops"))
    text = (
        "failed to get cpu utilization: unable to get metrics for resource cpu: "
        "unable to fetch metrics from resource metrics API: the server stops"
    )
    assert events(sync) == [
        f"Warning FailedGetResourceMetric: {text}",
        "Warning FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: "
        f"failed to get cpu resource metric value: {text}",
    ]
    assert conditions(sync) == [
        "AbleToScale=True SucceededGetScale",
        "ScalingActive=False FailedGetResourceMetric",
    ]


def test_a_container_that_the_pods_do_not_have() -> None:
    target = {"name": "cpu", "container": "side", "target": {"averageUtilization": 50}}
    sync, _ = synced(autoscaler({"type": "ContainerResource", "containerResource": target}), 1)
    assert conditions(sync)[1] == "ScalingActive=False FailedGetContainerResourceMetric"
    assert "container side not present in metrics for pod default/p0" in message(sync, "ScalingActive")
    assert "first error is: failed to get side container metric value: failed to get cpu" in events(sync)[1]


def test_a_scale_without_selector() -> None:
    sync, _ = synced(autoscaler(), 2, selector="")
    assert conditions(sync)[1] == "ScalingActive=False InvalidSelector"
    assert message(sync, "ScalingActive") == "the HPA target's scale is missing a selector"
    assert events(sync)[0] == "Warning SelectorRequired: selector is required"


def test_a_target_without_a_scale_or_that_refuses_one() -> None:
    sync = Sync.of(autoscaler(), moment())
    sync.scale_unknown("nothing there")
    assert events(sync) == ["Warning FailedGetScale: nothing there"]
    assert conditions(sync) == ["AbleToScale=False FailedGetScale"]
    sync.rescale_failed(Rescale(3, "because"), "conflict")
    assert events(sync)[1] == "Warning FailedRescale: New size: 3; reason: because; error: conflict"
    assert conditions(sync) == ["AbleToScale=False FailedUpdateScale"]


def test_a_target_that_refuses_a_scale_keeps_the_desired_replicas() -> None:
    """Source: horizontal.go, setCurrentReplicasAndMetricsInStatus."""
    hpa = autoscaler()
    hpa.status.desiredReplicas = 7
    sync, rescale = synced(hpa, 2, "100m")
    assert rescale is not None
    sync.rescale_failed(rescale, "conflict")
    assert (sync.hpa.status.currentReplicas, sync.hpa.status.desiredReplicas) == (2, 7)


def test_the_kind_of_the_target() -> None:
    hpa = autoscaler()
    assert target_kind(hpa) is kinds.DEPLOYMENT
    hpa.spec.scaleTargetRef.apiVersion, hpa.spec.scaleTargetRef.kind = "v1", "ReplicationController"
    assert target_kind(hpa) is kinds.REPLICATION_CONTROLLER
    hpa.spec.scaleTargetRef.kind = "Widget"
    assert target_kind(hpa) == 'no matches for kind "Widget" in group ""'


def test_a_tolerance_counts_where_the_version_has_it() -> None:
    hpa = autoscaler(behavior={"scaleUp": {"tolerance": "0"}, "scaleDown": {"tolerance": "0"}})
    pods, rows = [pod(f"p{n}") for n in range(50)], [row(f"p{n}", "54m") for n in range(50)]

    def proposed(*, configurable: bool) -> str:
        sync = Sync.of(hpa, moment())
        history = History()
        decide(sync, scale(50), rows, pods, history, Settings(), configurable_tolerance=configurable)
        return str(history.recommendations[-1].replicas)

    hpa.spec.maxReplicas = 100
    assert (proposed(configurable=True), proposed(configurable=False)) == ("54", "50")
