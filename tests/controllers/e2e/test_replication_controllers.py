"""ReplicationControllers through kubectl, against a cluster of real processes.

"RC" is kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller; Go files are of
kube-controller-manager 1.36, pkg/controller. All that need not wait for a test are created at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiserver.rest.test_kubectl import KUBECTL, Namespaced, Session
from tests.support.eventually import eventually_sync

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session"),
]
CONTAINER = {"name": "c", "image": "app", "resources": {"requests": {"cpu": "100m"}}}
NEVER_READY = {"nominee.dev/ready-delay": "1h"}
NEVER_TRUE_SECONDS = 36_000


def template(
    labels: dict[str, str], annotations: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    pods = {"terminationGracePeriodSeconds": 0, "containers": [CONTAINER], **spec}
    return {"metadata": {"labels": labels, "annotations": annotations or {}}, "spec": pods}


def controller(
    name: str,
    replicas: int = 2,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    pods: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a ReplicationController, whose selector the API server completes."""
    of_pods = template(labels or {"app": name}, annotations, **(pods or {}))
    return {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": of_pods, **spec},
    }


def pod(name: str, labels: dict[str, str], annotations: dict[str, str] | None = None) -> dict[str, Any]:
    found = template(labels, annotations)
    return {"apiVersion": "v1", "kind": "Pod", **found, "metadata": {**found["metadata"], "name": name}}


AT_ONCE = [
    *map(controller, (
        "counted", "isolated", "templated", "orphaning", "background", "foreground", "by-default", "scaled",
        "failing", "old",
    )),
    controller("new", 1, annotations={"release": "2"}),
    controller("stable", 2, labels={"tier": "front", "track": "stable"}),
    controller("canary", 1, labels={"tier": "front", "track": "canary"}),
    controller("slow", minReadySeconds=NEVER_TRUE_SECONDS),
    controller("restarting", 1, annotations={"nominee.dev/run-duration": "500ms"}),
]  # fmt: skip


@pytest.fixture(scope="module")
def kubectl(batch_session: Session) -> Iterator[Session]:
    """Yield a session in a namespace in which the ReplicationControllers have begun."""
    batch_session("create", "namespace", "replicated")
    session = Namespaced(batch_session.directory, "replicated")
    create(session, {"apiVersion": "v1", "kind": "List", "items": AT_ONCE})
    yield session
    batch_session("delete", "namespace", "replicated", "--wait=false")


def create(session: Session, document: dict[str, Any]) -> None:
    session("create", "-f", "-", stdin=json.dumps(document))


def until(session: Session, name: str, path: str, value: object) -> None:
    """Wait until a field of a ReplicationController has a value."""
    session("wait", f"--for=jsonpath={path}={value}", f"rc/{name}", "--timeout=90s")


def status_of(session: Session, name: str) -> dict[str, Any]:
    found: dict[str, Any] = session.json("get", "rc", name)["status"]
    return found


def pods(session: Session, app: str) -> dict[str, dict[str, Any]]:
    """Return the pods with a label app that do not terminate, by name."""
    found = session.json("get", "pods", "-l", f"app={app}")["items"]
    return {p["metadata"]["name"]: p for p in found if "deletionTimestamp" not in p["metadata"]}


def has_pods(session: Session, app: str, count: int) -> dict[str, dict[str, Any]]:
    return eventually_sync(lambda: pods(session, app), lambda found: len(found) == count)


def others_than(session: Session, app: str, before: dict[str, Any], count: int = 2) -> dict[str, Any]:
    """Wait for so many pods, of which at least one is new."""
    return eventually_sync(
        lambda: pods(session, app), lambda found: len(found) == count and not set(found) <= set(before)
    )


def notes(session: Session, name: str, reason: str) -> list[str]:
    """Return the messages of the events about a ReplicationController with this reason."""
    about = f"involvedObject.kind=ReplicationController,involvedObject.name={name},reason={reason}"
    items = session.json("get", "events", "--field-selector", about)["items"]
    return [each["message"] for each in items]


def failure_of(session: Session, name: str) -> list[dict[str, Any]]:
    conditions = status_of(session, name).get("conditions", [])
    return [row for row in conditions if row["type"] == "ReplicaFailure"]


def test_pods_are_owned_and_counted(kubectl: Session) -> None:
    """RC, "Running an example ReplicationController"."""
    until(kubectl, "counted", "{.status.readyReplicas}", 2)
    for name, each in has_pods(kubectl, "counted", 2).items():
        assert re.fullmatch(r"counted-[a-z0-9]{5}", name)
        (owner,) = each["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["apiVersion"], owner["name"]) == (
            "ReplicationController",
            "v1",
            "counted",
        )
        assert (owner["controller"], owner["blockOwnerDeletion"]) == (True, True)
    status = dict.fromkeys(("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"), 2)
    assert status_of(kubectl, "counted") == {**status, "observedGeneration": 1}


def test_the_columns_of_kubectl(kubectl: Session) -> None:
    """RC, "Running an example ReplicationController"; pkg/printers (printReplicationController)."""
    until(kubectl, "counted", "{.status.readyReplicas}", 2)
    header, row = (line.split() for line in kubectl("get", "rc", "counted", "-o", "wide").splitlines())
    assert header == ["NAME", "DESIRED", "CURRENT", "READY", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert [*row[:4], *row[5:]] == ["counted", "2", "2", "2", "c", "app", "app=counted"]


def test_it_is_described(kubectl: Session) -> None:
    """RC, "Running an example ReplicationController": `kubectl describe`."""
    until(kubectl, "counted", "{.status.readyReplicas}", 2)
    text = eventually_sync(
        lambda: kubectl("describe", "rc", "counted"), lambda found: found.count("SuccessfulCreate") == 2
    )
    assert re.search(r"Replicas: +2 current / 2 desired", text)
    assert re.search(r"Pods Status: +2 Running / 0 Waiting / 0 Succeeded / 0 Failed", text)
    assert re.search(r"Normal +SuccessfulCreate .* replication-controller +Created pod: counted-\w{5}", text)


def test_selector_labels_and_replicas_have_defaults(kubectl: Session) -> None:
    """RC, "Labels on the ReplicationController", "Pod Selector" and "Multiple Replicas"."""
    bare = controller("defaulted")
    del bare["spec"]["replicas"]
    create(kubectl, bare)
    found = kubectl.json("get", "rc", "defaulted")
    assert found["spec"]["selector"] == found["metadata"]["labels"] == {"app": "defaulted"}
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (1, 1)
    has_pods(kubectl, "defaulted", 1)


def test_a_selector_of_other_pods_is_refused(kubectl: Session) -> None:
    """RC, "Pod Selector"; validation.go, ValidatePodTemplateSpecForRC."""
    refused = kubectl.fails("create", "-f", "-", stdin=json.dumps(controller("x", selector={"app": "y"})))
    assert "spec.template.metadata.labels: Invalid value" in refused
    assert "`selector` does not match template `labels`" in refused


def test_pods_that_end_are_refused(kubectl: Session) -> None:
    """RC, "Pod Template": only a restartPolicy equal to Always is allowed."""
    refused = kubectl.fails(
        "create", "-f", "-", stdin=json.dumps(controller("x", pods={"restartPolicy": "OnFailure"}))
    )
    assert 'spec.template.spec.restartPolicy: Unsupported value: "OnFailure"' in refused


def test_a_deleted_pod_is_replaced(kubectl: Session) -> None:
    """RC, "Rescheduling"."""
    before = has_pods(kubectl, "scaled", 2)
    kubectl("delete", "pod", next(iter(before)))
    assert len(set(others_than(kubectl, "scaled", before)) & set(before)) == 1


def test_it_is_scaled(kubectl: Session) -> None:
    """RC, "Scaling"; replica_set.go, manageReplicas."""
    kubectl("scale", "rc", "scaled", "--replicas=3")
    three = has_pods(kubectl, "scaled", 3)
    kubectl("scale", "rc", "scaled", "--replicas=1")
    left = has_pods(kubectl, "scaled", 1)
    gone = {f"Deleted pod: {name}" for name in set(three) - set(left)}
    eventually_sync(lambda: set(notes(kubectl, "scaled", "SuccessfulDelete")), lambda found: gone <= found)
    until(kubectl, "scaled", "{.status.replicas}", 1)


def test_it_is_scaled_to_zero(kubectl: Session) -> None:
    """RC, "Deleting a ReplicationController and its Pods": kubectl of old scaled to zero before."""
    create(kubectl, controller("emptied", 2))
    has_pods(kubectl, "emptied", 2)
    kubectl("scale", "rc", "emptied", "--replicas=0")
    has_pods(kubectl, "emptied", 0)
    status = eventually_sync(
        lambda: status_of(kubectl, "emptied"), lambda found: found.get("observedGeneration") == 2
    )
    assert eventually_sync(lambda: status_of(kubectl, "emptied")["replicas"], lambda count: not count) == 0
    assert "readyReplicas" not in status or not status_of(kubectl, "emptied").get("readyReplicas")


def test_a_precondition_of_scaling(kubectl: Session) -> None:
    """reference/kubectl/generated/kubectl_scale (--current-replicas)."""
    refused = kubectl.fails("scale", "rc", "counted", "--current-replicas=9", "--replicas=1")
    assert "Expected replicas to be 9, was 2" in refused
    assert kubectl.json("get", "rc", "counted")["spec"]["replicas"] == 2


def test_the_scale_subresource(kubectl: Session) -> None:
    """API reference, Scale: what an autoscaler reads and writes."""
    until(kubectl, "counted", "{.status.replicas}", 2)
    scale = kubectl.json("get", "rc", "counted", "--subresource=scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 2, "selector": "app=counted"})


def test_the_generation_counts_changes_and_is_observed(kubectl: Session) -> None:
    """API reference, ReplicationControllerStatus (observedGeneration); replica_set_utils.go."""
    create(kubectl, controller("generations", 0))
    until(kubectl, "generations", "{.status.observedGeneration}", 1)
    kubectl("set", "image", "rc/generations", "c=new")
    until(kubectl, "generations", "{.status.observedGeneration}", 2)
    kubectl("label", "rc", "generations", "a=b")
    assert kubectl.json("get", "rc", "generations")["metadata"]["generation"] == 2


def test_a_relabelled_pod_is_released_and_replaced(kubectl: Session) -> None:
    """RC, "Isolating pods from a ReplicationController"."""
    before = has_pods(kubectl, "isolated", 2)
    name = next(iter(before))
    kubectl("label", "pod", name, "app=free", "--overwrite")
    others_than(kubectl, "isolated", before)
    freed = eventually_sync(
        lambda: kubectl.json("get", "pod", name), lambda found: "ownerReferences" not in found["metadata"]
    )
    assert freed["metadata"]["labels"]["app"] == "free"


def test_a_pod_without_a_controller_is_acquired(kubectl: Session) -> None:
    """RC, "Pod Selector": pods with these labels count as if it had created them."""
    create(kubectl, pod("found", {"app": "acquiring"}))
    create(kubectl, controller("acquiring", 2))
    assert "found" in has_pods(kubectl, "acquiring", 2)
    adopted = eventually_sync(
        lambda: kubectl.json("get", "pod", "found")["metadata"], lambda found: "ownerReferences" in found
    )
    assert adopted["ownerReferences"][0]["name"] == "acquiring"
    eventually_sync(lambda: notes(kubectl, "acquiring", "SuccessfulCreate"), lambda found: len(found) == 1)


def test_a_pod_that_is_not_ready_goes_first(kubectl: Session) -> None:
    """RC, "Scaling"; controller_utils.go, ActivePodsWithRanks (Less)."""
    create(kubectl, pod("lagging", {"app": "chosen"}, NEVER_READY))
    create(kubectl, controller("chosen", 3))
    until(kubectl, "chosen", "{.status.readyReplicas}", 2)
    assert "lagging" in has_pods(kubectl, "chosen", 3)
    kubectl("scale", "rc", "chosen", "--replicas=2")
    assert "lagging" not in has_pods(kubectl, "chosen", 2)


def test_a_new_template_is_for_new_pods_alone(kubectl: Session) -> None:
    """RC, "Pod Template": later changes have no effect on pods that exist."""
    before = has_pods(kubectl, "templated", 2)
    kubectl("set", "image", "rc/templated", "c=new")
    until(kubectl, "templated", "{.status.observedGeneration}", 2)
    assert set(pods(kubectl, "templated")) == set(before)
    kubectl("delete", "pod", next(iter(before)))
    after = others_than(kubectl, "templated", before)
    assert {p["spec"]["containers"][0]["image"] for p in after.values()} == {"app", "new"}


def test_a_pod_that_failed_is_replaced(kubectl: Session) -> None:
    """RC, "How a ReplicationController works": a failed pod no longer counts; FilterActivePods."""
    before = has_pods(kubectl, "failing", 2)
    name = next(iter(before))
    status = json.dumps({"status": {"phase": "Failed"}})
    kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", status)
    three = has_pods(kubectl, "failing", 3)  # it stays until the garbage collection of pods
    assert three[name]["status"]["phase"] == "Failed"
    until(kubectl, "failing", "{.status.replicas}", 2)


def test_a_container_that_exits_restarts_in_its_pod(kubectl: Session) -> None:
    """RC, "How a ReplicationController works"; concepts/workloads/pods/pod-lifecycle (restartPolicy)."""
    (name,) = has_pods(kubectl, "restarting", 1)
    restarted = eventually_sync(
        lambda: pods(kubectl, "restarting"),
        lambda found: any(
            row["restartCount"]
            for each in found.values()
            for row in each["status"].get("containerStatuses", ())
        ),
    )
    assert set(restarted) == {name}
    assert notes(kubectl, "restarting", "SuccessfulCreate") == [f"Created pod: {name}"]


def test_pods_become_available_after_min_ready_seconds(kubectl: Session) -> None:
    """API reference, ReplicationControllerSpec (minReadySeconds); replica_set_utils.go, calculateStatus."""
    until(kubectl, "slow", "{.status.readyReplicas}", 2)
    assert "availableReplicas" not in status_of(kubectl, "slow")
    kubectl("patch", "rc", "slow", "-p", json.dumps({"spec": {"minReadySeconds": 0}}))
    until(kubectl, "slow", "{.status.availableReplicas}", 2)


def test_a_quota_is_a_condition_until_there_is_room(kubectl: Session) -> None:
    """replica_set.go, manageReplicas and replica_set_utils.go: ReplicaFailure with FailedCreate."""
    session = Namespaced(kubectl.directory, "full-of-pods")
    Session(kubectl.directory)("create", "namespace", "full-of-pods")
    session("create", "quota", "q", "--hard=pods=1")
    session("wait", "--for=jsonpath={.status.used.pods}=0", "quota/q", "--timeout=60s")
    create(session, controller("limited", 2))
    (failure,) = eventually_sync(lambda: failure_of(session, "limited"), bool)
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    assert "exceeded quota: q" in failure["message"]
    note = eventually_sync(lambda: notes(session, "limited", "FailedCreate"), bool)[0]
    assert re.match(r'Error creating: pods "limited-\w{5}" is forbidden: exceeded quota: q', note)
    session("delete", "quota", "q")
    until(session, "limited", "{.status.replicas}", 2)
    eventually_sync(lambda: failure_of(session, "limited"), lambda found: not found)
    Session(kubectl.directory)("delete", "namespace", "full-of-pods", "--wait=false")


def test_a_rolling_update_pod_by_pod(kubectl: Session) -> None:
    """RC, "Rolling updates": one more of the new one, one less of the old one, until that is gone."""
    kubectl("scale", "rc", "new", "--replicas=2")
    kubectl("scale", "rc", "old", "--replicas=1")
    until(kubectl, "new", "{.status.readyReplicas}", 2)
    until(kubectl, "old", "{.status.replicas}", 1)
    kubectl("scale", "rc", "old", "--replicas=0")
    has_pods(kubectl, "old", 0)
    kubectl("delete", "rc", "old")
    releases = [p["metadata"]["annotations"]["release"] for p in has_pods(kubectl, "new", 2).values()]
    assert releases == ["2", "2"]


def test_a_service_spans_release_tracks(kubectl: Session) -> None:
    """RC, "Multiple release tracks" and "Using ReplicationControllers with Services"."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front"},
        "spec": {"selector": {"tier": "front"}, "ports": [{"port": 80}]},
    }
    create(kubectl, service)

    def addresses() -> set[str]:
        subsets = kubectl.json("get", "endpoints", "front").get("subsets", [])
        return {row["targetRef"]["name"] for subset in subsets for row in subset.get("addresses", ())}

    behind = eventually_sync(addresses, lambda found: len(found) == 3)
    assert sorted(name.rpartition("-")[0] for name in behind) == ["canary", "stable", "stable"]


def test_orphans_are_adopted(kubectl: Session) -> None:
    """RC, "Deleting only a ReplicationController": the pods stay, and another one may take them over."""
    before = has_pods(kubectl, "orphaning", 2)
    kubectl("delete", "rc", "orphaning", "--cascade=orphan")
    left = eventually_sync(
        lambda: pods(kubectl, "orphaning"),
        lambda found: all("ownerReferences" not in p["metadata"] for p in found.values()),
    )
    assert set(left) == set(before)
    create(kubectl, controller("orphaning", 2))
    until(kubectl, "orphaning", "{.status.replicas}", 2)
    assert set(has_pods(kubectl, "orphaning", 2)) == set(before)


@pytest.mark.parametrize("policy", ["background", "foreground"])
def test_pods_go_with_their_controller(kubectl: Session, policy: str) -> None:
    """RC, "Deleting a ReplicationController and its Pods"."""
    has_pods(kubectl, policy, 2)
    kubectl("delete", "rc", policy, f"--cascade={policy}")
    has_pods(kubectl, policy, 0)


def test_a_request_without_a_policy_orphans(kubectl: Session) -> None:
    """pkg/registry/core/replicationcontroller/strategy.go, DefaultGarbageCollectionPolicy."""
    before = has_pods(kubectl, "by-default", 2)
    path = "/api/v1/namespaces/replicated/replicationcontrollers/by-default"
    kubectl("delete", "--raw", path)
    kubectl("wait", "--for=delete", "rc/by-default", "--timeout=60s")
    assert set(pods(kubectl, "by-default")) == set(before)
