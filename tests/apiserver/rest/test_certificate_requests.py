"""Certificate signing requests: asked for, approved, answered; by whom they were made."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.apiserver.rest.asgi import Reply, Rest, in_memory

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MERGE: dict[str, Any] = {"content-type": "application/merge-patch+json"}


def pem(*groups: str) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "jane"),
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
        ]
    )
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM)


PEM = base64.b64encode(pem()).decode()
SPEC: dict[str, Any] = {
    "request": PEM, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
}  # fmt: skip


@pytest.fixture
async def rest() -> Rest:
    return await in_memory()


async def create(rest: Rest, **spec: Any) -> Reply:
    return await rest.json("POST", REQUESTS, {"metadata": {"name": "jane"}, "spec": {**SPEC, **spec}})


def verdict(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": "True", "reason": "ByHand", **more}


async def test_a_request_is_approved_and_signed(rest: Rest) -> None:
    made = await create(rest, username="root", groups=["system:masters"], expirationSeconds=3600)
    assert made.code == 201, made.body
    spec = made.document["spec"]
    assert (spec["username"], spec["groups"]) == (
        "kubernetes-admin", ["system:masters", "system:authenticated"],
    )  # fmt: skip
    path = f"{REQUESTS}/jane"
    table: dict[str, Any] = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    async def shown() -> list[Any]:
        cells: list[Any] = (await rest.json("GET", path, **table)).document["rows"][0]["cells"]
        return cells[2:]

    signer = SPEC["signerName"]
    assert await shown() == [signer, "kubernetes-admin", "60m", "Pending"]
    # Not by an update of itself or its status.
    for place in (path, f"{path}/status"):
        change = {"spec": {"usages": ["any"]}, "status": {"conditions": [verdict("Approved")]}}
        changed = (await rest.json("PATCH", place, change, **MERGE)).document
        assert changed["spec"]["usages"] == ["client auth"]
        assert not changed["status"].get("conditions")
    approval = {"status": {"conditions": [verdict("Approved")], "certificate": PEM}}
    approved = (await rest.json("PATCH", f"{path}/approval", approval, **MERGE)).document
    assert approved["status"]["conditions"][0]["lastUpdateTime"]
    assert "certificate" not in approved["status"]
    assert (await shown())[3] == "Approved"
    issued = await rest.json("PATCH", f"{path}/status", {"status": {"certificate": PEM}}, **MERGE)
    assert issued.code == 200, issued.body
    assert (await shown())[3] == "Approved,Issued"
    taken = await rest.json("PATCH", f"{path}/approval", {"status": {"conditions": []}}, **MERGE)
    assert taken.code == 422


async def test_a_request_for_system_masters_is_refused(rest: Rest) -> None:
    request = base64.b64encode(pem("dev", "system:masters")).decode()
    refused = await create(rest, request=request)
    assert (refused.code, refused.document["message"]) == (
        403,
        'certificatesigningrequests.certificates.k8s.io "jane" is forbidden: use of'
        " kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed",
    )
    assert (await create(rest, request=request, signerName="example.com/web")).code == 201


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"request": base64.b64encode(b"x").decode()}, "spec.request"),
        ({"usages": []}, "spec.usages"),
        ({"usages": ["client auth", "nothing"]}, "spec.usages[1]"),
        ({"usages": ["client auth", "client auth"]}, "spec.usages[1]"),
        ({"signerName": "unqualified"}, "spec.signerName"),
        ({"signerName": "kubernetes.io/legacy-unknown"}, "spec.signerName"),
        ({"expirationSeconds": 599}, "spec.expirationSeconds"),
    ],
)
async def test_what_is_no_request(rest: Rest, change: dict[str, Any], field: str) -> None:
    reply = await create(rest, **change)
    assert reply.code == 422, reply.body
    assert field in {cause["field"] for cause in reply.document["details"]["causes"]}


async def test_a_verdict_is_one(rest: Rest) -> None:
    await create(rest)
    both = {"status": {"conditions": [verdict("Approved"), verdict("Denied")]}}
    assert (await rest.json("PATCH", f"{REQUESTS}/jane/approval", both, **MERGE)).code == 422
    doubt = {"status": {"conditions": [verdict("Approved", status="Unknown")]}}
    assert (await rest.json("PATCH", f"{REQUESTS}/jane/approval", doubt, **MERGE)).code == 422
