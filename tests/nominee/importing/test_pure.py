"""Sources, order, preparation and report of an import, without a cluster."""

from __future__ import annotations

import base64
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nominee.command_group import nominee
from nominee.importing.check import check_files
from nominee.importing.order import lacking, owner_uids, waves
from nominee.importing.preparation import NotServed, kind_of, prepare
from nominee.importing.report import Report, reason
from nominee.importing.sources import SourceError, Sources, identity
from nominee.machinery.api.objects import ADOPTED
from nominee.machinery.wire.codec import to_json
from tests.nominee.importing.dumps import dump

Document = dict[str, Any]


def made(kind: str, name: str, namespace: str = "", api_version: str = "v1", **more: Any) -> Document:
    metadata = {"name": name, "uid": f"uid-{name}", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata | more.pop("metadata", {}), **more}


def owned(by: Document) -> Document:
    owner = {"apiVersion": by["apiVersion"], "kind": by["kind"], **by["metadata"]}
    return {"ownerReferences": [{key: owner[key] for key in ("apiVersion", "kind", "name", "uid")}]}


# Sources.


def test_lists_documents_and_files_are_read_together(tmp_path: Path) -> None:
    first, second, third = tmp_path / "a.yaml", tmp_path / "b.json", tmp_path / "c.yaml"
    first.write_text(
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}}\n"
    )
    second.write_text(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [made("Pod", "p", "x")]}))
    third.write_text(
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n---\n---\n"
        "apiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {later: wins}}\n"
    )
    found = Sources(map(str, (first, second, third))).documents
    assert [identity(each)[1:] for each in found] == [
        ("Node", "", "a"),
        ("Pod", "x", "p"),
        ("Namespace", "", "x"),
    ]
    assert found[0]["metadata"]["labels"] == {"later": "wins"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: ]\n", "line 2: not valid YAML: did not find expected node content"),
        ("- 1\n", "expected an object"),
        ('{"kind": "Pod", ]', "not valid YAML"),
        ("", "no objects in"),
        ('{"kind": "List", "apiVersion": "v1", "items": null}', "no objects in"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(SourceError, match=message) as raised:
        Sources([str(path)])
    assert str(path) in str(raised.value)


STATUS = '{"kind": "Status", "apiVersion": "v1", "message": "pods is forbidden"}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STATUS, "can be imported: Status is the answer to a failed request: pods is forbidden"),
        ('{"items": []}', "can be imported: an object is no object: it has no apiVersion, no kind or no"),
        ("a: ]", "a.yaml: line 1: not valid YAML"),
    ],
)
def test_up_refuses_files_before_it_makes_a_directory(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    words = ["up", "--from", str(path), "--dir", str(tmp_path / "new")]
    result = CliRunner().invoke(nominee, words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Error: Error:" not in result.stderr
    assert not (tmp_path / "new").exists()


def test_files_with_something_to_import_are_checked_quickly(tmp_path: Path) -> None:
    good, status, large = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.yaml"
    good.write_text(json.dumps(made("Node", "n")))
    status.write_text(STATUS)
    large.write_text("a: [" + " " * (5 << 20))
    check_files([good, status])
    check_files([large])  # it is left to the import
    with pytest.raises(SourceError, match=r"nothing in .*b\.json can be imported"):
        check_files([status])
    with pytest.raises(SourceError, match="No such file"):
        check_files([tmp_path / "none"])


# Order.


def test_an_object_comes_after_what_it_refers_to() -> None:
    node, namespace = made("Node", "n"), made("Namespace", "x")
    deployment = made("Deployment", "d", "x", "apps/v1")
    replica_set = made("ReplicaSet", "r", "x", "apps/v1", metadata=owned(deployment))
    pod = made("Pod", "p", "x", metadata=owned(replica_set), spec={"nodeName": "n"})
    quota = made("ResourceQuota", "q", "x")
    found = waves([quota, pod, replica_set, deployment, namespace, node])
    assert [[each["metadata"]["name"] for each in wave] for wave in found] == [
        ["x", "n"],
        ["d"],
        ["r"],
        ["p"],
        ["q"],
    ]


def test_references_in_a_circle_do_not_count() -> None:
    one, other = made("Pod", "a", "x"), made("Pod", "b", "x")
    one["metadata"] |= owned(other)
    other["metadata"] |= owned(one)
    assert sorted(each["metadata"]["name"] for wave in waves([one, other]) for each in wave) == ["a", "b"]


def test_every_reference_of_a_dump_is_to_an_earlier_wave() -> None:
    items = dump(20, 200)["items"]
    place = {each["metadata"]["uid"]: number for number, wave in enumerate(waves(items)) for each in wave}
    assert len(place) == len(items)
    pairs = [(uid, each["metadata"]["uid"]) for each in items for uid in owner_uids(each)]
    assert len(pairs) > 200
    assert all(place[owner] < place[uid] for owner, uid in pairs)


def test_namespaces_and_accounts_that_a_dump_lacks_are_made() -> None:
    pods = [made("Pod", "p", "x", spec={"serviceAccountName": "web"}), made("Pod", "q", "y", spec={})]
    present = [("Namespace", "", "y"), ("ServiceAccount", "y", "default")]
    found = lacking(pods, present)
    assert [identity(each)[1:] for each in found] == [("Namespace", "", "x"), ("ServiceAccount", "x", "web")]


# Preparation.


def test_old_uids_are_replaced_wherever_they_are() -> None:
    job = made("Job", "j", "x", "batch/v1")
    job["spec"] = {"selector": {"matchLabels": {"controller-uid": "uid-j"}}, "template": {"spec": {}}}
    labels = {"controller-uid": "uid-j", "other": "uid-of-nothing"}
    pod = made("Pod", "p", "x", metadata={**owned(job), "labels": labels, "resourceVersion": "7"})
    uids = {"uid-j": "new-j", "uid-p": "new-p"}
    new: Any = to_json(prepare(pod, uids, (), secrets=False))
    assert new["metadata"]["uid"] == "new-p"
    assert new["metadata"]["ownerReferences"][0]["uid"] == "new-j"
    assert new["metadata"]["labels"] == {"controller-uid": "new-j", "other": "uid-of-nothing"}
    assert "resourceVersion" not in new["metadata"]
    new_job: Any = to_json(prepare(job, uids, (), secrets=False))
    assert new_job["spec"]["selector"]["matchLabels"] == {"controller-uid": "new-j"}


def test_references_to_owners_that_do_not_come_are_left_out() -> None:
    rollout = made("Rollout", "r", "x", "argoproj.io/v1alpha1")
    pod = made("Pod", "p", "x", metadata=owned(rollout))
    assert "ownerReferences" not in to_json(prepare(pod, {}, {"uid-r"}, secrets=False))["metadata"]


def test_nodes_are_marked_for_adoption() -> None:
    new: Any = to_json(
        prepare(made("Node", "n", metadata={"annotations": {"a": "b"}}), {}, (), secrets=False)
    )
    assert new["metadata"]["annotations"] == {"a": "b", ADOPTED: ""}


def test_values_of_secrets_come_only_if_asked_for() -> None:
    last = {"kubectl.kubernetes.io/last-applied-configuration": "c2VjcmV0", "a": "b"}
    secret = made("Secret", "s", "x", metadata={"annotations": last}, data={"password": "c2VjcmV0"})
    without: Any = to_json(prepare(secret, {}, (), secrets=False))
    assert base64.b64decode(without["data"]["password"]) == b"{}"
    assert without["metadata"]["annotations"] == {"a": "b"}
    assert "c2VjcmV0" not in json.dumps(without)
    with_values: Any = to_json(prepare(secret, {}, (), secrets=True))
    assert (with_values["data"], with_values["metadata"]["annotations"]) == ({"password": "c2VjcmV0"}, last)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (made("Certificate", "c", "x", "cert-manager.io/v1"), "cert-manager.io/v1 is not served"),
        (made("CustomResourceDefinition", "c", "", "apiextensions.k8s.io/v1"), "is not served"),
        (made("Pod", "p", "x", metadata={"deletionTimestamp": "2025-01-01T00:00:00Z"}), "is being deleted"),
    ],
)
def test_what_cannot_come_has_a_reason(document: Document, message: str) -> None:
    with pytest.raises(NotServed, match=message):
        kind_of(document)


# Report.


def test_refusals_are_grouped_by_kind_and_reason() -> None:
    report = Report()
    for number in range(10):
        name = f"web-{number}"
        pod = made("Pod", name, "x")
        report.refuse(pod, f'pods "{name}" is forbidden: no PriorityClass with name gold was found')
    report.refuse(made("Node", "n"), "is being deleted")
    lines = list(report.lines())
    assert lines[-5:] == [
        "did not come: 11",
        "  1 Node: is being deleted",
        "    n",
        "  10 Pod: forbidden: no PriorityClass with name gold was found",
        "    x/web-0, x/web-1, x/web-2, x/web-3, x/web-4, x/web-5, x/web-6, x/web-7, and 2 more",
    ]
    assert max(map(len, report.refusals.values())) == 10
    assert not report.is_complete


def test_the_report_of_a_dry_run_says_that_nothing_was_imported() -> None:
    report = Report(dry_run=True)
    report.counts["Node"] = 2
    report.additions.append("Namespace x")
    report.refuse(made("Node", "n"), "is being deleted")
    report.lose_part(made("Pod", "p"), "its owner does not come: Rollout")
    assert [line for line in report.lines() if not line.startswith(" ")] == [
        "2 objects would be imported: 2 Node",
        "would be made, since the objects need them: Namespace x",
        "would come without a part: 1",
        "would not come: 1",
    ]
    assert report.to_json()["dryRun"] is True


def test_a_wrong_field_has_its_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "".join(
            f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers: 5\n"
            for name in "ab"
        )
    )
    report, sources = Report(), Sources([str(file)])
    for document in sources.documents:
        with pytest.raises(NotServed) as raised:
            prepare(document, {}, (), secrets=False)
        report.refuse(document, str(raised.value), partial(sources.where, document, raised.value.path))
    assert list(report.lines())[-2:] == [
        "  2 Pod: spec.containers: expected an array, got number",
        f"    a ({file}:6), b",
    ]
    assert report.is_empty


def test_a_reason_does_not_name_the_object() -> None:
    assert reason('Pod "a.b" is invalid: spec: "a.b" is bad', "a.b") == 'invalid: spec: "…" is bad'
    assert reason('pods "aXb" is forbidden', "a.b") == 'pods "aXb" is forbidden'
