"""Uids of an import: of objects that have none, and of owners that are named without one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from typing import Any

import pytest

from nominee.importing.importer import Importer
from nominee.importing.report import Report
from nominee.importing.uids import complete
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import metadata_of
from tests.support.fake_api import FakeApi

Document = dict[str, Any]


def document(kind: str, name: str, api_version: str = "v1", **metadata: Any) -> Document:
    namespace = {} if kind in ("Node", "Namespace", "PersistentVolume") else {"namespace": "x"}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **namespace, **metadata}}


def replica_set(**metadata: Any) -> Document:
    return document("ReplicaSet", "r", "apps/v1", **metadata)


def owner(kind: str = "ReplicaSet", name: str = "r", api_version: str = "apps/v1", **more: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "name": name, **more}


def uids(*documents: Document) -> list[tuple[str, list[str | None]]]:
    """Return each completed document's uid, and those of its owners; new uids are new-0, new-1, ..."""
    numbers = itertools.count()
    return [
        (
            each["metadata"]["uid"],
            [reference.get("uid") for reference in each["metadata"].get("ownerReferences", ())],
        )
        for each in complete(documents, lambda: f"new-{next(numbers)}")
    ]


LACKING: list[dict[str, Any]] = [{}, {"uid": ""}, {"uid": None}]


@pytest.mark.parametrize("lacking", LACKING)
def test_an_object_without_a_uid_gets_one(lacking: Mapping[str, Any]) -> None:
    assert uids(document("Node", "n", **lacking), document("Node", "m", uid="old")) == [
        ("new-0", []),
        ("old", []),
    ]


def test_of_two_objects_with_one_uid_the_second_gets_another() -> None:
    assert uids(document("Node", "n", uid="same"), document("Node", "m", uid="same")) == [
        ("same", []),
        ("new-0", []),
    ]


@pytest.mark.parametrize("named", [*LACKING, {"uid": "of-no-object"}])
def test_an_owner_is_found_by_kind_and_name(named: Mapping[str, Any]) -> None:
    pod = document("Pod", "p", uid="pod", ownerReferences=[owner(**named)])
    assert uids(pod, replica_set(uid="old")) == [("pod", ["old"]), ("old", [])]


def test_a_node_owns_across_namespaces() -> None:
    pod = document("Pod", "p", uid="pod", ownerReferences=[owner("Node", "n", "v1")])
    assert uids(document("Node", "n"), pod) == [("new-0", []), ("pod", ["new-0"])]


@pytest.mark.parametrize(
    "other",
    [
        owner(name="other"),
        owner("Deployment"),
        owner(api_version="extensions/v1beta1"),
        owner(uid="of-no-object", name="other"),
    ],
)
def test_an_owner_that_is_not_there_is_not_found(other: Document) -> None:
    pod = document("Pod", "p", uid="pod", ownerReferences=[other])
    assert uids(replica_set(uid="old"), pod)[1] == ("pod", [other.get("uid")])


def test_an_owner_in_another_namespace_is_not_found() -> None:
    elsewhere = replica_set(namespace="y")
    assert uids(elsewhere, document("Pod", "p", ownerReferences=[owner()]))[1] == ("new-1", [None])


def test_the_old_uid_is_the_one_by_which_others_name_the_object() -> None:
    volume = document("PersistentVolume", "v", uid="volume")
    volume["spec"] = {"claimRef": {"namespace": "x", "name": "c", "uid": "claim"}}
    pod = document("Pod", "p", uid="pod", ownerReferences=[owner(uid="old")])
    found = uids(replica_set(), pod, volume, document("PersistentVolumeClaim", "c"))
    assert found == [("old", []), ("pod", ["old"]), ("volume", []), ("claim", [])]


def test_a_released_volume_does_not_get_the_next_claim_of_that_name() -> None:
    volume = document("PersistentVolume", "v", uid="volume")
    volume["spec"] = {"claimRef": {"namespace": "x", "name": "c", "uid": "removed"}}
    claim = document("PersistentVolumeClaim", "c", uid="claim")
    assert uids(volume, claim) == [("volume", []), ("claim", [])]


async def imported(*documents: Document) -> tuple[FakeApi, Report]:
    api = FakeApi()
    importer = Importer(api, random.Random(1), lambda line: None)  # type: ignore[arg-type]  # its calls only
    return api, await importer.run(documents)


async def test_imported_objects_without_uids_have_uids_and_their_owners() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    owned = {**replica_set(), "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    pod = document(
        "Pod", "p", ownerReferences=[owner(uid="of-no-object"), owner("Rollout", "gone", "a.io/v1")]
    )
    api, report = await imported(pod, owned)
    (stored,), (stored_owner,) = api.all_of(kinds.POD), api.all_of(kinds.REPLICA_SET)
    found = [metadata_of(each).uid for each in (stored, stored_owner)]
    assert len({*found, "", "of-no-object"}) == 4
    assert [(each.kind, each.uid) for each in stored.metadata.ownerReferences] == [("ReplicaSet", found[1])]
    assert report.losses == {("Pod", "its owner does not come: Rollout"): ["x/p"]}
    written = [request.kind for request in api.requests]
    assert written.index("ReplicaSet") < written.index("Pod")


async def test_owner_references_of_another_form_are_refused() -> None:
    _, report = await imported(document("Pod", "p", ownerReferences=5))
    ((kind, reason),) = report.refusals
    assert kind == "Pod"
    assert "ownerReferences" in reason
