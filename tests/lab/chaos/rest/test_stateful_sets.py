"""Stateful sets at rest: planted violations are found; a set that waits for a pod has no finding."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nominee.lab.chaos.rest.rules import findings
from nominee.machinery.runtime.clock import rfc3339
from tests.lab.chaos.rest.clusters import NOW, Manifests, correct, manifest, owner, pod, put, state

HASH = "controller-revision-hash"


def with_set() -> Manifests:
    """Return a correct cluster with a stateful set of two pods in a namespace without a quota."""
    manifests = correct()
    of = manifest(
        "StatefulSet",
        "db",
        api="apps/v1",
        namespace="other",
        spec={
            "replicas": 2,
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": []}},
        },
        status={
            "observedGeneration": 1,
            "replicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "currentReplicas": 2,
            "updatedReplicas": 2,
            "currentRevision": "db-1",
            "updateRevision": "db-1",
        },
    )
    manifests["db"] = of
    for ordinal in range(2):
        manifests[f"db-{ordinal}"] = pod(
            f"db-{ordinal}", namespace="other", labels={"app": "db", HASH: "db-1"}, **owner(of)
        )
    return manifests


def both(*changes: Callable[[Manifests], object]) -> Callable[[Manifests], None]:
    def change(manifests: Manifests) -> None:
        for each in changes:
            each(manifests)

    return change


def remove(name: str) -> Callable[[Manifests], Any]:
    return both(
        lambda manifests: manifests.pop(name),
        *(put(f"db/status/{field}", 1) for field in COUNTED),
    )


COUNTED = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")


def _none(field: str) -> Callable[[Manifests], object]:
    return put(f"db/status/{field}", 0)


UNREADY = both(
    put("db-0/status/conditions/1/status", "False"),
    put("db/status/readyReplicas", 1),
    put("db/status/availableReplicas", 1),
)


def becomes_available(seconds: int) -> Callable[[Manifests], None]:
    """Return a change by which a pod is missing, and the one before it has been ready for a minute."""
    times = put("db-0/status/conditions/1/lastTransitionTime", rfc3339(NOW - 60))
    return both(
        remove("db-1"),
        times,
        put("db/spec/minReadySeconds", seconds),
    )


UPDATED = both(put("db/status/updateRevision", "db-2"), put("db/status/updatedReplicas", 0))
PARALLEL = put("db/spec/podManagementPolicy", "Parallel")
FEWER = put("db/spec/replicas", 1)


IS_OF_AN_EARLIER = both(put("db/status/currentRevision", "db-0"), put("db/status/currentReplicas", 0))


def has_quota(manifests: Manifests) -> None:
    manifests["q"] = manifest("ResourceQuota", "q", namespace="other")


def revisions(*numbers: int) -> Callable[[Manifests], None]:
    """Return a change by which the set has these revisions, of the template that it has then."""

    def change(manifests: Manifests) -> None:
        of = manifests["db"]
        data = {"spec": {"template": {**copy.deepcopy(of["spec"]["template"]), "$patch": "replace"}}}
        for number in numbers:
            fields: dict[str, Any] = {"revision": number, "data": data, "metadata": owner(of)}
            name, api = f"db-{number}", "apps/v1"
            manifests[f"revision {number}"] = manifest(
                "ControllerRevision", name, api=api, namespace="other", **fields
            )

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None,
        revisions(0, 1),
        both(IS_OF_AN_EARLIER, put("db/spec/updateStrategy", {"type": "OnDelete"})),
        both(revisions(1), put("db/spec/template/spec/hostname", "refused"), has_quota),
    ],
)
def test_a_correct_stateful_set(change: Callable[[Manifests], object]) -> None:
    manifests = with_set()
    change(manifests)
    assert findings(state(manifests)) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (remove("db-1"), "lacks the pods db-1"),
        (FEWER, "has pods too many: db-1"),
        (put("db/spec/ordinals", {"start": 1}), "lacks the pods db-2|has pods too many: db-0"),
        (both(FEWER, UNREADY, PARALLEL), "has pods too many: db-1"),
        (UPDATED, "has pods of an earlier revision: db-0, db-1"),
        (
            both(
                put("db/spec/updateStrategy/rollingUpdate/partition", 1),
                UPDATED,
            ),
            "has pods of an earlier revision: db-1",
        ),
        (becomes_available(60), "lacks the pods db-1"),
        (
            both(becomes_available(60), put("db/status/availableReplicas", 0)),
            "lacks the pods db-1|shows 0 availableReplicas in its status, and its pods are 1",
        ),
        (put("db/status/readyReplicas", 1), "shows 1 readyReplicas in its status, and its pods are 2"),
        (put("db/status/currentReplicas", 1), "shows 1 currentReplicas in its status, and its pods are 2"),
        (put("db/status/updatedReplicas", 1), "shows 1 updatedReplicas in its status, and its pods are 2"),
        (IS_OF_AN_EARLIER, "is updated, and its current revision is db-0"),
        (revisions(1, 2), "has the update revision db-1, and the latest is db-2"),
        (
            both(revisions(1), put("db/spec/template/spec/hostname", "other")),
            "has another template than its latest revision, db-1",
        ),
        (put("db/metadata/generation", 2), "has a status of generation 1 only"),
    ],
)
def test_planted_violations(change: Callable[[Manifests], object], sentence: str) -> None:
    manifests = with_set()
    change(manifests)
    found = [str(each) for each in findings(state(manifests))]
    assert found == [f"statefulset other/db {each}" for each in sentence.split("|")]


def _findings(change: Callable[[Manifests], object], *refused: str) -> list[str]:
    manifests = with_set()
    change(manifests)
    return [str(each) for each in findings(replace(state(manifests), refusals=frozenset(refused)))]


def _squatter(manifests: Manifests) -> None:
    manifests["squatter"] = pod("db-1", namespace="other", uid="squatter")


def _ending_claim(manifests: Manifests) -> None:
    claim = {"metadata": {"name": "data"}, "spec": {}}
    manifests["db"]["spec"]["volumeClaimTemplates"] = [claim]
    metadata = {"deletionTimestamp": rfc3339(NOW), "finalizers": ["example.com/f"]}
    manifests["ending"] = manifest("PersistentVolumeClaim", "data-db-1", namespace="other", metadata=metadata)


@pytest.mark.parametrize("change", [_squatter, _ending_claim])
def test_a_pod_that_cannot_be_created_stops_its_set(change: Callable[[Manifests], object]) -> None:
    assert _findings(both(remove("db-1"), UPDATED, change)) == []
    assert _findings(both(remove("db-1"), put("db/spec/replicas", 3), change)) == []
    both_missing = both(remove("db-0"), remove("db-1"), change, *(_none(each) for each in COUNTED))
    assert _findings(both_missing) == ["statefulset other/db lacks the pods db-0"]
    assert _findings(UPDATED) == ["statefulset other/db has pods of an earlier revision: db-0, db-1"]


def test_a_pod_that_is_refused_stops_its_set() -> None:
    change = both(remove("db-1"), UPDATED)
    assert _findings(change, "StatefulSet-db") == []
    assert _findings(change, "StatefulSet-other") == [
        "statefulset other/db lacks the pods db-1",
        "statefulset other/db has pods of an earlier revision: db-0",
    ]


@pytest.mark.parametrize(
    "change",
    [
        both(FEWER, UNREADY),
        both(UNREADY, UPDATED),
        both(becomes_available(181), put("db/status/availableReplicas", 0)),
        both(put("db/spec/updateStrategy", {"type": "OnDelete"}), UPDATED),
    ],
    ids=["scaling down waits", "the update waits", "not available", "on delete"],
)
def test_a_set_that_waits(change: Callable[[Manifests], object]) -> None:
    manifests = with_set()
    change(manifests)
    assert findings(state(manifests)) == []


READY_FOR_A_MINUTE = both(
    put("db-0/status/conditions/1/lastTransitionTime", rfc3339(NOW - 60)),
    put("db/spec/minReadySeconds", 180),
)


@pytest.mark.parametrize(
    ("change", "of_parallel"),
    [
        (becomes_available(180), -NOW),
        (both(READY_FOR_A_MINUTE, FEWER), -NOW),
        (both(READY_FOR_A_MINUTE, UPDATED), 300.0),
    ],
    ids=["lacks pods", "too many", "an earlier revision"],
)
def test_what_waits_for_a_pod_to_become_available_is_due_later(
    change: Callable[[Manifests], object], of_parallel: float
) -> None:
    manifests = with_set()
    change(manifests)
    assert [each.due - NOW for each in findings(state(manifests))] == [300.0]
    PARALLEL(manifests)
    assert [each.due - NOW for each in findings(state(manifests))] == [of_parallel]


def test_pods_that_have_been_ready_for_long_enough_are_available() -> None:
    manifests = with_set()
    both(READY_FOR_A_MINUTE, put("db/status/availableReplicas", 1))(manifests)
    [found] = findings(state(manifests))
    assert found.sentence == "shows 1 availableReplicas in its status, and its pods are 2"
    assert found.due == NOW + 300
