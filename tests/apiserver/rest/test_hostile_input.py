"""Numbers of thousands of digits and their like are refused as other nonsense is: nothing breaks on them."""

from __future__ import annotations

import base64
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from nominee.apiserver.access.service_accounts import Objects, ServiceAccountTokens
from nominee.apiserver.cache import continue_token
from nominee.apiserver.cache.continue_token import InvalidToken
from nominee.apiserver.managed_fields.fields import paths
from nominee.apiserver.managed_fields.fields.paths import BadElement
from nominee.apiserver.objects.list_options import InvalidResourceVersion, parse_revision
from nominee.machinery.runtime.clock import FakeClock
from tests.apiserver.rest.asgi import Rest, in_memory

DIGITS = "9" * 5000
"""More than Python reads."""
NAMESPACE = "/api/v1/namespaces/default"
CONTAINERS: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}
AUTOSCALERS = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


@pytest.fixture
async def rest() -> Rest:
    return await in_memory()


@pytest.mark.parametrize("operation", ["add", "remove", "replace", "test"])
async def test_indexes_of_json_patches(rest: Rest, operation: str) -> None:
    await rest.json("POST", f"{NAMESPACE}/pods", {"metadata": {"name": "p"}, "spec": CONTAINERS})
    patch = [{"op": operation, "path": f"/spec/containers/{DIGITS}", "value": {}}]
    content = "application/json-patch+json"
    assert (await rest.json("PATCH", f"{NAMESPACE}/pods/p", patch, content=content)).code == 422


async def test_copies_of_json_patches_have_a_limit(rest: Rest) -> None:
    maps, text = f"{NAMESPACE}/configmaps", "x" * 500_000
    await rest.json("POST", maps, {"metadata": {"name": "m"}, "data": {"a": text}})
    for copies, said in ((6, "Too long"), (7, "rejected our request")):
        patch = [{"op": "copy", "from": "/data/a", "path": f"/data/b{each}"} for each in range(copies)]
        reply = await rest.json("PATCH", f"{maps}/m", patch, content="application/json-patch+json")
        assert (reply.code, said in reply.document["message"]) == (422, True)


async def test_resource_versions_and_durations(rest: Rest) -> None:
    with pytest.raises(InvalidResourceVersion, match=r"value out of range$"):
        parse_revision(DIGITS)
    assert parse_revision(f"{'0' * 5000}7") == 7
    reply = await rest.json("GET", NAMESPACE, query={"timeout": f"{DIGITS}s"})
    assert reply.code == 400
    assert reply.document["message"].endswith(f'time: invalid duration "{DIGITS}s"')
    # Go looks at no more of a fraction than it needs.
    assert (await rest.json("GET", NAMESPACE, query={"timeout": f"1.{DIGITS}s"})).code in (200, 404)


async def test_yaml(rest: Rest) -> None:
    body = f"kind: Pod\napiVersion: v1\nspec:\n  priority: {DIGITS}\n".encode()
    headers = {"content-type": "application/yaml", "accept": "application/json"}
    assert (await rest.request("POST", f"{NAMESPACE}/pods", body=body, headers=headers)).code == 400


async def test_deletion_costs(rest: Rest) -> None:
    annotations = {"controller.kubernetes.io/pod-deletion-cost": DIGITS}
    made = {"metadata": {"name": "p", "annotations": annotations}, "spec": CONTAINERS}
    assert (await rest.json("POST", f"{NAMESPACE}/pods", made)).code == 422


async def test_prefix_lengths_and_schedules(rest: Rest) -> None:
    many_zeros, ranges = "0" * 5000, "/apis/networking.k8s.io/v1/servicecidrs"
    for digits in (DIGITS, many_zeros):
        made = {"metadata": {"name": "c"}, "spec": {"cidrs": [f"10.0.0.0/{digits}"]}}
        assert (await rest.json("POST", ranges, made)).code == 422
    jobs = "/apis/batch/v1/namespaces/default/cronjobs"
    template = {"spec": {"template": {"spec": {**CONTAINERS, "restartPolicy": "Never"}}}}
    for digits, code in ((DIGITS, 422), (many_zeros, 201)):
        schedule = {"schedule": f"{digits} * * * *", "jobTemplate": template}
        reply = await rest.json("POST", jobs, {"metadata": {"name": "j"}, "spec": schedule})
        assert reply.code == code
        assert code == 201 or "value out of range" in reply.document["message"]


@pytest.mark.parametrize(("surge", "code"), [("250%", 201), ("100%100%", 422), ("100%x", 422)])
async def test_a_surge_is_a_percentage_of_any_size(rest: Rest, surge: str, code: int) -> None:
    labels = {"app": "web"}
    made = {"metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": labels}, "strategy": {"rollingUpdate": {"maxSurge": surge}},
        "template": {"metadata": {"labels": labels}, "spec": CONTAINERS},
    }}  # fmt: skip
    assert (await rest.json("POST", "/apis/apps/v1/namespaces/default/deployments", made)).code == code


async def test_budgets_of_more_than_all(rest: Rest) -> None:
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    for least, code in ((f"{DIGITS}%", 422), ("0100%", 201)):
        made = {"metadata": {"name": "b"}, "spec": {"minAvailable": least, "selector": {}}}
        assert (await rest.json("POST", budgets, made)).code == code


@pytest.mark.parametrize("name", ["metrics", "behavior"])
async def test_what_an_autoscaler_says_too_deep_is_dropped(rest: Rest, name: str) -> None:
    annotations = {f"autoscaling.alpha.kubernetes.io/{name}": "[" * 5000 + "]" * 5000}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3}
    made = {"metadata": {"name": "web", "annotations": annotations}, "spec": spec}
    assert (await rest.json("POST", AUTOSCALERS, made)).code == 201


async def test_certificate_requests_that_cannot_be_verified(rest: Rest) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    right = made.public_bytes(serialization.Encoding.DER)
    for old, new in (
        # An unknown version, an unknown curve, an unknown key algorithm.
        (b"\x02\x01\x00", b"\x02\x01\x07"),
        (bytes.fromhex("06082a8648ce3d030107"), bytes.fromhex("06082a8648ce3d030102")),
        (bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex("06072a8648ce3d0279")),
    ):
        assert old in right
        text = base64.encodebytes(right.replace(old, new, 1)).decode()
        request = f"-----BEGIN CERTIFICATE REQUEST-----\n{text}-----END CERTIFICATE REQUEST-----\n"
        spec = {
            "request": base64.b64encode(request.encode()).decode(), "usages": ["client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client",
        }  # fmt: skip
        reply = await rest.json("POST", REQUESTS, {"metadata": {"name": "jane"}, "spec": spec})
        assert reply.code == 422, reply.body


DEEP = "[" * 9000
"""Deeper than Python reads JSON."""


async def test_json_in_texts_that_is_too_deep(rest: Rest) -> None:
    encoded = base64.urlsafe_b64encode(DEEP.encode()).rstrip(b"=").decode()
    with pytest.raises(InvalidToken):
        continue_token.decode(encoded)
    private = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    tokens = ServiceAccountTokens(private, cast("Objects", None), FakeClock())
    assert tokens._verified(f"{encoded}.{encoded}.AAAA") is None
    for element in (f"v:{DEEP}", f'k:{{"name":{DEEP}'):
        with pytest.raises(BadElement):
            paths.parse(element)
    data = {".dockerconfigjson": base64.b64encode(DEEP.encode()).decode()}
    secret = {"metadata": {"name": "s"}, "type": "kubernetes.io/dockerconfigjson", "data": data}
    assert (await rest.json("POST", f"{NAMESPACE}/secrets", secret)).code == 422
