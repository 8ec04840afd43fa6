"""HorizontalPodAutoscalers: one stored object, two versions of the API (kubectl autoscale posts v1)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nominee.apiserver.kinds.autoscaling import conversion as autoscalers
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import autoscaling as v2
from nominee.machinery.wire import codec, envelope
from nominee.pb.k8s.io.api.autoscaling.v1 import generated_pb2 as v1
from tests.apiserver.rest.asgi import Rest, in_memory

V1, V2 = (
    f"/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers" for version in ("v1", "v2")
)
SPEC: dict[str, Any] = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3,
}  # fmt: skip
MERGE: dict[str, Any] = {"content-type": "application/merge-patch+json"}
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
ALL = [
    {"type": "Object", "object": {
        "describedObject": {"kind": "Ingress", "name": "i", "apiVersion": "networking.k8s.io/v1"},
        "target": {"type": "AverageValue", "value": "3", "averageValue": "2"}, "metric": {"name": "hits"}}},
    {"type": "Pods", "pods": {
        "metric": {"name": "p", "selector": {"matchLabels": {"a": "b"}}},
        "target": {"type": "AverageValue", "averageValue": "1k"}}},
    {"type": "Resource", "resource": {
        "name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
    {"type": "ContainerResource", "containerResource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}, "container": "c"}},
    {"type": "External", "external": {
        "metric": {"name": "queue"}, "target": {"type": "Value", "value": "30"}}},
]  # fmt: skip


@pytest.fixture
async def rest() -> Rest:
    return await in_memory()


async def test_what_v1_makes_v2_shows(rest: Rest) -> None:
    spec = {**SPEC, "targetCPUUtilizationPercentage": 50}
    message = codec.from_json(v1.HorizontalPodAutoscaler, {"metadata": {"name": "web"}, "spec": spec})
    body = envelope.encode(message)
    form = "application/vnd.kubernetes.protobuf"
    # As kubectl autoscale does.
    made = await rest.request("POST", V1, body=body, headers={"content-type": form, "accept": form})
    assert made.code == 201, made.body
    shown = envelope.decode(kinds.HORIZONTAL_POD_AUTOSCALER_V1, made.body)
    assert (shown.spec.minReplicas, shown.spec.targetCPUUtilizationPercentage) == (1, 50)
    newer = (await rest.json("GET", f"{V2}/web")).document
    assert (newer["apiVersion"], newer["spec"]["metrics"]) == ("autoscaling/v2", [CPU])
    change = {"spec": {"targetCPUUtilizationPercentage": 70}}
    patched = (await rest.json("PATCH", f"{V1}/web", change, **MERGE)).document
    assert (patched["apiVersion"], patched["spec"]["targetCPUUtilizationPercentage"]) == (
        "autoscaling/v1",
        70,
    )
    newer = (await rest.json("GET", f"{V2}/web")).document
    assert newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
    assert "annotations" not in newer["metadata"]
    assert (await rest.json("DELETE", f"{V1}/web")).code == 200
    assert (await rest.json("GET", f"{V2}/web")).code == 404


async def test_without_metrics_it_is_for_cpu(rest: Rest) -> None:
    await rest.json("POST", V1, {"metadata": {"name": "web"}, "spec": SPEC})
    assert (await rest.json("GET", f"{V1}/web")).document["spec"]["targetCPUUtilizationPercentage"] == 80


async def test_what_v1_cannot_say_comes_through_it(rest: Rest) -> None:
    behavior = {"scaleDown": {"selectPolicy": "Min", "policies": [
        {"type": "Pods", "value": 1, "periodSeconds": 60}]}}  # fmt: skip
    spec = {**SPEC, "metrics": [CPU, *ALL], "behavior": behavior}
    made = await rest.json("POST", V2, {"metadata": {"name": "web"}, "spec": spec})
    assert made.code == 201, made.body
    status = {
        "currentReplicas": 2, "desiredReplicas": 2,
        "currentMetrics": [{"type": "Resource", "resource": {
            "name": "cpu", "current": {"averageValue": "10m", "averageUtilization": 7}}}],
        "conditions": [
            {"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }  # fmt: skip
    await rest.json("PATCH", f"{V2}/web/status", {"status": status}, **MERGE)
    before = (await rest.json("GET", f"{V2}/web")).document
    old = (await rest.json("GET", f"{V1}/web")).document
    assert old["spec"]["targetCPUUtilizationPercentage"] == 50
    assert old["status"]["currentCPUUtilizationPercentage"] == 7
    annotations = old["metadata"]["annotations"]
    metrics = json.loads(annotations[autoscalers.METRICS])
    assert [metric["type"] for metric in metrics] == [metric["type"] for metric in ALL]
    assert metrics[2] == {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}}
    assert json.loads(annotations[autoscalers.BEHAVIOR])["ScaleDown"]["SelectPolicy"] == "Min"
    old["metadata"]["labels"] = {"through": "v1"}
    assert (await rest.json("PUT", f"{V1}/web", old)).code == 200
    after = (await rest.json("GET", f"{V2}/web")).document
    assert after["metadata"]["labels"] == {"through": "v1"}
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])
    assert "annotations" not in after["metadata"]


def test_annotations_of_nothing_sensible_are_dropped() -> None:
    shown = v1.HorizontalPodAutoscaler()
    for name, text in (
        (autoscalers.METRICS, "[{}]"),
        (autoscalers.STATUSES, "{"),
        (autoscalers.CONDITIONS, "7"),
        (autoscalers.BEHAVIOR, '["a"]'),
    ):
        shown.metadata.annotations[name] = text
    stored = autoscalers.to_v2(shown)
    assert not stored.metadata.annotations
    assert stored.spec == v2.HorizontalPodAutoscaler().spec


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"maxReplicas": 0}, "spec.maxReplicas", "Invalid value: 0: must be greater than 0"),
        ({"minReplicas": 0}, "spec.minReplicas", "Invalid value: 0: must be greater than or equal to 1"),
        ({"minReplicas": 4}, "spec.maxReplicas",
         "Invalid value: 3: must be greater than or equal to `minReplicas`"),
        ({"scaleTargetRef": {"kind": "Deployment"}}, "spec.scaleTargetRef.name", "Required value"),
        ({"metrics": [{"type": "Resource"}]}, "spec.metrics[0].resource",
         "Required value: must populate information for the given metric source"),
    ],
)  # fmt: skip
async def test_what_is_invalid(rest: Rest, change: dict[str, Any], field: str, message: str) -> None:
    reply = await rest.json("POST", V2, {"metadata": {"name": "web"}, "spec": {**SPEC, **change}})
    assert reply.code == 422
    assert (field, message) in [
        (cause["field"], cause["message"]) for cause in reply.document["details"]["causes"]
    ]


async def test_a_behavior_is_completed(rest: Rest) -> None:
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 5}}
    made = await rest.json("POST", V2, {"metadata": {"name": "web"}, "spec": {**SPEC, "behavior": behavior}})
    assert made.document["spec"]["behavior"] == {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [
                {"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 100, "periodSeconds": 15},
            ],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": 5,
            "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
        },
    }


async def test_a_scale_is_shown_in_every_form(rest: Rest) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    await rest.json("POST", deployments, {"metadata": {"name": "web"}, "spec": spec})
    path = f"{deployments}/web/scale"

    def form(kind: str) -> dict[str, Any]:
        return {"accept": f"application/json;as={kind};v=v1;g=meta.k8s.io"}

    table = (await rest.json("GET", path, **form("Table"))).document
    assert [(one["name"], one["type"]) for one in table["columnDefinitions"]] == [
        ("Name", "string"), ("Desired", "integer"), ("Available", "integer"), ("Age", "string"),
    ]  # fmt: skip
    assert table["rows"][0]["cells"][:3] == ["web", 2, 0]
    assert table["rows"][0]["object"]["metadata"]["name"] == "web"
    change = {"spec": {"replicas": 3}}
    table = (
        await rest.json("PATCH", path, change, {"includeObject": "Object"}, **MERGE, **form("Table"))
    ).document
    shown = table["rows"][0]["object"]
    assert (shown["kind"], shown["apiVersion"], shown["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 3})
    partial = (await rest.json("GET", path, **form("PartialObjectMetadata"))).document
    assert (partial["kind"], partial["metadata"]["name"]) == ("PartialObjectMetadata", "web")
    protobuf = "application/vnd.kubernetes.protobuf"
    plain = await rest.request("GET", path, headers={"accept": protobuf})
    assert v1.Scale.FromString(envelope.unwrap(plain.body)[2]).spec.replicas == 3
