"""What time alone changes in a cluster at rest."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.lab.chaos.rest.due import due_seconds
from nominee.lab.chaos.rest.nodes import AUTOSCALER, LOOP
from nominee.machinery.runtime.clock import rfc3339
from tests.lab.chaos.rest.clusters import NOW, Manifest, correct, manifest, owner, pod, state

WITHIN_SECONDS = 100.0
AGO_20 = rfc3339(NOW - 20)


def started(name: str = "p", **spec: Any) -> Manifest:
    """Return a pod that runs for 20 s."""
    found = pod(name)
    found["spec"].update(spec)
    found["status"]["startTime"] = AGO_20
    status = {"name": "c", "restartCount": 0, "ready": True, "state": {"running": {"startedAt": AGO_20}}}
    found["status"]["containerStatuses"] = [status]
    return found


def annotated(**annotations: str) -> Manifest:
    found = started()
    found["metadata"]["annotations"] = {f"nominee.dev/{key}": text for key, text in annotations.items()}
    return found


def ended(found: Manifest) -> Manifest:
    found["status"]["phase"] = "Succeeded"
    return found


def terminating(found: Manifest, seconds: int, *, grace: int = 0) -> Manifest:
    found["metadata"].update(deletionTimestamp=rfc3339(NOW + seconds), deletionGracePeriodSeconds=grace)
    return found


def job(condition: str = "", **spec: Any) -> Manifest:
    """Return a Job that was started 20 s ago, and perhaps ended at once."""
    ends = [{"type": condition, "status": "True", "lastTransitionTime": AGO_20}] if condition else []
    return manifest(
        "Job", "work", api="batch/v1", spec=spec, status={"startTime": AGO_20, "conditions": ends}
    )


def deployment(reason: str, status: str = "True", **spec: Any) -> Manifest:
    progress = {"type": "Progressing", "status": status, "reason": reason, "lastUpdateTime": AGO_20}
    return manifest("Deployment", "web", api="apps/v1", spec=spec, status={"conditions": [progress]})


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        (started(), 0),
        (started(activeDeadlineSeconds=60), 40),
        (started(activeDeadlineSeconds=10), 0),  # it should have failed
        (started(activeDeadlineSeconds=600), 0),  # it stays for now
        (ended(started(activeDeadlineSeconds=60)), 0),
        # The kubelet may be younger than the containers: their times began again with it.
        (annotated(**{"run-duration": "30s"}), 30),
        (annotated(rules="attempt=0 run-duration=50s"), 50),
        (annotated(**{"run-duration": "10s"}), 10),
        (terminating(started(), 9), 9),
        (terminating(started(), -9, grace=30), 30),
        (terminating(ended(started()), -9, grace=30), 0),  # a finalizer keeps it
        (job(), 0),
        (job(activeDeadlineSeconds=30), 10),
        (job("Failed", activeDeadlineSeconds=30), 0),
        (job(ttlSecondsAfterFinished=30), 0),
        (job("Complete", ttlSecondsAfterFinished=30), 10),
        (deployment("ReplicaSetUpdated", progressDeadlineSeconds=60), 40),
        (deployment("ReplicaSetUpdated", progressDeadlineSeconds=60, paused=True), 0),
        (deployment("NewReplicaSetAvailable", progressDeadlineSeconds=60), 0),
        (deployment("ProgressDeadlineExceeded", "False", progressDeadlineSeconds=60), 0),
    ],
)
def test_a_change_is_due(found: Manifest, seconds: float) -> None:
    assert due_seconds(state({"found": found}), WITHIN_SECONDS) == seconds


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet"])
def test_ready_pods_become_available(kind: str) -> None:
    owning = manifest(kind, "web", api="apps/v1", spec={"minReadySeconds": 70})
    found = pod("web-0", **owner(owning))
    for condition in found["status"]["conditions"]:
        condition["lastTransitionTime"] = AGO_20
    assert due_seconds(state({"set": owning, "pod": found}), WITHIN_SECONDS) == 50


@pytest.mark.parametrize("changed", ["AbleToScale", "ScalingActive"])
@pytest.mark.parametrize(("ago", "seconds"), [(10, 6), (17, 1), (30, 0)])
def test_an_autoscaler_of_pods_is_looked_at_again(changed: str, ago: int, seconds: float) -> None:
    conditions = [
        {
            "type": each,
            "status": "False",
            "lastTransitionTime": rfc3339(NOW - (ago if each == changed else 200)),
        }
        for each in ("AbleToScale", "ScalingActive")
    ]
    found = manifest("HorizontalPodAutoscaler", "h", api="autoscaling/v2", status={"conditions": conditions})
    assert due_seconds(state({"h": found}), WITHIN_SECONDS) == seconds
    assert due_seconds(state({"h": found}, running=frozenset()), WITHIN_SECONDS) == 0


@pytest.mark.parametrize(
    ("effect", "toleration", "deleted", "seconds"),
    [
        ("NoExecute", {"tolerationSeconds": 35}, False, 35),
        ("NoExecute", {"tolerationSeconds": 300}, False, 0),  # it begins again with the restart
        ("NoExecute", {}, False, 0),
        ("NoExecute", {"key": "other", "tolerationSeconds": 35}, False, 0),
        ("NoSchedule", {"tolerationSeconds": 35}, False, 0),
        ("NoExecute", {"tolerationSeconds": 35}, True, 5),
    ],
)
def test_a_tainted_node_is_left_when_its_time_is_over(
    effect: str, toleration: dict[str, Any], deleted: bool, seconds: float
) -> None:
    node = manifest("Node", "n1", namespace="", spec={"taints": [{"key": "broken", "effect": effect}]})
    found = started(tolerations=[{"key": "broken", "operator": "Exists", **toleration}])
    found = terminating(found, 5) if deleted else found
    assert due_seconds(state({"node": node, "pod": found}), WITHIN_SECONDS) == seconds
    assert due_seconds(state({"node": node, "pod": found}, running=frozenset()), WITHIN_SECONDS) in (0, 5)


@pytest.mark.parametrize(
    ("toleration", "consumers", "seconds"),
    [
        ({"effect": "NoExecute", "tolerationSeconds": 35}, ["p"], 35),
        ({"tolerationSeconds": 35}, ["p"], 35),
        ({"effect": "NoExecute", "tolerationSeconds": 300}, ["p"], 0),
        ({"effect": "NoExecute"}, ["p"], 0),
        ({"effect": "NoSchedule", "tolerationSeconds": 35}, ["p"], 0),
        ({"effect": "NoExecute", "tolerationSeconds": 35}, [], 0),
    ],
)
def test_a_tainted_device_is_left_when_its_time_is_over(
    toleration: dict[str, Any], consumers: list[str], seconds: float
) -> None:
    results = [{"driver": "d", "pool": "n1", "device": "gpu-0", "tolerations": [toleration]}]
    reserved = [{"resource": "pods", "name": name, "uid": name} for name in consumers]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    claim = manifest("ResourceClaim", "gpu", api="resource.k8s.io/v1", status=status)
    assert due_seconds(state({"claim": claim}), WITHIN_SECONDS) == seconds
    assert due_seconds(state({"claim": claim}, running=frozenset()), WITHIN_SECONDS) == 0


@pytest.mark.parametrize(("ago", "seconds"), [(40, 81), (20, 0), (130, 52.5), (190, 0)])
def test_an_eviction_that_was_not_done_is_counted_for_two_minutes(ago: int, seconds: float) -> None:
    status = {"disruptedPods": {"p": rfc3339(NOW - ago)}}
    budget = manifest("PodDisruptionBudget", "web", api="policy/v1", status=status)
    assert due_seconds(state({"budget": budget}), WITHIN_SECONDS) == seconds


ASKED = {"volume.kubernetes.io/storage-provisioner": "delayed.nominee.dev"}


@pytest.mark.parametrize(
    ("phase", "annotations", "seconds"),
    [
        ("Pending", ASKED, 40),
        ("Pending", {}, 0),  # no node is selected
        ("Bound", ASKED, 0),
        ("Pending", {**ASKED, "nominee.dev/provisioning-delay": "15s"}, 15),
        ("Pending", {**ASKED, "nominee.dev/provisioning-delay": "10m"}, 0),
        ("Pending", {**ASKED, "nominee.dev/provisioning-delay": "soon"}, 0),
    ],
)
def test_a_volume_that_is_being_made_comes(phase: str, annotations: dict[str, str], seconds: float) -> None:
    api = "storage.k8s.io/v1"
    slow = manifest("StorageClass", "slow", api=api, namespace="", parameters={"delay": "40s"})
    metadata, spec = {"annotations": annotations}, {"storageClassName": "slow"}
    claim = manifest("PersistentVolumeClaim", "c", metadata=metadata, spec=spec, status={"phase": phase})
    assert due_seconds(state({"class": slow, "claim": claim}), WITHIN_SECONDS) == seconds


@pytest.mark.parametrize(
    ("left", "seconds"), [({"n1": 9.0, "n2": 4.0}, 9), ({"n1": 0.0}, 0), ({"n1": 590.0}, 0), ({}, 0)]
)
def test_a_node_is_deleted_when_it_has_been_unneeded_for_long_enough(
    left: dict[str, float], seconds: float
) -> None:
    loop = {(AUTOSCALER, LOOP): {"unneededLeftSeconds": left}}
    assert due_seconds(state(correct(), debug=loop), WITHIN_SECONDS) == seconds


@pytest.mark.parametrize(("seconds", "due"), [(19, 1), (17, 0)])
def test_what_was_due_just_now_may_not_be_done(seconds: int, due: int) -> None:
    found = job("Complete", ttlSecondsAfterFinished=seconds)
    assert due_seconds(state({"found": found}), WITHIN_SECONDS) == due


def test_the_last_one_counts() -> None:
    objects = {"a": started("a", activeDeadlineSeconds=30), "b": started("b", activeDeadlineSeconds=60)}
    assert due_seconds(state(objects), WITHIN_SECONDS) == 40
    assert due_seconds(state(objects), 20.0) == 10


def test_nothing_is_due_in_a_correct_cluster() -> None:
    assert due_seconds(state(correct()), WITHIN_SECONDS) == 0
