"""Jobs and ReplicationControllers orphan their pods when a DELETE has no propagation policy (1.36)."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api.kinds import CRON_JOB, JOB, REPLICA_SET, REPLICATION_CONTROLLER, Kind
from tests.apiserver.fronts.adapter import Api, Document
from tests.apiserver.fronts.documents import made, refused, replica_set

LABELS = {"app": "x"}
CONTAINERS = [{"name": "c", "image": "i"}]
JOB_SPEC = {"template": {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}}
OBJECTS: dict[Kind[Any], Document] = {
    JOB: {"metadata": {"name": "x"}, "spec": JOB_SPEC},
    REPLICATION_CONTROLLER: {
        "metadata": {"name": "x"},
        "spec": {"template": {"metadata": {"labels": LABELS}, "spec": {"containers": CONTAINERS}}},
    },
    REPLICA_SET: replica_set("x"),
    CRON_JOB: {
        "metadata": {"name": "x"},
        "spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": JOB_SPEC}},
    },
}
WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove"
    " them or set propagationPolicy=Orphan to suppress this warning"
)


@pytest.mark.parametrize("collection", [False, True], ids=["one", "collection"])
@pytest.mark.parametrize("kind", OBJECTS, ids=lambda kind: kind.plural)
def test_without_a_policy(api: Api, space: str, kind: Kind[Any], collection: bool) -> None:
    created = made(api.create(kind, OBJECTS[kind], space))
    deleted = api.delete_collection(kind, space) if collection else api.delete(kind, "x", space)
    assert deleted.code == 200
    assert deleted.warnings == ((WARNING,) if kind is JOB else ())
    if kind not in (JOB, REPLICATION_CONTROLLER):
        refused(api.get(kind, "x", space), 404, "NotFound")
        return
    kept = made(api.get(kind, "x", space))
    assert kept["metadata"]["finalizers"] == ["orphan"]
    assert kept["metadata"]["deletionTimestamp"]
    assert kept["metadata"]["deletionGracePeriodSeconds"] == 0
    assert kept["spec"] == created["spec"]
    if not collection:
        # The object as it is now, not a Status.
        assert deleted.metadata == kept["metadata"]


@pytest.mark.parametrize("kind", [JOB, REPLICATION_CONTROLLER], ids=lambda kind: kind.plural)
@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        ({"propagationPolicy": "Background"}, None),
        ({"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        ({"propagationPolicy": "Orphan"}, ["orphan"]),
        ({"orphanDependents": False}, None),
        ({"orphanDependents": True}, ["orphan"]),
    ],
    ids=str,
)
def test_with_a_policy(
    api: Api, space: str, kind: Kind[Any], options: Document, finalizers: list[str] | None
) -> None:
    made(api.create(kind, OBJECTS[kind], space))
    deleted = api.delete(kind, "x", space, body=options)
    assert (deleted.code, deleted.warnings) == (200, ())
    found = api.get(kind, "x", space)
    if finalizers is None:
        refused(found, 404, "NotFound")
    else:
        assert found.metadata["finalizers"] == finalizers


def test_a_finalizer_of_the_object_comes_before_the_default(api: Api, space: str) -> None:
    document = {"metadata": {"name": "x", "finalizers": ["foregroundDeletion"]}, "spec": JOB_SPEC}
    made(api.create(JOB, document, space))
    assert api.delete(JOB, "x", space).warnings == (WARNING,)
    assert api.get(JOB, "x", space).metadata["finalizers"] == ["foregroundDeletion"]
