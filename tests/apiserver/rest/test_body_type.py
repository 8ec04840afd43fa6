"""Bodies of another type than the endpoint's."""

from __future__ import annotations

import pytest

from tests.apiserver.rest.asgi import in_memory

OTHER = "the API version in the data ({}) does not match the expected API version ({})"


@pytest.mark.parametrize(
    ("group", "plural", "api_version", "kind", "message"),
    [
        *(
            (group, plural, given, kind, OTHER.format(given, group))
            for group, plural, given, kind in (
                ("apps/v1", "deployments", "extensions/v1beta1", "Deployment"),
                ("apps/v1", "deployments", "apps/v1beta1", "Deployment"),
                ("networking.k8s.io/v1", "ingresses", "extensions/v1beta1", "Ingress"),
                ("storage.k8s.io/v1", "csinodes", "storage.k8s.io/v1beta1", "CSINode"),
                ("autoscaling/v2", "horizontalpodautoscalers", "autoscaling/v1", "HorizontalPodAutoscaler"),
            )
        ),
        (
            "apps/v1",
            "deployments",
            "apps/v1beta1",
            "StatefulSet",
            'StatefulSet in version "v1beta1" cannot be handled as a Deployment:'
            " converting (v1beta1.StatefulSet) to (apps.Deployment): unknown conversion",
        ),
        (
            "apps/v1",
            "daemonsets",
            "apps/v1beta1",
            "DaemonSet",
            'DaemonSet in version "v1beta1" cannot be handled as a DaemonSet: no kind "DaemonSet" is'
            ' registered for version "apps/v1beta1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
    ],
)
async def test_a_body_of_another_version(
    group: str, plural: str, api_version: str, kind: str, message: str
) -> None:
    rest = await in_memory()
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
    path = f"/apis/{group}/{'' if plural == 'csinodes' else 'namespaces/default/'}{plural}"
    for method, at in (("POST", path), ("PUT", f"{path}/x")):
        reply = await rest.json(method, at, body)
        assert (reply.code, reply.document["message"]) == (400, message)
