"""HorizontalPodAutoscalers and ReplicationControllers through kubectl, against a cluster of real processes.

Pages of kubernetes.io/docs: tasks/run-application/horizontal-pod-autoscale ("HPA"), its walkthrough
("walkthrough"), concepts/workloads/controllers/replicationcontroller ("RC"). Autoscalers look once a second.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.rest.test_kubectl import KUBECTL, Session
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session"),
]
_HPA = "--arg=controllers=--horizontal-pod-autoscaler-"
CONTAINER = {"name": "c", "image": "app", "resources": {"requests": {"cpu": "100m"}}}
DOWN_AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}


def _nominee(*words: str) -> None:
    command = [str(Path(sys.executable).with_name("nominee")), *words]
    subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)


def template(name: str, usage: str = "", **spec: Any) -> dict[str, Any]:
    annotations = {"nominee.dev/cpu-usage": usage} if usage else {}
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


def autoscaler(name: str, metric: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    cpu["resource"]["target"]["averageUtilization"] = 50  # type: ignore[index]  # a literal of two types
    defaults = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 4, "metrics": [metric or cpu]}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {**defaults, **spec},
    }


EXTERNAL = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "1"}},
}
BARE = {**CONTAINER, "resources": {}}
OLD = {"apiVersion": "v1", "kind": "ReplicationController", "name": "old-busy"}
OBJECTS = [
    deployment("busy", 1, "200m"),
    deployment("idle", 3, "10m"),
    autoscaler("idle", behavior=DOWN_AT_ONCE),
    deployment("outside", 1, "50m"),
    autoscaler("outside", minReplicas=2),
    deployment("external", 1, "50m"),
    autoscaler("external", EXTERNAL),
    deployment("bare", 1, "50m", containers=[BARE]),
    autoscaler("bare"),
    deployment("off", 0, "50m"),
    autoscaler("off"),
    autoscaler("nope"),
    controller("old-busy", 1, "200m"),
    autoscaler("old-busy", scaleTargetRef=OLD),
    *(controller(name, 2) for name in ("counted", "isolated", "templated", "orphaning", "background")),
    controller("foreground", 2),
    controller("limited", 3),
]
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q"},
    "spec": {"hard": {"pods": "1"}},
}


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Yield a session with all objects, which act at the same time."""
    directory = tmp_path_factory.mktemp("autoscalers") / "cluster"
    _nominee(
        "up", "--dir", str(directory), "--nodes", "2", "--detach", "--timeout", f"{PATIENCE_SECONDS:g}",
        "--components", "etcd,apiserver,scheduler,kubelet,controllers",
        f"{_HPA}sync-period=1s", f"{_HPA}cpu-initialization-period=0s",
    )  # fmt: skip
    try:
        session = Session(directory)
        session("create", "namespace", "full")
        create(session, QUOTA, "-n", "full")
        session("wait", "-n", "full", "--for=jsonpath={.status.used.pods}=0", "quota/q", "--timeout=60s")
        create(session, OBJECTS[-1], "-n", "full")
        create(session, {"apiVersion": "v1", "kind": "List", "items": OBJECTS[:-1]})
        session("autoscale", "deployment", "busy", "--cpu-percent=50", "--min=1", "--max=4")
        yield session
    finally:
        _nominee("down", "--dir", str(directory))
        shutil.rmtree(directory / "etcd", ignore_errors=True)


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


def condition(session: Session, hpa: str, reason: str) -> dict[str, Any]:
    """Wait for a condition of an autoscaler with this reason."""

    def with_reason() -> list[dict[str, Any]]:
        status = session.json("get", "hpa", hpa)["status"]
        return [row for row in status.get("conditions", ()) if row["reason"] == reason]

    return eventually_sync(with_reason, bool)[0]


# HorizontalPodAutoscalers


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


# ReplicationControllers


def test_pods_are_owned_and_counted(kubectl: Session) -> None:
    """RC, "Running an example ReplicationController"."""
    until(kubectl, "rc/counted", "{.status.readyReplicas}", 2)
    assert kubectl("get", "rc", "counted", "--no-headers").split()[:4] == ["counted", "2", "2", "2"]
    for name, pod in has_pods(kubectl, "counted", 2).items():
        assert name.startswith("counted-")
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["apiVersion"], owner["controller"]) == (
            "ReplicationController",
            "v1",
            True,
        )


def test_events_name_the_replication_controller(kubectl: Session) -> None:
    """RC, "Running an example ReplicationController": the events of `kubectl describe`."""
    text = eventually_sync(
        lambda: kubectl("describe", "rc", "counted"), lambda found: found.count("SuccessfulCreate") == 2
    )
    assert re.search(r"Normal +SuccessfulCreate .* replication-controller +Created pod: counted-\w{5}", text)


def test_a_deleted_pod_is_replaced_and_scaling_counts(kubectl: Session) -> None:
    """RC, "Rescheduling" and "Scaling"."""
    before = has_pods(kubectl, "counted", 2)
    kubectl("delete", "pod", next(iter(before)))
    after = eventually_sync(
        lambda: pods(kubectl, "counted"), lambda found: len(found) == 2 and set(found) != set(before)
    )
    assert len(set(after) & set(before)) == 1
    kubectl("scale", "rc", "counted", "--replicas=3")
    has_pods(kubectl, "counted", 3)
    kubectl("scale", "rc", "counted", "--replicas=1")
    has_pods(kubectl, "counted", 1)


def test_a_relabelled_pod_is_released_and_replaced(kubectl: Session) -> None:
    """RC, "Isolating pods from a ReplicationController"."""
    name = next(iter(has_pods(kubectl, "isolated", 2)))
    kubectl("label", "pod", name, "app=free", "--overwrite")
    has_pods(kubectl, "isolated", 2)
    freed = eventually_sync(
        lambda: kubectl.json("get", "pod", name), lambda pod: "ownerReferences" not in pod["metadata"]
    )
    assert freed["metadata"]["labels"]["app"] == "free"


def test_a_new_template_is_for_new_pods_alone(kubectl: Session) -> None:
    """RC, "Pod Template": later changes have no effect on pods that exist."""
    before = has_pods(kubectl, "templated", 2)
    kubectl("set", "image", "rc/templated", "c=new")
    kubectl("delete", "pod", next(iter(before)))
    after = eventually_sync(
        lambda: pods(kubectl, "templated"), lambda found: len(found) == 2 and set(found) != set(before)
    )
    assert {p["spec"]["containers"][0]["image"] for p in after.values()} == {"app", "new"}


def test_a_quota_is_a_condition(kubectl: Session) -> None:
    """replica_set.go, manageReplicas: ReplicaFailure with FailedCreate."""

    def failures() -> list[dict[str, Any]]:
        found = kubectl.json("get", "-n", "full", "rc", "limited")["status"].get("conditions", [])
        return [row for row in found if row["type"] == "ReplicaFailure"]

    (failure,) = eventually_sync(failures, bool)
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    assert "exceeded quota: q" in failure["message"]


def test_orphans_are_adopted(kubectl: Session) -> None:
    """RC, "Deleting only a ReplicationController": the pods stay, and another one may take them over."""
    before = has_pods(kubectl, "orphaning", 2)
    kubectl("delete", "rc", "orphaning", "--cascade=orphan")
    assert set(has_pods(kubectl, "orphaning", 2)) == set(before)
    create(kubectl, controller("orphaning", 2))
    until(kubectl, "rc/orphaning", "{.status.replicas}", 2)
    assert set(has_pods(kubectl, "orphaning", 2)) == set(before)


@pytest.mark.parametrize("policy", ["background", "foreground"])
def test_pods_go_with_their_controller(kubectl: Session, policy: str) -> None:
    """RC, "Deleting a ReplicationController and its Pods"."""
    has_pods(kubectl, policy, 2)
    kubectl("delete", "rc", policy, f"--cascade={policy}")
    has_pods(kubectl, policy, 0)


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
