"""The fields of statuses that follow from other objects: a wrong one is found, a correct one is not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from nominee.lab.chaos.rest.rules import findings
from nominee.machinery.runtime.clock import rfc3339
from tests.lab.chaos.rest.clusters import NOW, Change, Manifests, changed, put, state

FAILURE = [{"type": "ReplicaFailure", "status": "True"}]
TIMED_OUT = [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]
HASH = "pod-template-hash"


def both(*changes: Change) -> Change:
    def change(manifests: Manifests) -> None:
        for each in changes:
            each(manifests)

    return change


def _has_ending_pod(manifests: Manifests) -> None:
    """Let one more pod of the set terminate, which counts for the budget and for the quota."""
    ending = manifests["ending"] = copy.deepcopy(manifests["b"])
    ending["metadata"] |= {"name": "c", "uid": "c", "deletionTimestamp": rfc3339(NOW)}
    ending["metadata"]["deletionGracePeriodSeconds"] = 30
    ending["status"]["podIP"] = "10.0.0.3"
    manifests["budget"]["status"]["expectedPods"] = 3
    manifests["quota"]["status"]["used"] = {"pods": "3", "requests.cpu": "3"}


def _terminating(number: int) -> Change:
    shown = (put(f"{name}/status/terminatingReplicas", number) for name in ("deployment", "replicas"))
    return both(_has_ending_pod, *shown)


def _has_another_set(manifests: Manifests) -> None:
    """Let the pods be those of an earlier template; the set of the Deployment's has none."""
    other = manifests["new set"] = copy.deepcopy(manifests["replicas"])
    other["metadata"] |= {"name": "web-2", "uid": "web-2"}
    other["spec"]["replicas"], other["status"] = 0, {"observedGeneration": 1}
    for name in ("replicas", "new set"):
        labels = manifests[name]["spec"]["template"]["metadata"]["labels"] = {"app": "web"}
        labels[HASH] = name
    manifests["replicas"]["spec"]["template"]["spec"]["hostname"] = "earlier"
    for name in ("a", "b"):
        manifests[name]["metadata"]["labels"] = {"app": "web", HASH: "replicas"}


def _volume(phase: str, **reference: Any) -> Change:
    """Return a change: the volume has this phase and reference, and its claim is gone."""

    def change(manifests: Manifests) -> None:
        del manifests["claim"]
        manifests["volume"]["spec"] = {"claimRef": reference} if reference else {}
        manifests["volume"]["status"]["phase"] = phase

    return change


GONE = {"namespace": "default", "name": "data", "uid": "gone"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            put("replicas/status/fullyLabeledReplicas", 1),
            ["replicaset default/web-1 shows 1 fullyLabeledReplicas in its status, and its pods are 2"],
        ),
        (
            put("replicas/spec/template/metadata/labels/b", "c"),
            [
                "replicaset default/web-1 shows 2 fullyLabeledReplicas in its status, and its pods are 0",
                "deployment default/web shows 2 updatedReplicas in its status, and its pods are 0",
            ],
        ),
        (
            both(put("replicas/status/conditions", FAILURE), put("deployment/status/conditions", FAILURE)),
            ["replicaset default/web-1 shows a ReplicaFailure, and has its replicas"],
        ),
        (
            put("deployment/status/conditions", FAILURE),
            ["deployment default/web shows ReplicaFailure=True, and its replica sets do not"],
        ),
        (
            put("deployment/status/conditions", TIMED_OUT),
            ["deployment default/web is complete, and shows Progressing: ProgressDeadlineExceeded"],
        ),
        (
            put("deployment/status/updatedReplicas", 1),
            ["deployment default/web shows 1 updatedReplicas in its status, and its pods are 2"],
        ),
        (
            _has_another_set,
            ["deployment default/web shows 2 updatedReplicas in its status, and its pods are 0"],
        ),
        (
            _terminating(0),
            [
                "replicaset default/web-1 shows 0 terminatingReplicas in its status, and its pods are 1",
                "deployment default/web shows 0 terminatingReplicas in its status, and its pods are 1",
            ],
        ),
        (
            put("budget/status/conditions/0/status", "False"),
            ["poddisruptionbudget default/web allows 1 disruptions, and shows DisruptionAllowed=False"],
        ),
        (
            put("other/status/phase", "Terminating"),
            ["namespace other has the phase Terminating, and is not deleted"],
        ),
        (
            put("other/metadata/deletionTimestamp", rfc3339(NOW)),
            ["namespace other has the phase Active, and is deleted"],
        ),
        (put("volume/status/phase", "Released"), ["persistentvolume pv is Released, and should be Bound"]),
        (
            put("claim/status/phase", "Pending"),
            ["persistentvolumeclaim default/data is Pending, and bound to the volume pv"],
        ),
        (_volume("Released"), ["persistentvolume pv is Released, and should be Available"]),
        (_volume("Available", **GONE), ["persistentvolume pv is Available, and should be Failed, Released"]),
    ],
)
def test_a_wrong_field_is_found(change: Change, expected: list[str]) -> None:
    assert [str(each) for each in findings(state(changed(change)))] == expected


@pytest.mark.parametrize(
    "change",
    [
        _terminating(1),
        _has_ending_pod,  # without the gate no field has a number
        both(_has_another_set, put("deployment/status/updatedReplicas", 0)),
        both(put("deployment/spec/paused", value=True), put("deployment/status/conditions", TIMED_OUT)),
        both(put("deployment/spec/paused", value=True), put("deployment/status/conditions", FAILURE)),
        put("deployment/status/conditions", [{**TIMED_OUT[0], "reason": "NewReplicaSetAvailable"}]),
        _volume("Available"),
        _volume("Available", namespace="default", name="data"),
        _volume("Released", **GONE),
        _volume("Failed", **GONE),
        both(
            _volume("Pending"),
            put("volume/metadata/deletionTimestamp", rfc3339(NOW)),
            put("volume/metadata/finalizers", ["example.com/f"]),
        ),
    ],
)
def test_a_correct_field_is_not_found(change: Change) -> None:
    assert findings(state(changed(change))) == []
