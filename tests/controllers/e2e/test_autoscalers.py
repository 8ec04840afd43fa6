"""HorizontalPodAutoscalers through kubectl, against a cluster of real processes.

Pages of kubernetes.io/docs: tasks/run-application/horizontal-pod-autoscale ("HPA") and its walkthrough
("walkthrough"); Go files are of kube-controller-manager 1.36, pkg/controller/podautoscaler. Autoscalers look
once a second. A pod's containers use what its annotation says, else what they request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiserver.rest.test_kubectl import KUBECTL, Session
from tests.controllers.e2e.clusters import observed
from tests.support.eventually import eventually_sync

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session"),
]
_HPA = "--arg=controllers=--horizontal-pod-autoscaler-"
CONTAINER = {"name": "c", "image": "app", "resources": {"requests": {"cpu": "100m"}}}
HELPER = {"name": "helper", "image": "app", "resources": {"requests": {"cpu": "1"}}}
AT_ONCE = {"stabilizationWindowSeconds": 0}
DOWN_AT_ONCE = {"scaleDown": AT_ONCE}
HALF_HOUR = 1800


def template(
    name: str, usage: str = "", *, annotations: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    annotations = {**(annotations or {}), **({"nominee.dev/cpu-usage": usage} if usage else {})}
    metadata = {"labels": {"app": name}, "annotations": annotations}
    return {
        "metadata": metadata,
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [CONTAINER], **spec},
    }


def deployment(name: str, replicas: int, usage: str, **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": name}}
    pods = template(name, usage, **spec)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": pods},
    }


def controller(name: str, replicas: int, usage: str = "") -> dict[str, Any]:
    """Return a ReplicationController, whose selector the API server completes."""
    pods = template(name, usage)
    return {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": pods},
    }


def autoscaler(name: str, *metrics: dict[str, Any], **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    defaults = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 4, "metrics": metrics or [CPU]}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {**defaults, **spec},
    }


def scaled(name: str, replicas: int, usage: str, *metrics: dict[str, Any], **spec: Any) -> list[Any]:
    """Return a deployment and its autoscaler."""
    return [deployment(name, replicas, usage), autoscaler(name, *metrics, **spec)]


def policy(direction: str, kind: str, value: int) -> dict[str, Any]:
    """Return a behavior with one policy of half an hour, without stabilization."""
    row = {"type": kind, "value": value, "periodSeconds": HALF_HOUR}
    return {"behavior": {direction: {**AT_ONCE, "policies": [row]}}}


def resource(name: str, **target: Any) -> dict[str, Any]:
    kind = "Utilization" if "averageUtilization" in target else "AverageValue"
    return {"type": "Resource", "resource": {"name": name, "target": {"type": kind, **target}}}


def of_container(container: str) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": 50}
    source = {"name": "cpu", "container": container, "target": target}
    return {"type": "ContainerResource", "containerResource": source}


CPU = resource("cpu", averageUtilization=50)
EXTERNAL = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "1"}},
}
BARE = {**CONTAINER, "resources": {}}
OLD = {"apiVersion": "v1", "kind": "ReplicationController", "name": "old-busy"}
NOWHERE = {"nodeSelector": {"no": "node"}}
LATE = {"annotations": {"nominee.dev/ready-delay": "1h"}}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"}
MEMORY = {"annotations": {"nominee.dev/memory-usage": "150Mi"}}
OBJECTS = [
    deployment("busy", 1, "200m"),
    *scaled("idle", 3, "10m", behavior=DOWN_AT_ONCE),
    *scaled("outside", 1, "50m", minReplicas=2),
    *scaled("external", 1, "50m", EXTERNAL),
    deployment("bare", 1, "50m", containers=[BARE]),
    autoscaler("bare"),
    *scaled("off", 0, "50m"),
    autoscaler("nope"),
    controller("old-busy", 1, "200m"),
    autoscaler("old-busy", scaleTargetRef=OLD),
    *scaled("steady", 3, "10m"),
    *scaled("crowd", 4, "50m", maxReplicas=2),
    *scaled("up-by-one", 1, "200m", **policy("scaleUp", "Pods", 1)),
    *scaled("down-by-half", 4, "10m", **policy("scaleDown", "Percent", 50)),
    *scaled("never-down", 3, "10m", behavior={"scaleDown": {**AT_ONCE, "selectPolicy": "Disabled"}}),
    *scaled("tolerated", 1, "54m"),
    *scaled("intolerant", 1, "54m", behavior={"scaleUp": {"tolerance": "50m"}}),
    deployment("pending", 1, "50m", **NOWHERE),
    autoscaler("pending"),
    deployment("unready", 1, "200m", **LATE),
    autoscaler("unready"),
    deployment("pair", 1, "100m", containers=[CONTAINER, HELPER]),
    autoscaler("pair", of_container("c")),
    *scaled("no-such", 1, "50m", of_container("other")),
    *scaled("amount", 1, "200m", resource("cpu", averageValue="100m")),
    deployment("several", 1, "60m", **MEMORY),
    autoscaler("several", CPU, resource("memory", averageValue="50Mi")),
    *scaled("half-known", 1, "200m", CPU, EXTERNAL),
    *scaled("half-known-idle", 3, "10m", CPU, EXTERNAL, behavior=DOWN_AT_ONCE),
    deployment("shared", 2, "50m"),
    *(autoscaler("shared") | {"metadata": {"name": name}} for name in ("first", "second")),
    autoscaler("widget", scaleTargetRef=WIDGET),
    *scaled("kept", 2, "50m", minReplicas=2),
    *scaled("seen", 1, "200m"),
]


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Yield a session with all objects, which act at the same time."""
    options = f"{_HPA}sync-period=1s", f"{_HPA}cpu-initialization-period=0s"
    with observed(tmp_path_factory.mktemp("autoscalers") / "cluster", *options) as session:
        create(session, {"apiVersion": "v1", "kind": "List", "items": OBJECTS})
        session("autoscale", "deployment", "busy", "--cpu-percent=50", "--min=1", "--max=4")
        yield session


def create(session: Session, document: dict[str, Any], *words: str) -> None:
    session("create", *words, "-f", "-", stdin=json.dumps(document))


def until(session: Session, resource: str, path: str, value: object) -> None:
    """Wait until a field of an object has a value."""
    session("wait", f"--for=jsonpath={path}={value}", resource, "--timeout=90s")


def pods(session: Session, app: str) -> dict[str, dict[str, Any]]:
    """Return the pods with a label app that do not terminate, by name."""
    found = session.json("get", "pods", "-l", f"app={app}")["items"]
    return {p["metadata"]["name"]: p for p in found if "deletionTimestamp" not in p["metadata"]}


def has_pods(session: Session, app: str, count: int) -> dict[str, dict[str, Any]]:
    return eventually_sync(lambda: pods(session, app), lambda found: len(found) == count)


def rescales(session: Session, hpa: str) -> list[str]:
    """Return the notes of the events about changed replicas."""
    selector = f"involvedObject.name={hpa},reason=SuccessfulRescale"
    return [each["message"] for each in session.json("get", "events", "--field-selector", selector)["items"]]


def condition(session: Session, hpa: str, reason: str) -> dict[str, Any]:
    """Wait for a condition of an autoscaler with this reason."""

    def with_reason() -> list[dict[str, Any]]:
        status = session.json("get", "hpa", hpa)["status"]
        return [row for row in status.get("conditions", ()) if row["reason"] == reason]

    return eventually_sync(with_reason, bool)[0]


def test_usage_above_the_target_scales_up_to_the_maximum(kubectl: Session) -> None:
    """HPA, "Algorithm details": desired = ceil(current * usage / target), at most maxReplicas."""
    until(kubectl, "deploy/busy", "{.status.readyReplicas}", 4)
    limited = condition(kubectl, "busy", "TooManyReplicas")
    assert (limited["type"], limited["status"]) == ("ScalingLimited", "True")
    assert limited["message"] == "the desired replica count is more than the maximum replica count"


def test_get_shows_targets_and_replicas(kubectl: Session) -> None:
    """Walkthrough, "Increase the load": the columns of `kubectl get hpa`."""
    until(kubectl, "hpa/busy", "{.status.currentReplicas}", 4)
    row = kubectl("get", "hpa", "busy", "--no-headers").split()
    assert row[:7] == ["busy", "Deployment/busy", "cpu:", "200%/50%", "1", "4", "4"]


def test_describe_shows_conditions_and_events(kubectl: Session) -> None:
    """Walkthrough, "Appendix: Horizontal Pod Autoscaler Status Conditions"."""
    until(kubectl, "deploy/busy", "{.spec.replicas}", 4)
    text = eventually_sync(
        lambda: kubectl("describe", "hpa", "busy"), lambda found: "SuccessfulRescale" in found
    )
    assert re.search(r"ScalingActive +True +ValidMetricFound", text)
    rescale = r"Normal +SuccessfulRescale .* horizontal-pod-autoscaler +New size: 4; reason: "
    assert re.search(rescale + r"cpu resource utilization \(percentage of request\) above target", text)


def test_usage_below_the_target_scales_down(kubectl: Session) -> None:
    """HPA, "Stabilization window": a window of 0 seconds scales down at once, to minReplicas."""
    until(kubectl, "deploy/idle", "{.status.replicas}", 1)
    events = kubectl("get", "events", "--field-selector=involvedObject.name=idle,reason=SuccessfulRescale")
    assert "reason: All metrics below target" in events


def test_a_target_below_the_minimum_is_scaled_without_metrics(kubectl: Session) -> None:
    """horizontal.go, reconcileAutoscaler: the bounds come before the metrics."""
    until(kubectl, "deploy/outside", "{.spec.replicas}", 2)
    text = eventually_sync(
        lambda: kubectl("describe", "hpa", "outside"), lambda found: "SuccessfulRescale" in found
    )
    assert "New size: 2; reason: Current number of replicas below Spec.MinReplicas" in text


def test_an_external_metric_cannot_be_fetched(kubectl: Session) -> None:
    """HPA, "Support for metrics APIs": external.metrics.k8s.io is served by adapters alone."""
    failed = condition(kubectl, "external", "FailedGetExternalMetric")
    assert (failed["type"], failed["status"]) == ("ScalingActive", "False")
    assert "unable to get external metric default/queue" in failed["message"]
    assert kubectl.json("get", "deploy", "external")["spec"]["replicas"] == 1


def test_a_container_without_request_has_no_utilization(kubectl: Session) -> None:
    """HPA, "Algorithm details": without the resource request, utilization is not defined."""
    failed = condition(kubectl, "bare", "FailedGetResourceMetric")
    expected = r"failed to get cpu utilization: missing request for cpu in container c of Pod bare-\w+-\w+$"
    assert re.search(expected, failed["message"])


def test_a_target_of_zero_replicas_is_off(kubectl: Session) -> None:
    """HPA, "Implicit maintenance-mode deactivation"."""
    disabled = condition(kubectl, "off", "ScalingDisabled")
    assert disabled["message"] == "scaling is disabled since the replica count of the target is zero"
    assert kubectl.json("get", "deploy", "off")["spec"]["replicas"] == 0


def test_a_target_that_does_not_exist(kubectl: Session) -> None:
    """horizontal.go, reconcileAutoscaler: FailedGetScale."""
    failed = condition(kubectl, "nope", "FailedGetScale")
    assert (failed["type"], failed["status"]) == ("AbleToScale", "False")
    assert 'deployments.apps "nope" not found' in failed["message"]


def test_a_replication_controller_is_a_target(kubectl: Session) -> None:
    """RC, "Scaling", and HPA, "API Object": anything with a scale."""
    until(kubectl, "rc/old-busy", "{.status.readyReplicas}", 4)
    has_pods(kubectl, "old-busy", 4)


def test_other_usage_is_followed(kubectl: Session) -> None:
    """HPA, "How does a HorizontalPodAutoscaler work?": the loop goes on; 30m for each of 2 pods is enough."""
    until(kubectl, "deploy/outside", "{.status.readyReplicas}", 2)
    annotation = {"nominee.dev/cpu-usage": "90m"}
    patch = {"spec": {"template": {"metadata": {"annotations": annotation}}}}
    kubectl("patch", "deploy", "outside", "-p", json.dumps(patch))
    until(kubectl, "deploy/outside", "{.status.readyReplicas}", 4)


def test_without_its_autoscaler_a_target_keeps_its_replicas(kubectl: Session) -> None:
    """HPA, "API Object": it only writes the scale of its target."""
    until(kubectl, "deploy/busy", "{.spec.replicas}", 4)
    assert kubectl("delete", "hpa", "busy").startswith('horizontalpodautoscaler.autoscaling "busy" deleted')
    assert kubectl.json("get", "deploy", "busy")["spec"]["replicas"] == 4


def test_recent_recommendations_delay_scaling_down(kubectl: Session) -> None:
    """HPA, "Stabilization window": of the last five minutes the highest recommendation counts."""
    stable = condition(kubectl, "steady", "ScaleDownStabilized")
    text = "recent recommendations were higher than current one, applying the highest recent recommendation"
    assert (stable["type"], stable["status"], stable["message"]) == ("AbleToScale", "True", text)
    assert kubectl.json("get", "deploy", "steady")["spec"]["replicas"] == 3


def test_a_target_above_the_maximum_is_scaled_without_metrics(kubectl: Session) -> None:
    """horizontal.go, reconcileAutoscaler: the bounds come before the metrics."""
    until(kubectl, "deploy/crowd", "{.spec.replicas}", 2)
    notes = eventually_sync(lambda: rescales(kubectl, "crowd"), bool)
    assert notes == ["New size: 2; reason: Current number of replicas above Spec.MaxReplicas"]


def test_a_policy_limits_scaling_up(kubectl: Session) -> None:
    """HPA, "Scaling policies": one pod in each period."""
    until(kubectl, "deploy/up-by-one", "{.status.readyReplicas}", 2)
    limited = condition(kubectl, "up-by-one", "ScaleUpLimit")
    assert (limited["type"], limited["status"]) == ("ScalingLimited", "True")
    assert limited["message"] == "the desired replica count is increasing faster than the maximum scale rate"
    # 200 % of 50 % with two pods: more are wanted, now and later.
    until(kubectl, "hpa/up-by-one", "{.status.currentMetrics[0].resource.current.averageUtilization}", 200)
    assert kubectl.json("get", "deploy", "up-by-one")["spec"]["replicas"] == 2


def test_a_policy_limits_scaling_down(kubectl: Session) -> None:
    """HPA, "Scaling policies": half of the pods in each period."""
    until(kubectl, "deploy/down-by-half", "{.status.replicas}", 2)
    limited = condition(kubectl, "down-by-half", "ScaleDownLimit")
    assert limited["message"] == "the desired replica count is decreasing faster than the maximum scale rate"
    assert rescales(kubectl, "down-by-half") == ["New size: 2; reason: All metrics below target"]


def test_a_direction_is_disabled(kubectl: Session) -> None:
    """HPA, "Scaling policies" (selectPolicy: Disabled)."""
    limited = condition(kubectl, "never-down", "ScaleDownLimit")
    assert (limited["type"], limited["status"]) == ("ScalingLimited", "True")
    assert kubectl.json("get", "deploy", "never-down")["spec"]["replicas"] == 3


def test_usage_within_the_tolerance_changes_nothing(kubectl: Session) -> None:
    """HPA, "Algorithm details": a ratio of 1.08 is within 0.1 of 1."""
    ready = condition(kubectl, "tolerated", "ReadyForNewScale")
    assert (ready["type"], ready["message"]) == ("AbleToScale", "recommended size matches current size")
    assert condition(kubectl, "tolerated", "DesiredWithinRange")["status"] == "False"
    assert kubectl("get", "hpa", "tolerated", "--no-headers").split()[3] == "54%/50%"
    assert kubectl.json("get", "deploy", "tolerated")["spec"]["replicas"] == 1


def test_a_tolerance_of_its_own(kubectl: Session) -> None:
    """HPA, "Tolerance"; KEP-4951, on since 1.35: 1.08 is more than 1.05."""
    until(kubectl, "deploy/intolerant", "{.spec.replicas}", 4)  # by one pod each time
    reason = "reason: cpu resource utilization (percentage of request) above target"
    assert f"New size: 2; {reason}" in eventually_sync(lambda: rescales(kubectl, "intolerant"), bool)


def test_pods_that_do_not_run_have_no_metrics(kubectl: Session) -> None:
    """HPA, "Algorithm details"; metrics/client.go, GetResourceMetric."""
    failed = condition(kubectl, "pending", "FailedGetResourceMetric")
    problem = "no metrics returned from resource metrics API"
    expected = f"failed to get cpu utilization: unable to get metrics for resource cpu: {problem}"
    assert failed["message"] == f"the HPA was unable to compute the replica count: {expected}"
    assert kubectl("get", "hpa", "pending", "--no-headers").split()[3] == "<unknown>/50%"


def test_pods_that_were_never_ready_are_set_aside(kubectl: Session) -> None:
    """HPA, "Algorithm details" (not yet ready pods and cpu); replica_calculator.go, groupPods."""
    failed = condition(kubectl, "unready", "FailedGetResourceMetric")
    assert "did not receive metrics for targeted pods (pods might be unready)" in failed["message"]
    assert kubectl.json("get", "deploy", "unready")["spec"]["replicas"] == 1


def test_one_container_of_a_pod(kubectl: Session) -> None:
    """HPA, "Container resource metrics": the other container's large request does not count."""
    until(kubectl, "deploy/pair", "{.spec.replicas}", 4)
    row = kubectl("get", "hpa", "pair", "--no-headers").split()
    assert row[2:4] == ["cpu:", "100%/50%"]
    (metric,) = kubectl.json("get", "hpa", "pair")["status"]["currentMetrics"]
    assert metric["containerResource"]["container"] == "c"


def test_a_container_that_does_not_exist(kubectl: Session) -> None:
    """HPA, "Container resource metrics"; metrics/client.go, getContainerMetrics."""
    failed = condition(kubectl, "no-such", "FailedGetContainerResourceMetric")
    expected = r"container other not present in metrics for pod default/no-such-\w+-\w+"
    assert re.search(expected, failed["message"])


def test_an_amount_of_usage_is_a_target(kubectl: Session) -> None:
    """Walkthrough, "Autoscaling on multiple metrics" (AverageValue)."""
    until(kubectl, "deploy/amount", "{.spec.replicas}", 4)
    assert kubectl("get", "hpa", "amount", "--no-headers").split()[2:4] == ["cpu:", "200m/100m"]
    note = eventually_sync(lambda: rescales(kubectl, "amount"), bool)[0]
    assert note.endswith("reason: cpu resource above target")


def test_of_several_metrics_the_largest_proposal_counts(kubectl: Session) -> None:
    """HPA, "Scaling on multiple metrics": cpu asks for two pods, memory for three."""
    until(kubectl, "deploy/several", "{.status.readyReplicas}", 4)  # three times 150Mi is too much again
    first = eventually_sync(lambda: rescales(kubectl, "several"), bool)
    assert "New size: 3; reason: memory resource above target" in first
    targets = kubectl("get", "hpa", "several", "--no-headers").split()[2:6]
    assert targets == ["cpu:", "60%/50%,", "memory:", "157286400/50Mi"]


def test_one_metric_is_enough_to_scale_up(kubectl: Session) -> None:
    """HPA, "Scaling on multiple metrics"; horizontal.go, computeReplicasForMetrics."""
    until(kubectl, "deploy/half-known", "{.spec.replicas}", 4)
    assert condition(kubectl, "half-known", "ValidMetricFound")["status"] == "True"


def test_a_failed_metric_prevents_scaling_down(kubectl: Session) -> None:
    """HPA, "Scaling on multiple metrics": scaling down is skipped if a metric cannot be fetched."""
    failed = condition(kubectl, "half-known-idle", "FailedGetExternalMetric")
    assert (failed["type"], failed["status"]) == ("ScalingActive", "False")
    events = kubectl("get", "events", "--field-selector=involvedObject.name=half-known-idle")
    assert (
        "invalid metrics (1 invalid out of 2), first error is: failed to get queue external metric" in events
    )
    assert kubectl.json("get", "deploy", "half-known-idle")["spec"]["replicas"] == 3


def test_two_autoscalers_of_the_same_pods_scale_nothing(kubectl: Session) -> None:
    """Walkthrough, "Appendix" (AmbiguousSelector); horizontal.go, validateAndParseSelector."""
    message = condition(kubectl, "first", "AmbiguousSelector")["message"]
    assert message.startswith("pods by selector app=shared are controlled by multiple HPAs: [")
    assert {"default/first", "default/second"} <= set(re.split(r"[][ ]", message))
    assert condition(kubectl, "second", "AmbiguousSelector")["status"] == "False"
    assert kubectl.json("get", "deploy", "shared")["spec"]["replicas"] == 2


def test_a_target_of_an_unknown_kind(kubectl: Session) -> None:
    """horizontal.go, reconcileAutoscaler (RESTMappings)."""
    failed = condition(kubectl, "widget", "FailedGetScale")
    assert (failed["type"], failed["status"]) == ("AbleToScale", "False")
    assert 'no matches for kind "Widget" in group "example.com"' in failed["message"]


def test_the_status_counts_and_dates(kubectl: Session) -> None:
    """API reference, HorizontalPodAutoscalerStatus; horizontal.go, setStatus."""
    until(kubectl, "hpa/seen", "{.status.currentReplicas}", 4)
    found = kubectl.json("get", "hpa", "seen")
    status = found["status"]
    assert status["desiredReplicas"] == 4
    assert status["lastScaleTime"] >= found["metadata"]["creationTimestamp"]
    (metric,) = status["currentMetrics"]
    current = {"averageUtilization": 200, "averageValue": "200m"}
    assert metric == {"type": "Resource", "resource": {"name": "cpu", "current": current}}
    assert {c["type"] for c in status["conditions"]} == {"AbleToScale", "ScalingActive", "ScalingLimited"}


def test_the_older_version_shows_cpu_and_annotations(kubectl: Session) -> None:
    """HPA, "API Object": what autoscaling/v1 has no field for is in annotations there."""
    until(kubectl, "hpa/seen", "{.status.currentReplicas}", 4)
    old = kubectl.json("get", "horizontalpodautoscalers.v1.autoscaling", "seen")
    assert old["spec"]["targetCPUUtilizationPercentage"] == 50
    assert old["status"]["currentCPUUtilizationPercentage"] == 200
    conditions = json.loads(old["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/conditions"])
    assert {c["type"] for c in conditions} == {"AbleToScale", "ScalingActive", "ScalingLimited"}


def test_an_autoscaler_to_zero_is_refused(kubectl: Session) -> None:
    """HPA, "Scaling to and from zero": HPAScaleToZero is off in 1.36; validation.go, validateMetrics."""
    refused = kubectl.fails("create", "-f", "-", stdin=json.dumps(autoscaler("zero", minReplicas=0)))
    assert "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1" in refused
    text = "must specify at least one Object or External metric to support scaling to zero replicas"
    assert f"spec.metrics: Forbidden: {text}" in refused


def test_a_target_without_group_is_refused(kubectl: Session) -> None:
    """kubernetes/kubernetes#132537; validation.go, ValidateAPIVersion."""
    target = {"kind": "Deployment", "name": "busy"}
    refused = kubectl.fails("create", "-f", "-", stdin=json.dumps(autoscaler("x", scaleTargetRef=target)))
    assert 'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group' in refused


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_a_target_outlives_its_autoscaler(kubectl: Session, cascade: str) -> None:
    """tasks/administer-cluster/use-cascading-deletion: the target is no dependent of its autoscaler."""
    if "not found" in kubectl.run("get", "hpa", "kept").stderr:
        create(kubectl, autoscaler("kept", minReplicas=2))
    condition(kubectl, "kept", "ValidMetricFound")
    kubectl("delete", "hpa", "kept", f"--cascade={cascade}", "--timeout=60s")
    assert "not found" in kubectl.fails("get", "hpa", "kept")
    deployed = kubectl.json("get", "deploy", "kept")
    assert deployed["spec"]["replicas"] == 2
    assert "deletionTimestamp" not in deployed["metadata"]


# Containers by rule, and warnings


def test_kubectl_shows_an_image_that_cannot_be_pulled(kubectl: Session) -> None:
    """concepts/containers/images, "ImagePullBackOff"."""
    body = deployment("missing", 1, "")
    body["spec"]["template"]["metadata"]["annotations"] = {"nominee.dev/image-pull": "never"}
    create(kubectl, body)
    eventually_sync(
        lambda: kubectl("get", "pods", "-l", "app=missing", "--no-headers"),
        lambda text: " ImagePullBackOff " in text,
    )


def test_kubectl_prints_that_nothing_acts_on_an_ingress(kubectl: Session) -> None:
    """reference/using-api/deprecation-policy: kubectl prints Warning headers."""
    done = kubectl.run("create", "ingress", "web", "--rule=example.org/*=web:80")
    assert (done.returncode, done.stderr) == (0, "Warning: nominee: nothing acts on Ingress\n")
