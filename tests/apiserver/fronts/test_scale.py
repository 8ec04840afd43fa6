"""The scale subresource: its bodies and errors are a Scale's, whatever is scaled; both fronts.

Source: kube-apiserver 1.36, ScaleREST of apps and core (scaleUpdatedObjectInfo), ValidateScale.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from nominee.machinery.api.kinds import DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, Kind
from tests.apiserver.fronts.adapter import Api, Document, Outcome
from tests.apiserver.fronts.both import Both
from tests.apiserver.fronts.documents import made, refused, replica_set
from tests.apiserver.fronts.test_orphaning_kinds import OBJECTS

SCALED: dict[Kind[Any], Document] = {
    DEPLOYMENT: replica_set("x"),
    REPLICA_SET: replica_set("x"),
    STATEFUL_SET: replica_set("x"),
    REPLICATION_CONTROLLER: OBJECTS[REPLICATION_CONTROLLER],
}
NEGATIVE = (
    'Scale.autoscaling "x" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
)


def scale(replicas: int, **metadata: str) -> Document:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "x", **metadata},
        "spec": {"replicas": replicas},
    }


def patch(api: Api, kind: Kind[Any], space: str, change: Any, **options: Any) -> Outcome:
    return api.patch(kind, "x", change, space, subresource="scale", **options)


@pytest.mark.parametrize("kind", SCALED, ids=lambda kind: kind.plural)
def test_every_write_answers_with_a_scale(api: Api, space: str, kind: Kind[Any]) -> None:
    created = made(api.create(kind, SCALED[kind], space, fieldManager="m"))
    outcomes = {
        3: api.update(kind, scale(3), space, subresource="scale"),
        4: patch(api, kind, space, {"spec": {"replicas": 4}}),
        5: patch(api, kind, space, {"spec": {"replicas": 5}}, form="strategic"),
        6: patch(api, kind, space, [{"op": "replace", "path": "/spec/replicas", "value": 6}], form="json"),
        7: patch(api, kind, space, scale(7), form="apply", fieldManager="a", force=True),
    }
    for replicas, outcome in outcomes.items():
        shown = made(outcome)
        assert (shown["kind"], shown["apiVersion"]) == ("Scale", "autoscaling/v1")
        assert shown["spec"] == {"replicas": replicas}
        assert shown["metadata"]["uid"] == created["metadata"]["uid"]
        # Whether those fields have owners is the workload's.
        assert "managedFields" not in shown["metadata"]
    assert api.get(kind, "x", space).spec["replicas"] == 7


def test_errors_are_of_the_scale(api: Api, space: str) -> None:
    made(api.create(DEPLOYMENT, SCALED[DEPLOYMENT], space))
    negative = {"spec": {"replicas": -1}}
    for outcome in (
        api.update(DEPLOYMENT, scale(-1), space, subresource="scale"),
        patch(api, DEPLOYMENT, space, negative),
        patch(api, DEPLOYMENT, space, negative, form="strategic"),
        patch(api, DEPLOYMENT, space, scale(-1), form="apply", fieldManager="a", force=True),
    ):
        refused(outcome, 422, "Invalid")
        assert outcome.message == NEGATIVE
        assert outcome.details["kind"] == "Scale"
    other = api.update(DEPLOYMENT, scale(1, uid="other"), space, subresource="scale")
    assert refused(other, 409, "Conflict").message.startswith(
        'Operation cannot be fulfilled on deployments/scale.apps "x": Precondition failed: UID in'
        " precondition: other, UID in object meta: "
    )
    old = patch(api, DEPLOYMENT, space, {"metadata": {"resourceVersion": "1"}})
    assert refused(old, 409, "Conflict").message.startswith(
        'Operation cannot be fulfilled on deployments.apps "x": the object has been modified'
    )
    text = {"spec": {"replicas": "many"}}
    wrong = refused(patch(api, DEPLOYMENT, space, text), 422, "Invalid")
    assert wrong.message.endswith(
        "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32"
    )
    assert '\\"kind\\":\\"Scale\\"' in wrong.message
    odd = patch(api, DEPLOYMENT, space, {**scale(1), "kind": "Deployment"}, form="apply", fieldManager="a")
    assert refused(odd, 400, "BadRequest").message == "invalid object type: autoscaling/v1, Kind=Deployment"
    assert api.get(DEPLOYMENT, "x", space).spec["replicas"] == 2


def test_a_scale_has_its_workloads_name(api: Api, space: str) -> None:
    made(api.create(DEPLOYMENT, SCALED[DEPLOYMENT], space))
    elsewhere = "the namespace of the provided object does not match the namespace sent on the request"
    for outcome in (
        api.update(DEPLOYMENT, scale(1, namespace="other"), space, subresource="scale"),
        patch(api, DEPLOYMENT, space, {"metadata": {"namespace": "other"}}),
    ):
        assert refused(outcome, 400, "BadRequest").message == elsewhere
    renamed = patch(api, DEPLOYMENT, space, {"metadata": {"name": "y"}})
    problem = "the name of the object (y) does not match the name on the URL (x)"
    assert refused(renamed, 400, "BadRequest").message == problem


def test_field_validation(api: Api, space: str) -> None:
    made(api.create(DEPLOYMENT, SCALED[DEPLOYMENT], space))
    twice = b'{"spec":{"replicas":3,"replicas":4,"odd":1}}'
    found = ('duplicate field "spec.replicas"', 'unknown field "spec.odd"')
    strict = refused(patch(api, DEPLOYMENT, space, twice, fieldValidation="Strict"), 422, "Invalid")
    assert strict.message.endswith(f"strict decoding error: {', '.join(found)}")
    assert patch(api, DEPLOYMENT, space, twice, fieldValidation="Ignore").warnings == ()
    warned = patch(api, DEPLOYMENT, space, twice)
    assert (made(warned)["spec"], warned.warnings) == ({"replicas": 4}, found)
    for force in (True, False):
        refused(patch(api, DEPLOYMENT, space, {}, force=force), 422, "Invalid")


def test_a_name_that_is_missing_over_rest(both: Both, space: str) -> None:
    made(both.rest.create(DEPLOYMENT, SCALED[DEPLOYMENT], space))
    body = json.dumps({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {}}).encode()
    path = f"/apis/apps/v1/namespaces/{space}/deployments/x/scale"
    reply = both.rest.request("PUT", path, {}, body)
    problem = "the name of the object (x based on URL) was undeterminable: name must be provided"
    assert (reply.code, reply.document["message"]) == (400, problem)
