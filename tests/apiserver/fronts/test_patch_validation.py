"""Field validation of patches, `force`, and what a patch may say about its object's type; both fronts.

Source: kube-apiserver 1.36, endpoints/handlers/patch.go, and tests/golden (api_patch.jsonl).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from nominee.machinery.api.kinds import CONFIG_MAP, POD, POD_DISRUPTION_BUDGET
from tests.apiserver.fronts.adapter import Api, Outcome
from tests.apiserver.fronts.both import Both
from tests.apiserver.fronts.documents import config_map, made, pod, refused

TWICE = b'{"data":{"b":"1","b":"2"},"nope":{"x":1,"x":2},"metadata":{"odd":1}}'
OPERATIONS = (
    b'[{"op":"add","path":"/data/b","value":"2","note":"x","note":"y"},'
    b'{"op":"add","path":"/nope","path":"/metadata/odd","value":1},'
    b'{"op":"test","path":"/data/b","value":"2"}]'
)
APPLIED = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {b: '1', b: '2'}\n"
FOUND = {
    # Of the patch itself, where all is known, and then of the object that came of it.
    "merge": [
        'duplicate field "data.b"',
        'duplicate field "nope.x"',
        'unknown field "metadata.odd"',
        'unknown field "nope"',
    ],
    "strategic": [
        'duplicate field "data.b"',
        'duplicate field "nope.x"',
        'unknown field "metadata.odd"',
        'unknown field "nope"',
    ],
    "json": [
        'json patch unknown field "[0].note"',
        'json patch duplicate field "[1].path"',
        'unknown field "metadata.odd"',
    ],
    "apply": ['line 4: key "b" already set in map'],
}
PATCHES = {"merge": TWICE, "strategic": TWICE, "json": OPERATIONS, "apply": APPLIED}
STRICT = "strict decoding error: "
STRICT_YAML = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  "


def patched(api: Api, space: str, form: str, **options: Any) -> Outcome:
    made(api.create(CONFIG_MAP, config_map("x", {"a": "1"}), space, fieldManager="m"))
    return api.patch(CONFIG_MAP, "x", PATCHES[form], space, form=form, fieldManager="m", **options)


@pytest.mark.parametrize("form", FOUND)
@pytest.mark.parametrize("validation", ["", "Warn"])
def test_warnings(api: Api, space: str, form: str, validation: str) -> None:
    outcome = patched(api, space, form, fieldValidation=validation)
    assert made(outcome)["data"] == {"a": "1", "b": "2"} or form == "apply"
    assert list(outcome.warnings) == FOUND[form]


@pytest.mark.parametrize("form", FOUND)
def test_ignored(api: Api, space: str, form: str) -> None:
    outcome = patched(api, space, form, fieldValidation="Ignore")
    assert made(outcome)["data"]["b"] == "2"
    assert outcome.warnings == ()


@pytest.mark.parametrize("form", FOUND)
def test_errors(api: Api, space: str, form: str) -> None:
    outcome = patched(api, space, form, fieldValidation="Strict")
    if form == "apply":
        refused(outcome, 400, "BadRequest")
        assert outcome.message == STRICT_YAML + FOUND[form][0]
    else:
        refused(outcome, 422, "Invalid")
        assert outcome.causes == [("FieldValueInvalid", "patch")]
        found = outcome.message.rpartition(STRICT)[2].split(", ")
        assert found == FOUND[form]
    # An error is no warning.
    assert outcome.warnings == ()
    assert api.get(CONFIG_MAP, "x", space).document["data"] == {"a": "1"}


@pytest.mark.parametrize(
    ("form", "value", "problem"),
    [
        *(("merge", value, "cannot unmarshal number into Go struct") for value in ("1.5", "1e3", "2.0")),
        *(("strategic", value, "unrecognized type: string") for value in ("1.5", "1e3", "2.0", "true")),
        ("strategic", "5", "cannot convert int64 to string"),
    ],
)
def test_values_that_are_no_texts(api: Api, space: str, form: str, value: str, problem: str) -> None:
    """Go converts an integer to a string, but nothing else to it (runtime/converter.go)."""
    made(api.create(CONFIG_MAP, config_map("x", {"a": "1"}), space))
    outcome = api.patch(CONFIG_MAP, "x", f'{{"data":{{"a":{value}}}}}'.encode(), space, form=form)
    assert problem in refused(outcome, 422, "Invalid").message


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        (
            "merge",
            "json: cannot unmarshal array into Go struct field ResourceRequirements.spec.containers.resources"
            ".requests of type v1.ResourceList",
        ),
        ("strategic", "cannot restore map from slice"),
    ],
)
def test_a_list_where_a_map_is_expected(api: Api, space: str, form: str, problem: str) -> None:
    made(api.create(POD, pod("x"), space))
    containers = [{"name": "c", "image": "img:1", "resources": {"requests": ["cpu"]}}]
    outcome = api.patch(POD, "x", {"spec": {"containers": containers}}, space, form=form)
    assert refused(outcome, 422, "Invalid").message.endswith(problem)


@pytest.mark.parametrize("form", ["merge", "strategic"])
def test_another_version_of_the_kind_is_converted(api: Api, space: str, form: str) -> None:
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {}}}
    made(api.create(POD_DISRUPTION_BUDGET, budget, space))
    patch = {"apiVersion": "policy/v1beta1", "spec": {"minAvailable": 2}}
    changed = made(api.patch(POD_DISRUPTION_BUDGET, "b", patch, space, form=form))
    assert (changed["apiVersion"], changed["spec"]["minAvailable"]) == ("policy/v1", 2)


def test_an_error_shows_the_patched_object(api: Api, space: str) -> None:
    outcome = patched(api, space, "merge", fieldValidation="Strict")
    shown = json.loads(outcome.message.partition("patch: Invalid value: ")[2].partition(": " + STRICT)[0])
    document = json.loads(shown)
    assert (document["kind"], document["nope"]) == ("ConfigMap", {"x": 2})
    assert list(document) == sorted(document)


@pytest.mark.parametrize(
    ("patch", "validation", "message"),
    [
        (
            b'{"op":"add"}',
            "Warn",
            "error decoding patch: json: cannot unmarshal object into Go value of type"
            " []handlers.jsonPatchOp",
        ),
        (
            b'{"op":"add"}',
            "Ignore",
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
        (
            b"[1]",
            "Warn",
            "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
        ),
        (b"[1]", "Ignore", "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
        (
            b'[{"op":1}]',
            "Strict",
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type"
            " string",
        ),
        (
            b'[{"op":"add","path":["a"]}]',
            "",
            "error decoding patch: json: cannot unmarshal array into Go struct field jsonPatchOp.path of type"
            " string",
        ),
    ],
)
def test_invalid_json_patches(api: Api, space: str, patch: bytes, validation: str, message: str) -> None:
    made(api.create(CONFIG_MAP, config_map("x"), space))
    outcome = api.patch(CONFIG_MAP, "x", patch, space, form="json", fieldValidation=validation)
    assert refused(outcome, 400, "BadRequest").message == message


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize(("form", "patch"), [("json", []), ("merge", {}), ("strategic", {})])
def test_force_is_for_applies(api: Api, space: str, form: str, patch: Any, force: bool) -> None:
    made(api.create(CONFIG_MAP, config_map("x"), space))
    outcome = refused(api.patch(CONFIG_MAP, "x", patch, space, form=form, force=force), 422, "Invalid")
    assert outcome.message == (
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch'
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "Secret"}, "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            "converting (v1.Deployment) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"kind": "Nope"},
            'no kind "Nope" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
        (
            {"kind": 5},
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field"
            " .kind of type string",
        ),
    ],
    ids=str,
)
def test_a_patch_of_the_type(api: Api, space: str, change: dict[str, Any], problem: str) -> None:
    before = made(api.create(CONFIG_MAP, config_map("x"), space))
    outcome = refused(api.patch(CONFIG_MAP, "x", change, space), 422, "Invalid")
    assert outcome.message.endswith(f": {problem}")
    # A strategic patch is decoded into the endpoint's type, whatever it says.
    assert made(api.patch(CONFIG_MAP, "x", change, space, form="strategic")) == before or "kind" in problem
    assert made(api.patch(CONFIG_MAP, "x", {"kind": None}, space)) == before


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_what_is_twice_below_an_unknown_field_of_a_body(both: Both, space: str, method: str) -> None:
    """A typed decoder skips unknown fields as a whole; a patch, which is decoded untyped, reports all."""
    if method == "PUT":
        made(both.rest.create(CONFIG_MAP, config_map("x"), space))
    path = f"/api/v1/namespaces/{space}/configmaps" + ("/x" if method == "PUT" else "")
    body = b'{"metadata":{"name":"x"},"nope":{"a":1,"a":2},"nope":3,"data":{"k":"1","k":"2"}}'
    reply = both.rest.request(method, path, {}, body)
    assert reply.code < 300
    assert reply.warnings == ['unknown field "nope"', 'duplicate field "data.k"']
