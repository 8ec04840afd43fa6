"""Server-side apply over REST, for what the recorded answers lack: creation, options, bodies, scale."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apiserver.rest.asgi import Reply, Rest, in_memory

CONFIG_MAP = "/api/v1/namespaces/default/configmaps/x"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/x"
HEADERS = {"accept": "application/json", "content-type": "application/apply-patch+yaml"}
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"}}


def config_map(data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **metadata}}
    return made if data is None else {**made, "data": data}


def deployment(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec},
    }


async def apply(rest: Rest, path: str, body: Any, manager: str = "m", **query: str) -> Reply:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await rest.request("PATCH", path, {"fieldManager": manager, **query}, data, HEADERS)


async def owners(rest: Rest, path: str) -> list[tuple[str, ...]]:
    document = (await rest.json("GET", path)).document
    return [
        (entry["manager"], entry["operation"], entry.get("subresource", ""))
        for entry in document["metadata"].get("managedFields", [])
    ]


async def test_what_does_not_exist_is_created_with_what_a_creation_gives() -> None:
    rest = await in_memory()
    made = await apply(rest, DEPLOYMENT, deployment())
    assert made.code == 201
    assert made.document["spec"]["replicas"] == 1
    assert made.document["metadata"]["generation"] == 1
    again = await apply(rest, DEPLOYMENT, deployment())
    assert again.code == 200
    assert again.document["metadata"] == made.document["metadata"]


async def test_creation_by_uid_is_a_conflict() -> None:
    reply = await apply(await in_memory(), CONFIG_MAP, config_map(uid="u"))
    assert (reply.code, reply.document["reason"]) == (409, "Conflict")
    assert reply.document["message"] == (
        'Operation cannot be fulfilled on configmaps "x": uid mismatch: the provided object specified uid u,'
        " and no existing object was found"
    )


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (config_map(name="y"), 400, "the name of the object (y) does not match the name on the URL (x)"),
        (config_map(namespace="other"), 400,
         "the namespace of the provided object does not match the namespace sent on the request"),
        (b"[1]", 400, "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot"
         " unmarshal array into Go value of type map[string]interface {}"),
        (b"", 400, "invalid object type: /, Kind="),
        (b"kind: [", 400, "error decoding YAML: error converting YAML to JSON: yaml: line 1: did not find"
         " expected node content"),
        (b"a: 1\nb: c: d\n", 400, "error decoding YAML: error converting YAML to JSON: yaml: line 2: mapping"
         " values are not allowed in this context"),
        (b"a: 1\nb: *x\n", 400, "error decoding YAML: error converting YAML to JSON: yaml: unknown anchor"
         " 'x' referenced"),
        (config_map(creationTimestamp="x"), 500, "failed to convert new object (/x; /v1, Kind=ConfigMap) to"
         " proper version: unable to convert unstructured object to /v1, Kind=ConfigMap: parsing time"
         ' "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ],
)  # fmt: skip
async def test_bodies_that_are_refused(body: Any, code: int, message: str) -> None:
    reply = await apply(await in_memory(), CONFIG_MAP, body)
    assert (reply.code, reply.document["message"]) == (code, message)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"replicas": 2.5}, "cannot convert float64 to int32"),
        ({"strategy": {"rollingUpdate": {"maxSurge": True}}},
         "json: cannot unmarshal bool into Go value of type int32"),
    ],
)  # fmt: skip
async def test_values_that_no_field_holds(spec: dict[str, Any], reason: str) -> None:
    reply = await apply(await in_memory(), DEPLOYMENT, deployment(**spec))
    assert (reply.code, reply.document["message"]) == (
        500,
        "failed to convert new object (/x; apps/v1, Kind=Deployment) to proper version: unable to convert"
        f" unstructured object to apps/v1, Kind=Deployment: {reason}",
    )


async def test_a_manager_must_be_named_and_a_status_must_exist() -> None:
    rest = await in_memory()
    unnamed = await apply(rest, CONFIG_MAP, config_map(), manager="")
    assert (unnamed.code, unnamed.document["message"]) == (
        422,
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    )
    missing = await apply(rest, f"{DEPLOYMENT}/status", deployment())
    assert (missing.code, missing.document["reason"]) == (404, "NotFound")


async def test_a_dry_run_makes_nothing() -> None:
    rest = await in_memory()
    assert (await apply(rest, CONFIG_MAP, config_map({"a": "1"}), dryRun="All")).code == 201
    assert (await rest.json("GET", CONFIG_MAP)).code == 404
    await apply(rest, CONFIG_MAP, config_map({"a": "1"}))
    dry = await apply(rest, CONFIG_MAP, config_map({"a": "2"}), "other", dryRun="All", force="true")
    assert dry.document["data"] == {"a": "2"}
    assert await owners(rest, CONFIG_MAP) == [("m", "Apply", "")]


async def test_keys_that_come_twice() -> None:
    rest = await in_memory()
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  a: '1'\n  a: '2'\n"
    text = 'line 7: key "a" already set in map'
    strict = await apply(rest, CONFIG_MAP, body, fieldValidation="Strict")
    assert strict.code == 400
    assert strict.document["message"] == (
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  " + text
    )
    warned = await apply(rest, CONFIG_MAP, body)
    assert (warned.code, warned.warnings, warned.document["data"]) == (201, [text], {"a": "2"})
    assert (await apply(rest, CONFIG_MAP, body, fieldValidation="Ignore")).warnings == []


async def test_an_old_resource_version_is_a_conflict() -> None:
    rest = await in_memory()
    old = (await apply(rest, CONFIG_MAP, config_map({"a": "1"}))).document["metadata"]["resourceVersion"]
    now = (await apply(rest, CONFIG_MAP, config_map({"a": "2"}, resourceVersion=old))).document
    assert now["data"] == {"a": "2"}
    stale = await apply(rest, CONFIG_MAP, config_map({"a": "3"}, resourceVersion=old))
    assert stale.code == 409
    assert stale.document["message"].endswith("please apply your changes to the latest version and try again")


async def test_managed_fields_are_reset_by_an_empty_list() -> None:
    rest = await in_memory()
    document = (await apply(rest, CONFIG_MAP, config_map({"a": "1"}))).document
    document["metadata"].pop("managedFields")
    kept = await rest.json("PUT", CONFIG_MAP, document)
    assert [entry["manager"] for entry in kept.document["metadata"]["managedFields"]] == ["m"]
    reset = kept.document
    reset["metadata"]["managedFields"] = []
    assert "managedFields" not in (await rest.json("PUT", CONFIG_MAP, reset)).document["metadata"]
    await rest.json("PUT", CONFIG_MAP, config_map({"a": "2"}))
    assert await owners(rest, CONFIG_MAP) == []
    await apply(rest, CONFIG_MAP, config_map({"b": "1"}))
    assert await owners(rest, CONFIG_MAP) == [("m", "Apply", ""), ("before-first-apply", "Update", "")]


async def test_entries_with_a_manager_that_cannot_be_are_refused() -> None:
    rest = await in_memory()
    document = (await apply(rest, CONFIG_MAP, config_map({"a": "1"}))).document
    document["metadata"]["managedFields"][0]["manager"] = "m" * 129
    reply = await rest.json("PUT", CONFIG_MAP, document)
    problem = "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes"
    assert problem in reply.document["message"]


async def test_who_scales_owns_replicas() -> None:
    rest = await in_memory()
    await apply(rest, DEPLOYMENT, deployment(replicas=2))
    scale = (await rest.json("GET", f"{DEPLOYMENT}/scale")).document
    scale["spec"]["replicas"] = 5
    assert (await rest.json("PUT", f"{DEPLOYMENT}/scale", scale, {"fieldManager": "hpa"})).code == 200
    assert await owners(rest, DEPLOYMENT) == [("m", "Apply", ""), ("hpa", "Update", "scale")]
    refused = await apply(rest, DEPLOYMENT, deployment(replicas=2))
    assert refused.document["message"] == (
        'Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using apps/v1:'
        " .spec.replicas"
    )
    assert (await apply(rest, DEPLOYMENT, deployment())).document["spec"]["replicas"] == 5


async def test_a_scale_can_be_applied() -> None:
    rest = await in_memory()
    await apply(rest, DEPLOYMENT, deployment(replicas=2))
    wanted = {**SCALE, "spec": {"replicas": 7}}
    refused = await apply(rest, f"{DEPLOYMENT}/scale", wanted, "a")
    assert refused.document["message"] == ('Apply failed with 1 conflict: conflict with "m": .spec.replicas')
    done = await apply(rest, f"{DEPLOYMENT}/scale", wanted, "a", force="true")
    assert (done.code, done.document["spec"]) == (200, {"replicas": 7})
    assert await owners(rest, DEPLOYMENT) == [("a", "Apply", "scale"), ("m", "Apply", "")]


async def test_binding_makes_no_entry() -> None:
    rest = await in_memory()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
    await rest.json("POST", "/api/v1/namespaces/default/pods", pod, {"fieldManager": "creator"})
    where = "/api/v1/namespaces/default/pods/p"
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "n"}}
    bound = await rest.json("POST", f"{where}/binding", binding, {"fieldManager": "scheduler"})
    assert bound.code == 201
    assert await owners(rest, where) == [("creator", "Update", "")]
    patch = {"status": {"phase": "Running"}}
    types = {"content-type": "application/strategic-merge-patch+json", "user-agent": "kubelet/v1.36 (linux)"}
    await rest.request("PATCH", f"{where}/status", {}, json.dumps(patch).encode(), types)
    assert await owners(rest, where) == [("creator", "Update", ""), ("kubelet", "Update", "status")]


async def test_an_event_is_owned_in_the_version_that_is_applied() -> None:
    rest = await in_memory()
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    new = {
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "regarding": about,
        "eventTime": "2024-01-01T00:00:00.000000Z", "reason": "r", "type": "Normal", "action": "a",
        "reportingController": "x.io/c", "reportingInstance": "i",
    }  # fmt: skip
    made = await apply(rest, "/apis/events.k8s.io/v1/namespaces/default/events/e", new)
    assert made.code == 201, made.body
    core = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "labels": {"l": "v"}}}
    assert (await apply(rest, "/api/v1/namespaces/default/events/e", core, "n")).code == 200
    document = (await rest.json("GET", "/api/v1/namespaces/default/events/e")).document
    assert document["reportingComponent"] == "x.io/c"
    entries = document["metadata"]["managedFields"]
    assert [(entry["manager"], entry["apiVersion"]) for entry in entries] == [
        ("m", "events.k8s.io/v1"), ("n", "v1"),
    ]  # fmt: skip


async def test_a_duplicate_owner_is_dropped_with_a_warning() -> None:
    rest = await in_memory()
    owner = {"apiVersion": "v1", "kind": "A", "name": "n", "uid": "u"}
    where = CONFIG_MAP.rpartition("/")[0]
    made = await rest.json("POST", where, config_map(ownerReferences=[owner, owner]))
    assert made.document["metadata"]["ownerReferences"] == [owner]
    assert [text.partition(";")[0] for text in made.warnings] == [
        ".metadata.ownerReferences contains duplicate entries"
    ]
    patch = {"metadata": {"ownerReferences": [owner, owner, {**owner, "uid": "v"}]}}
    types = {"content-type": "application/merge-patch+json"}
    patched = await rest.request("PATCH", CONFIG_MAP, {}, json.dumps(patch).encode(), types)
    assert len(patched.document["metadata"]["ownerReferences"]) == 2
    assert [text.partition(";")[0] for text in patched.warnings] == [
        ".metadata.ownerReferences contains duplicate entries after mutating admission happens"
    ]
