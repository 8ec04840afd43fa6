"""Kinds of the table that the recordings do not have: defaults, refusals, and what may not change.

Expectations are from kube-apiserver 1.36's validation and defaults (pkg/apis/*/validation, */v1/defaults.go).
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from nominee.apiserver.fronts.rest.http.media import PROTOBUF
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.wire import envelope
from tests.apiserver.rest.asgi import Reply, Rest, in_memory
from tests.apiserver.rest.recorded import apply_change

LABELS = {"app": "x"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
ENDING = {"metadata": {"labels": LABELS}, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}  # type: ignore[dict-item]  # documents
SELECTOR = {"matchLabels": LABELS}


def collection(kind: Kind[Any]) -> str:
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{base}/namespaces/default/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"


def document(kind: Kind[Any], body: dict[str, Any], name: str = "x") -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, **body}


async def create(rest: Rest, kind: Kind[Any], body: dict[str, Any], name: str = "x") -> Reply:
    return await rest.json("POST", collection(kind), document(kind, body, name))


def at(found: Any, path: str) -> Any:
    for part in path.split("."):
        found = found[int(part)] if isinstance(found, list) else found.get(part)
    return found


GOOD: dict[Kind[Any], dict[str, Any]] = {
    kinds.DAEMON_SET: {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    kinds.STATEFUL_SET: {"spec": {"selector": SELECTOR, "serviceName": "s", "template": TEMPLATE}},
    kinds.JOB: {"spec": {"template": ENDING}},
    kinds.REPLICATION_CONTROLLER: {"spec": {"template": TEMPLATE}},
    kinds.SECRET: {"stringData": {"a": "b"}},
    kinds.SERVICE_ACCOUNT: {},
    kinds.LIMIT_RANGE: {
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}}]}
    },
    kinds.RESOURCE_QUOTA: {"spec": {"hard": {"pods": "1"}}},
    kinds.ENDPOINT_SLICE: {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.2.3"]}],
        "ports": [{"port": 80}],
    },
    kinds.CSI_NODE: {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n"}]}},
    kinds.CSI_DRIVER: {"spec": {}},
    kinds.CSI_STORAGE_CAPACITY: {"storageClassName": "fast"},
    kinds.VOLUME_ATTACHMENT: {
        "spec": {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
    kinds.DEVICE_CLASS: {"spec": {}},
    kinds.RESOURCE_CLAIM: {
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    },
    kinds.RESOURCE_CLAIM_TEMPLATE: {
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}
    },
    kinds.RESOURCE_SLICE: {
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1},
            "nodeName": "n",
            "devices": [{"name": "d0", "attributes": {"model": {"string": "a"}}}],
        }
    },
}

DEFAULTS: list[tuple[Kind[Any], str, Any]] = [
    (kinds.DAEMON_SET, "spec.updateStrategy.rollingUpdate", {"maxUnavailable": 1, "maxSurge": 0}),
    (kinds.DAEMON_SET, "metadata.generation", 1),
    (kinds.STATEFUL_SET, "spec.podManagementPolicy", "OrderedReady"),
    (kinds.STATEFUL_SET, "spec.replicas", 1),
    (
        kinds.STATEFUL_SET,
        "spec.persistentVolumeClaimRetentionPolicy",
        {"whenDeleted": "Retain", "whenScaled": "Retain"},
    ),
    (kinds.JOB, "spec.completions", 1),
    (kinds.JOB, "spec.backoffLimit", 6),
    (kinds.JOB, "spec.completionMode", "NonIndexed"),
    (kinds.JOB, "metadata.labels", LABELS),
    (kinds.REPLICATION_CONTROLLER, "spec.selector", LABELS),
    (kinds.SECRET, "type", "Opaque"),
    (kinds.SECRET, "data", {"a": "Yg=="}),
    (kinds.LIMIT_RANGE, "spec.limits.0.default", {"cpu": "2"}),
    (kinds.LIMIT_RANGE, "spec.limits.0.defaultRequest", {"cpu": "2"}),
    (kinds.ENDPOINT_SLICE, "ports.0", {"name": "", "protocol": "TCP", "port": 80}),
    (kinds.CSI_DRIVER, "spec.volumeLifecycleModes", ["Persistent"]),
    (kinds.CSI_DRIVER, "spec.fsGroupPolicy", "ReadWriteOnceWithFSType"),
    (kinds.RESOURCE_CLAIM, "spec.devices.requests.0.exactly.count", 1),
    (kinds.RESOURCE_CLAIM_TEMPLATE, "spec.spec.devices.requests.0.exactly.allocationMode", "ExactCount"),
]

# (kind, changes of the good one, fields that are refused)
BAD: list[tuple[Kind[Any], list[tuple[str, Any]], list[str]]] = [
    (
        kinds.DAEMON_SET,
        [("spec.updateStrategy", {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}})],
        ["spec.updateStrategy.rollingUpdate.maxUnavailable"],
    ),
    (kinds.DAEMON_SET, [("spec.selector", {"matchLabels": {"a": "b"}})], ["spec.template.metadata.labels"]),
    (kinds.STATEFUL_SET, [("spec.podManagementPolicy", "Some")], ["spec.podManagementPolicy"]),
    (kinds.JOB, [("spec.template", TEMPLATE)], ["spec.template.spec.restartPolicy"]),
    (kinds.JOB, [("spec.completionMode", "Some")], ["spec.completionMode"]),
    (kinds.REPLICATION_CONTROLLER, [("spec.replicas", -1)], ["spec.replicas"]),
    (kinds.SECRET, [("type", "kubernetes.io/tls")], ["data[tls.crt]", "data[tls.key]"]),
    (
        kinds.LIMIT_RANGE,
        [("spec.limits.0.min", {"cpu": "3"})],
        ["spec.limits[0].min[cpu]", "spec.limits[0].default[cpu]"],
    ),
    (kinds.RESOURCE_QUOTA, [("spec.hard", {"bogus": "1"})], ["spec.hard[bogus]"]),
    (
        kinds.RESOURCE_QUOTA,
        [("spec.scopes", ["BestEffort", "NotBestEffort"])],
        ["spec.scopes"],
    ),
    (kinds.ENDPOINT_SLICE, [("addressType", "Some")], ["addressType"]),
    (kinds.ENDPOINT_SLICE, [("endpoints.0.addresses", ["127.0.0.1"])], ["endpoints[0].addresses[0]"]),
    (kinds.CSI_NODE, [("spec.drivers.0.nodeID", "")], ["spec.drivers[0].nodeID"]),
    (kinds.VOLUME_ATTACHMENT, [("spec.source", {})], ["spec.source"]),
    (kinds.RESOURCE_SLICE, [("spec.nodeName", "<delete>")], ["spec"]),
    (kinds.RESOURCE_SLICE, [("spec.devices.0.attributes", {"m": {}})], ["spec.devices[0].attributes[m]"]),
    (
        kinds.RESOURCE_CLAIM,
        [("spec.devices.requests.0.exactly.count", -1)],
        ["spec.devices.requests[0].exactly.count"],
    ),
]

# (kind, what an update sets, the field that is refused)
UNCHANGEABLE: list[tuple[Kind[Any], str, Any, str]] = [
    (kinds.STATEFUL_SET, "spec.serviceName", "other", "spec"),
    (kinds.JOB, "spec.completions", 3, "spec.completions"),
    (kinds.SECRET, "type", "other", "type"),
    (kinds.ENDPOINT_SLICE, "addressType", "FQDN", "addressType"),
    (kinds.CSI_STORAGE_CAPACITY, "storageClassName", "slow", "storageClassName"),
    (kinds.VOLUME_ATTACHMENT, "spec.nodeName", "m", "spec"),
    (kinds.RESOURCE_CLAIM, "spec.devices.requests.0.exactly.deviceClassName", "tpu", "spec"),
    (kinds.RESOURCE_SLICE, "spec.driver", "other.example.com", "spec.driver"),
]


async def test_every_good_one_is_taken_and_defaulted() -> None:
    rest = await in_memory()
    for kind, body in GOOD.items():
        name = "d.example.com" if kind is kinds.CSI_DRIVER else "x"
        made = await create(rest, kind, body, name)
        assert made.code == 201, (kind, made.body)
        again = await rest.json("PUT", f"{collection(kind)}/{name}", made.document)
        assert again.code == 200, (kind, again.body)
        assert again.document["metadata"]["resourceVersion"] == made.document["metadata"]["resourceVersion"]
        for other, path, value in DEFAULTS:
            if other is kind:
                assert at(made.document, path) == value, (kind, path)


@pytest.mark.parametrize(("kind", "changes", "fields"), BAD)
async def test_a_bad_one_is_refused(
    kind: Kind[Any], changes: list[tuple[str, Any]], fields: list[str]
) -> None:
    body = copy.deepcopy(GOOD[kind])
    for path, value in changes:
        apply_change(body, path, value)
    reply = await create(await in_memory(), kind, body)
    assert reply.code == 422, reply.body
    causes = reply.document["details"]["causes"]
    assert set(fields) <= {cause["field"] for cause in causes}, causes


@pytest.mark.parametrize(("kind", "path", "value", "field"), UNCHANGEABLE)
async def test_what_may_not_change(kind: Kind[Any], path: str, value: Any, field: str) -> None:
    rest = await in_memory()
    made = (await create(rest, kind, GOOD[kind])).document
    apply_change(made, path, value)
    reply = await rest.json("PUT", f"{collection(kind)}/x", made)
    assert reply.code == 422, reply.body
    assert field in {cause["field"] for cause in reply.document["details"]["causes"]}


async def test_services_are_given_addresses_and_ports_of_their_own() -> None:
    rest = await in_memory()
    spec: dict[str, Any] = {"ports": [{"port": 80}], "selector": LABELS}
    first = (await create(rest, kinds.SERVICE, {"spec": {**spec, "type": "NodePort"}})).document["spec"]
    assert first["clusterIP"].startswith("10.0.0.")
    assert 30000 <= first["ports"][0]["nodePort"] <= 32767
    taken = await create(rest, kinds.SERVICE, {"spec": {**spec, "clusterIP": first["clusterIP"]}}, "y")
    assert taken.code == 422
    assert "provided IP is already allocated" in taken.document["message"]
    outside = await create(rest, kinds.SERVICE, {"spec": {**spec, "clusterIP": "10.1.0.1"}}, "y")
    assert "the provided network does not match the current range" in outside.document["message"]
    ports = {"port": 80, "nodePort": first["ports"][0]["nodePort"]}
    again = await create(rest, kinds.SERVICE, {"spec": {"ports": [ports], "type": "NodePort"}}, "y")
    assert "provided port is already allocated" in again.document["message"]
    kept = (await rest.json("GET", f"{collection(kinds.SERVICE)}/x")).document
    del kept["spec"]["clusterIP"], kept["spec"]["clusterIPs"], kept["spec"]["ports"][0]["nodePort"]
    changed = await rest.json("PUT", f"{collection(kinds.SERVICE)}/x", kept)
    assert changed.code == 200, changed.body
    assert changed.document["spec"]["clusterIP"] == first["clusterIP"]
    assert changed.document["spec"]["ports"] == first["ports"]


async def test_a_job_selects_its_own_pods() -> None:
    made = (await create(await in_memory(), kinds.JOB, GOOD[kinds.JOB])).document
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": uid}
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert labels["job-name"] == "x"
    assert labels["batch.kubernetes.io/controller-uid"] == uid


async def test_endpoints_are_served_with_a_deprecation_warning() -> None:
    rest = await in_memory()
    warnings = ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]
    made = await create(rest, kinds.ENDPOINTS, {})
    assert (made.code, made.warnings) == (201, warnings)
    assert (await rest.json("GET", f"{collection(kinds.ENDPOINTS)}/none")).warnings == warnings
    assert not (await rest.json("GET", f"{collection(kinds.ENDPOINT_SLICE)}/none")).warnings


async def test_there_are_no_custom_resources_and_clients_can_see_that() -> None:
    rest = await in_memory()
    definitions = collection(kinds.CUSTOM_RESOURCE_DEFINITION)
    document = document_of_a_definition()
    made = await rest.json("POST", definitions, document, {"fieldValidation": "Strict"})
    assert (made.code, made.document["reason"]) == (405, "MethodNotAllowed")
    assert "Nominee serves built-in kinds only" in made.document["message"]
    apply: dict[str, Any] = {"content-type": "application/apply-patch+yaml"}
    applied = await rest.json(
        "PATCH", f"{definitions}/a.example.com", document, {"fieldManager": "m"}, **apply
    )
    assert applied.code == 405
    assert (await rest.json("GET", f"{definitions}/a.example.com")).code == 404
    listed = (await rest.json("GET", "/apis/apiextensions.k8s.io/v1")).document["resources"]
    assert [(one["name"], one["verbs"]) for one in listed] == [
        ("customresourcedefinitions", ["get", "list", "watch"])
    ]


ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@pytest.mark.parametrize(
    ("plural", "kind"),
    [
        ("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
        ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    ],
)
async def test_there_are_no_admission_webhooks_and_policies_and_clients_can_see_that(
    plural: str, kind: str
) -> None:
    rest = await in_memory()
    body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "x"}}
    apply: dict[str, Any] = {"content-type": "application/apply-patch+yaml"}
    for refused in (
        await rest.json("POST", f"{ADMISSION}/{plural}", body),
        await rest.json("PUT", f"{ADMISSION}/{plural}/x", body),
        await rest.json("PATCH", f"{ADMISSION}/{plural}/x", body, {"fieldManager": "m"}, **apply),
        await rest.json("DELETE", f"{ADMISSION}/{plural}/x"),
    ):
        assert (refused.code, refused.document["reason"]) == (405, "MethodNotAllowed")
        assert refused.document["message"] == (
            f"{plural}.admissionregistration.k8s.io cannot be written: Nominee has no admission webhooks or"
            " policies"
        )
    missing = await rest.json("GET", f"{ADMISSION}/{plural}/x")
    assert (missing.code, missing.document["details"]["kind"]) == (404, plural)
    listed = await rest.json("GET", f"{ADMISSION}/{plural}")
    assert (listed.code, listed.document["kind"], listed.document["items"]) == (200, f"{kind}List", [])
    raw = await rest.request("GET", f"{ADMISSION}/{plural}", headers={"accept": PROTOBUF})
    assert envelope.unwrap(raw.body)[:2] == ("admissionregistration.k8s.io/v1", f"{kind}List")
    assert (await rest.json("GET", f"{ADMISSION}/{plural}", None, {"watch": "1"})).code == 405
    assert (await rest.json("GET", f"{ADMISSION}/namespaces/default/{plural}")).code == 404


def document_of_a_definition() -> dict[str, Any]:
    return document(kinds.CUSTOM_RESOURCE_DEFINITION, {"spec": {"group": "example.com"}}, "a.example.com")


async def test_runtime_classes() -> None:
    rest = await in_memory()
    classes = "/apis/node.k8s.io/v1/runtimeclasses"

    async def causes(**fields: Any) -> Any:
        made = await rest.json("POST", classes, {"metadata": {"name": "r"}, **fields})
        return [cause["field"] for cause in made.document["details"]["causes"]]

    assert await causes() == ["handler"]
    assert await causes(handler="Kata") == ["handler"]
    assert await causes(handler="h", overhead={"podFixed": {"cpu": "-1"}}) == ["overhead.limits[cpu]"]
    scheduling = {"nodeSelector": {"a": "no value!"}, "tolerations": [{"value": "v"}]}
    assert await causes(handler="h", scheduling=scheduling) == [
        "scheduling.nodeSelector", "scheduling.tolerations[0].operator",
    ]  # fmt: skip
    made = await rest.json("POST", classes, {"metadata": {"name": "r"}, "handler": "h"})
    assert made.code == 201
    other = await rest.json("PUT", f"{classes}/r", {**made.document, "handler": "g"})
    assert other.document["details"]["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "message": 'Invalid value: "g": field is immutable',
            "field": "handler",
        }
    ]
