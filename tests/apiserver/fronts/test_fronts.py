"""Writes through both fronts; each test runs over gRPC and over REST against the same server."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    NAMESPACE,
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
)
from tests.apiserver.fronts.adapter import Api, Document, Outcome
from tests.apiserver.fronts.both import Both
from tests.apiserver.fronts.documents import (
    STREAMED_LIST,
    config_map,
    made,
    made_binding,
    pod,
    refused,
    replica_set,
)


def test_create_get_update_delete(api: Api, space: str) -> None:
    created = made(api.create(CONFIG_MAP, config_map("a", {"k": "1"}), space))
    metadata = created["metadata"]
    assert metadata["namespace"] == space
    assert metadata["uid"]
    assert metadata["creationTimestamp"]
    assert api.get(CONFIG_MAP, "a", space).document == created
    changed = copy.deepcopy(created)
    changed["data"]["k"] = "2"
    updated = made(api.update(CONFIG_MAP, changed, space))
    assert int(updated["metadata"]["resourceVersion"]) > int(metadata["resourceVersion"])
    assert (updated["data"], updated["metadata"]["uid"]) == ({"k": "2"}, metadata["uid"])
    again = made(api.update(CONFIG_MAP, updated, space))
    assert again["metadata"]["resourceVersion"] == updated["metadata"]["resourceVersion"], "nothing changed"
    assert api.delete(CONFIG_MAP, "a", space).code == 200
    found = refused(api.get(CONFIG_MAP, "a", space), 404, "NotFound")
    assert found.message == 'configmaps "a" not found'
    assert found.details == {"name": "a", "kind": "configmaps"}


def test_both_fronts_show_the_same(both: Both, space: str) -> None:
    made(both.grpc.create(POD, pod("p", labels={"a": "b"}), space))
    assert both.rest.get(POD, "p", space).document == both.grpc.get(POD, "p", space).document
    assert both.rest.list(POD, space).items == both.grpc.list(POD, space).items


def test_names_are_taken_and_generated(api: Api, space: str) -> None:
    made(api.create(CONFIG_MAP, config_map("a"), space))
    taken = refused(api.create(CONFIG_MAP, config_map("a"), space), 409, "AlreadyExists")
    assert taken.message == 'configmaps "a" already exists'
    generated = {"metadata": {"generateName": "g-"}}
    first, second = (made(api.create(CONFIG_MAP, generated, space))["metadata"]["name"] for _ in range(2))
    assert first != second
    assert first.startswith("g-")
    assert len(first) == len("g-") + 5
    nameless = refused(api.create(CONFIG_MAP, {"metadata": {}}, space), 422, "Invalid")
    assert nameless.causes == [("FieldValueRequired", "metadata.name")]


def test_what_is_wrong_is_said_by_field(api: Api, space: str) -> None:
    broken = pod("Bad_Name")
    broken["spec"]["containers"][0]["name"] = ""
    broken["spec"]["containers"].append({"name": "d", "image": ""})
    outcome = refused(api.create(POD, broken, space), 422, "Invalid")
    assert set(outcome.causes) == {
        ("FieldValueInvalid", "metadata.name"),
        ("FieldValueRequired", "spec.containers[0].name"),
        ("FieldValueRequired", "spec.containers[1].image"),
    }
    assert (outcome.details["name"], outcome.details["kind"]) == ("Bad_Name", "Pod")
    assert outcome.message.startswith('Pod "Bad_Name" is invalid: [')


def test_a_namespace_must_exist(api: Api) -> None:
    missing = refused(api.create(CONFIG_MAP, config_map("a"), "no-such-space"), 404, "NotFound")
    assert missing.message == 'namespaces "no-such-space" not found'


def test_an_old_resource_version_conflicts(api: Api, space: str) -> None:
    old = made(api.create(CONFIG_MAP, config_map("a"), space))
    made(api.update(CONFIG_MAP, {**old, "data": {"k": "1"}}, space))
    conflict = refused(api.update(CONFIG_MAP, {**old, "data": {"k": "2"}}, space), 409, "Conflict")
    assert conflict.message.startswith(
        'Operation cannot be fulfilled on configmaps "a": the object has been modified'
    )
    stale = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "data": {"k": "3"}}
    refused(api.patch(CONFIG_MAP, "a", stale, space), 409, "Conflict")
    assert api.get(CONFIG_MAP, "a", space).data == {"k": "1"}
    unconditional = config_map("a", {"k": "4"})
    assert made(api.update(CONFIG_MAP, unconditional, space))["data"] == {"k": "4"}


def test_names_in_target_and_body_agree(api: Api, space: str) -> None:
    made(api.create(CONFIG_MAP, config_map("a"), space))
    other = config_map("a", namespace="another")
    refused(api.update(CONFIG_MAP, other, space), 400, "BadRequest")
    refused(api.create(CONFIG_MAP, config_map("b", namespace="another"), space), 400, "BadRequest")
    refused(api.patch(CONFIG_MAP, "a", {"metadata": {"name": "b"}}, space), 400, "BadRequest")


@pytest.mark.parametrize(
    ("name", "problem"), [("a%b", "may not contain '%'"), ("..", "may not be '..'"), (".", "may not be '.'")]
)
def test_names_that_no_object_has(api: Api, space: str, name: str, problem: str) -> None:
    for outcome in (
        api.get(CONFIG_MAP, name, space),
        api.patch(CONFIG_MAP, name, {}, space),
        api.delete(CONFIG_MAP, name, space),
        made_binding(api, name, space, "n1"),
    ):
        message = f'Name parameter invalid: "{name}": {problem}'
        assert refused(outcome, 400, "BadRequest").message == message


@pytest.mark.parametrize(
    ("form", "patch", "data"),
    [
        ("merge", {"data": {"a": "2", "b": None}}, {"a": "2"}),
        ("strategic", {"data": {"c": "3"}}, {"a": "1", "b": "1", "c": "3"}),
        ("json", [{"op": "remove", "path": "/data/a"}], {"b": "1"}),
        ("json", [{"op": "copy", "from": "/data/a", "path": "/data/z"}], {"a": "1", "b": "1", "z": "1"}),
    ],
)
def test_patches(api: Api, space: str, form: str, patch: Any, data: dict[str, str]) -> None:
    made(api.create(CONFIG_MAP, config_map("a", {"a": "1", "b": "1"}), space))
    assert made(api.patch(CONFIG_MAP, "a", patch, space, form=form))["data"] == data
    assert api.get(CONFIG_MAP, "a", space).data == data


def test_strategic_patches_merge_lists_by_key(api: Api, space: str) -> None:
    made(api.create(POD, pod("p"), space))
    conditions = [{"type": "Ready", "status": "True"}]
    for status in ("True", "False"):
        conditions[0]["status"] = status
        patched = made(
            api.patch(
                POD,
                "p",
                {"status": {"conditions": conditions}},
                space,
                form="strategic",
                subresource="status",
            )
        )
    assert [(c["type"], c["status"]) for c in patched["status"]["conditions"]] == [("Ready", "False")]


@pytest.mark.parametrize(
    ("form", "patch", "code"),
    [
        ("merge", b"{", 400),
        ("merge", b"[]", 400),
        ("strategic", b'"x"', 400),
        ("json", b"{}", 400),
        ("json", b'[{"op":"test","path":"/data/a","value":"no"}]', 422),
        ("json", b'[{"op":"remove","path":"/none/x"}]', 422),
        ("merge", b'{"data":{"a":1}}', 422),
        ("merge", b'{"data":' * 20_000 + b"1" + b"}" * 20_000, 400),
    ],
)
def test_patches_that_do_not_apply_change_nothing(
    api: Api, space: str, form: str, patch: bytes, code: int
) -> None:
    before = made(api.create(CONFIG_MAP, config_map("a", {"a": "1"}), space))
    assert api.patch(CONFIG_MAP, "a", patch, space, form=form).code == code
    assert api.get(CONFIG_MAP, "a", space).document == before


def test_unknown_fields_of_a_patch(api: Api, space: str) -> None:
    before = made(api.create(CONFIG_MAP, config_map("a"), space))
    patch = {"data": {"a": "1"}, "nope": 1, "metadata": {"odd": 2}}
    strict = refused(api.patch(CONFIG_MAP, "a", patch, space, fieldValidation="Strict"), 422, "Invalid")
    assert 'strict decoding error: unknown field "' in strict.message
    assert 'unknown field "nope"' in strict.message
    assert api.get(CONFIG_MAP, "a", space).document == before
    warned = api.patch(CONFIG_MAP, "a", patch, space, fieldValidation="Warn")
    assert (warned.code, set(warned.warnings)) == (
        200,
        {'unknown field "nope"', 'unknown field "metadata.odd"'},
    )
    quiet = api.patch(CONFIG_MAP, "a", patch, space, fieldValidation="Ignore")
    assert (quiet.code, quiet.warnings) == (200, ())
    odd = refused(api.patch(CONFIG_MAP, "a", patch, space, fieldValidation="Loud"), 422, "Invalid")
    assert odd.causes == [("FieldValueNotSupported", "fieldValidation")]


def test_dry_runs_store_nothing(api: Api, space: str) -> None:
    tried = made(api.create(CONFIG_MAP, config_map("a", {"k": "1"}), space, dryRun="All"))
    assert tried["metadata"]["uid"]
    refused(api.get(CONFIG_MAP, "a", space), 404, "NotFound")
    before = made(api.create(CONFIG_MAP, config_map("a", {"k": "1"}), space))
    assert made(api.update(CONFIG_MAP, {**before, "data": {"k": "2"}}, space, dryRun="All"))["data"] == {
        "k": "2"
    }
    assert made(api.patch(CONFIG_MAP, "a", {"data": {"k": "3"}}, space, dryRun="All"))["data"] == {"k": "3"}
    assert api.delete(CONFIG_MAP, "a", space, body={"dryRun": ["All"]}).code == 200
    assert api.get(CONFIG_MAP, "a", space).document == before
    half = refused(api.delete(CONFIG_MAP, "a", space, body={"dryRun": ["Some"]}), 422, "Invalid")
    assert half.causes == [("FieldValueNotSupported", "dryRun")]


def test_preconditions_of_a_delete(api: Api, space: str) -> None:
    found = made(api.create(CONFIG_MAP, config_map("a"), space))["metadata"]
    wrong: list[Document] = [{"uid": "other"}, {"resourceVersion": "1"}]
    for preconditions in wrong:
        refused(api.delete(CONFIG_MAP, "a", space, body={"preconditions": preconditions}), 409, "Conflict")
    own = {"uid": found["uid"], "resourceVersion": found["resourceVersion"]}
    assert api.delete(CONFIG_MAP, "a", space, body={"preconditions": own}).code == 200
    refused(api.delete(CONFIG_MAP, "a", space), 404, "NotFound")


def test_finalizers_keep_an_object_until_they_are_gone(api: Api, space: str) -> None:
    made(api.create(CONFIG_MAP, config_map("a", finalizers=["x.io/keep"]), space))
    marked = api.delete(CONFIG_MAP, "a", space)
    assert marked.code == 200
    kept = api.get(CONFIG_MAP, "a", space)
    assert kept.metadata["deletionTimestamp"]
    more = {"metadata": {"finalizers": ["x.io/keep", "x.io/more"]}}
    refused(api.patch(CONFIG_MAP, "a", more, space), 422, "Invalid")
    assert api.patch(CONFIG_MAP, "a", {"metadata": {"finalizers": []}}, space).code == 200
    refused(api.get(CONFIG_MAP, "a", space), 404, "NotFound")


def test_propagation_sets_finalizers(api: Api, space: str) -> None:
    for name, policy, finalizers in (
        ("f", "Foreground", ["foregroundDeletion"]),
        ("o", "Orphan", ["orphan"]),
    ):
        made(api.create(REPLICA_SET, replica_set(name), space))
        assert api.delete(REPLICA_SET, name, space, body={"propagationPolicy": policy}).code == 200
        assert api.get(REPLICA_SET, name, space).metadata["finalizers"] == finalizers
    odd = api.delete(REPLICA_SET, "f", space, body={"propagationPolicy": "Sideways"})
    refused(odd, 422, "Invalid")


def test_pods_end_gracefully(api: Api, space: str) -> None:
    for name in ("waiting", "running"):
        made(api.create(POD, pod(name), space))
    made_binding(api, "running", space, "n1")
    assert api.delete(POD, "waiting", space).code == 200
    refused(api.get(POD, "waiting", space), 404, "NotFound")
    marked = made(api.delete(POD, "running", space))
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    shorter = made(api.delete(POD, "running", space, body={"gracePeriodSeconds": 5}))
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    assert api.delete(POD, "running", space, body={"gracePeriodSeconds": 0}).code == 200
    refused(api.get(POD, "running", space), 404, "NotFound")


def test_a_pod_is_bound_once(api: Api, space: str) -> None:
    made(api.create(POD, pod("p"), space))
    assert made_binding(api, "p", space, "n1").code == 200
    bound = api.get(POD, "p", space)
    assert bound.spec["nodeName"] == "n1"
    scheduled = {c["type"]: c["status"] for c in bound.status["conditions"]}
    assert scheduled["PodScheduled"] == "True"
    again = refused(made_binding(api, "p", space, "n2"), 409, "Conflict")
    assert "pod p is already assigned to node" in again.message
    refused(made_binding(api, "missing", space, "n1"), 404, "NotFound")
    nowhere = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": ""}}
    # Upstream hands this one on as a plain error.
    refused(api.create(POD, nowhere, space, name="p", subresource="binding"), 500, "")


def test_eviction_asks_the_budget(api: Api, space: str) -> None:
    made(api.create(POD, pod("p", labels={"app": "a"}), space))
    budget = {
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    }
    stored = made(api.create(POD_DISRUPTION_BUDGET, budget, space))
    made_binding(api, "p", space, "n1")
    # A pod that is not ready yet is protected by nothing but a budget that knows of it.
    counts = dict.fromkeys(("observedGeneration", "currentHealthy", "desiredHealthy", "expectedPods"), 1)
    stored["status"] = {**counts, "disruptionsAllowed": 0}
    made(api.update(POD_DISRUPTION_BUDGET, stored, space, subresource="status"))
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    made(api.patch(POD, "p", ready, space, form="strategic", subresource="status"))
    eviction = {"metadata": {"name": "p", "namespace": space}}
    held = api.create(POD, eviction, space, name="p", subresource="eviction")
    refused(held, 429, "TooManyRequests")
    assert held.causes == [("DisruptionBudget", "")]
    newest = api.get(POD_DISRUPTION_BUDGET, "b", space).document
    newest["status"]["disruptionsAllowed"] = 1
    made(api.update(POD_DISRUPTION_BUDGET, newest, space, subresource="status"))
    dry = {**eviction, "deleteOptions": {"dryRun": ["All"]}}
    assert api.create(POD, dry, space, name="p", subresource="eviction").code == 200
    assert "deletionTimestamp" not in api.get(POD, "p", space).metadata
    assert api.create(POD, eviction, space, name="p", subresource="eviction").code == 200
    assert api.get(POD, "p", space).metadata["deletionTimestamp"]
    assert api.get(POD_DISRUPTION_BUDGET, "b", space).status["disruptionsAllowed"] == 0


def test_resize_changes_resources_and_nothing_else(api: Api, space: str) -> None:
    created = made(api.create(POD, pod("p"), space))
    assert created["metadata"]["generation"] == 1
    bigger: Any = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m"}}}]}}
    patched = made(api.patch(POD, "p", bigger, space, form="strategic", subresource="resize"))
    assert patched["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"
    assert patched["metadata"]["generation"] == 2
    bigger["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "300m"
    refused(api.patch(POD, "p", bigger, space, form="strategic"), 422, "Invalid")
    image = {"spec": {"containers": [{"name": "c", "image": "other"}]}}
    outcome = api.patch(POD, "p", image, space, form="strategic", subresource="resize")
    assert outcome.code in (200, 422)
    assert api.get(POD, "p", space).spec["containers"][0]["image"] == "i"


def test_scale(api: Api, space: str) -> None:
    made(api.create(REPLICA_SET, replica_set("r"), space))
    scale = made(api.get(REPLICA_SET, "r", space, subresource="scale"))
    assert (scale["kind"], scale["apiVersion"], scale["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 2})
    assert scale["status"]["selector"] == "app=r"
    scale["spec"]["replicas"] = 5
    assert made(api.update(REPLICA_SET, scale, space, subresource="scale"))["spec"] == {"replicas": 5}
    found = api.get(REPLICA_SET, "r", space)
    assert (found.spec["replicas"], found.metadata["generation"]) == (5, 2)
    refused(
        api.update(REPLICA_SET, {**scale, "spec": {"replicas": 6}}, space, subresource="scale"),
        409,
        "Conflict",
    )
    patched = api.patch(REPLICA_SET, "r", {"spec": {"replicas": 0}}, space, subresource="scale")
    assert made(patched)["spec"].get("replicas", 0) == 0
    refused(api.get(POD, "r", space, subresource="scale"), 404, "NotFound")
    refused(api.get(REPLICA_SET, "none", space, subresource="scale"), 404, "NotFound")


def test_status_and_spec_are_written_apart(api: Api, space: str) -> None:
    created = made(api.create(DEPLOYMENT, replica_set("d"), space))
    changed = copy.deepcopy(created)
    changed["spec"]["replicas"], changed["status"] = 7, {"replicas": 3, "observedGeneration": 1}
    by_status = made(api.update(DEPLOYMENT, changed, space, subresource="status"))
    assert (by_status["spec"]["replicas"], by_status["status"]["replicas"]) == (2, 3)
    assert by_status["metadata"]["generation"] == 1
    changed["metadata"]["resourceVersion"] = by_status["metadata"]["resourceVersion"]
    changed["status"] = {"replicas": 1}
    by_spec = made(api.update(DEPLOYMENT, changed, space))
    assert (by_spec["spec"]["replicas"], by_spec["status"]["replicas"]) == (7, 3)
    assert by_spec["metadata"]["generation"] == 2


def test_collections_are_deleted_by_selector(api: Api, space: str) -> None:
    for name, app in (("a", "x"), ("b", "x"), ("c", "y")):
        made(api.create(CONFIG_MAP, config_map(name, labels={"app": app}), space))
    deleted = api.delete_collection(CONFIG_MAP, space, labelSelector="app=x")
    assert (deleted.code, deleted.names) == (200, ["a", "b"])
    assert api.list(CONFIG_MAP, space).names == ["c"]
    assert api.delete_collection(NAMESPACE).code == 405
    # No request deletes those of every namespace.
    assert api.delete_collection(CONFIG_MAP).code == 405
    assert api.list(CONFIG_MAP, space).names == ["c"]


def test_cluster_scoped_objects(api: Api, space: str) -> None:
    node = {"metadata": {"name": f"node-{space}"}, "status": {"allocatable": {"cpu": "4"}}}
    made(api.create(NODE, node))
    made(api.patch(NODE, f"node-{space}", {"spec": {"unschedulable": True}}))
    found = api.get(NODE, f"node-{space}")
    assert found.spec["unschedulable"] is True
    assert "namespace" not in found.metadata
    assert api.list(NODE, fieldSelector="spec.unschedulable=true").names.count(f"node-{space}") == 1
    assert api.delete(NODE, f"node-{space}").code == 200


def test_a_namespace_that_is_deleted_takes_no_more(api: Api, space: str) -> None:
    made(api.create(CONFIG_MAP, config_map("a"), space))
    assert api.delete(NAMESPACE, space).code == 200
    assert api.get(NAMESPACE, space).status["phase"] == "Terminating"
    refused(api.create(CONFIG_MAP, config_map("b"), space), 403, "Forbidden")


def test_applies_have_owners(api: Api, space: str) -> None:
    def applied(manager: str, data: dict[str, str], **options: Any) -> Outcome:
        document = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("a", data)}
        return api.patch(CONFIG_MAP, "a", document, space, form="apply", fieldManager=manager, **options)

    made(applied("one", {"x": "1"}))
    made(applied("two", {"y": "1"}))
    conflict = refused(applied("two", {"x": "2", "y": "1"}), 409, "Conflict")
    assert conflict.causes == [("FieldManagerConflict", ".data.x")]
    made(applied("two", {"x": "2", "y": "1"}, force=True))
    assert made(applied("one", {}))["data"] == {"x": "2", "y": "1"}
    managers = {entry["manager"] for entry in api.get(CONFIG_MAP, "a", space).metadata["managedFields"]}
    assert {"two"} <= managers


def test_every_kind_can_be_listed_and_watched(api: Api) -> None:
    for kind in kinds.KINDS:
        page = api.list(kind, limit=1)
        if kind.gate:
            assert page.code == 404, kind
            continue
        assert page.code == 200, (kind, page)
        with api.watch(kind, **STREAMED_LIST) as stream:
            event = stream.next()
        assert event.type in ("ADDED", "BOOKMARK"), (kind, event)


def test_a_pods_negative_grace_period_is_one_second(api: Api, space: str) -> None:
    negative = {"spec": {"terminationGracePeriodSeconds": -1}}
    document = pod("p")
    document["spec"] |= negative["spec"]
    outcome = api.create(POD, document, space)
    stored = made(outcome)
    assert stored["spec"]["terminationGracePeriodSeconds"] == 1
    assert outcome.warnings == ()
    stored["spec"] |= negative["spec"]
    for again in (api.update(POD, stored, space), *(api.patch(POD, "p", negative, space, form=form)
                  for form in ("merge", "strategic"))):  # fmt: skip
        assert made(again)["spec"]["terminationGracePeriodSeconds"] == 1
        assert again.metadata["generation"] == 1


def test_a_templates_negative_grace_period_is_kept_with_a_warning(api: Api, space: str) -> None:
    document = replica_set("r")
    document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = -1
    outcome = api.create(REPLICA_SET, document, space)
    assert made(outcome)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == -1
    assert outcome.warnings == (
        "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will"
        " be treated as 1",
    )


def test_a_nodes_status_gets_no_config(api: Api, space: str) -> None:
    name = f"configured-{space}"
    node = made(api.create(NODE, {"metadata": {"name": name}}))
    config = {"status": {"config": {"error": "e"}, "phase": "Running"}}
    written = [
        api.update(NODE, {**node, **config}, subresource="status"),
        api.patch(NODE, name, config, subresource="status"),
    ]
    for outcome in written:
        status = made(outcome)["status"]
        assert status["phase"] == "Running"
        assert "config" not in status


@pytest.mark.parametrize("subresource", ["log", "exec", "attach", "portforward", "proxy"])
def test_a_subresource_that_needs_a_container_is_refused_once_the_pod_is_found(
    api: Api, space: str, subresource: str
) -> None:
    missing = refused(api.get(POD, "p", space, subresource=subresource), 404, "NotFound")
    assert missing.message == 'pods "p" not found'
    made(api.create(POD, pod("p"), space))
    name = "http:p:80" if subresource == "proxy" else "p"
    refusal = refused(api.get(POD, name, space, subresource=subresource), 501, "NotImplemented")
    assert refusal.message == f"pods/{subresource} is not emulated: Nominee's kubelets run no containers"
