"""Approving and signing need the verbs on the signer."""

from __future__ import annotations

import pytest

from nominee.apiserver.access.authorizer import Union
from nominee.apiserver.access.rbac.authorizer import RBAC
from nominee.apiserver.admission.interface import AdmissionRequest
from nominee.apiserver.admission.permissions.certificates import CertificateApproval, CertificateSigning
from nominee.apiserver.objects.attributes import Origin
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import certificates
from tests.apiserver.access.fakes import Objects
from tests.apiserver.access.test_rbac import JANE, bind, role

KIND = kinds.CERTIFICATE_SIGNING_REQUEST
SIGNER = "example.com/web"


def permitted(verb: str = "", *names: str) -> Objects:
    """What jane may do to signers."""
    objects = Objects()
    role(objects, "signing", {
        "verbs": [verb or "get"], "apiGroups": [KIND.group], "resources": ["signers"], "resourceNames": names,
    })  # fmt: skip
    bind(objects, "signing", "User:jane")
    return objects


def change(subresource: str, *, certificate: bytes = b"", condition: str = "") -> AdmissionRequest:
    old = certificates.CertificateSigningRequest()
    old.metadata.name, old.spec.signerName = "web", SIGNER
    new = certificates.CertificateSigningRequest()
    new.CopyFrom(old)
    new.status.certificate = certificate
    if condition:
        new.status.conditions.add(type=condition, status="True")
    return AdmissionRequest("UPDATE", KIND, "", "web", subresource, new, old, origin=Origin(JANE))


@pytest.mark.parametrize("name", [SIGNER, "example.com/*", ""])
async def test_the_signer_or_its_domain(name: str) -> None:
    names = (name,) if name else ()
    approve = permitted("approve", *names)
    await CertificateApproval(Union([RBAC.over(approve)])).validate(change("approval"), approve.lookup)
    sign = permitted("sign", *names)
    await CertificateSigning(Union([RBAC.over(sign)])).validate(
        change("status", certificate=b"x"), sign.lookup
    )


@pytest.mark.parametrize("name", ["example.com/other", "other.com/*", "example.com"])
async def test_not_another_signer(name: str) -> None:
    objects = permitted("approve", name)
    with pytest.raises(StatusError) as refused:
        await CertificateApproval(Union([RBAC.over(objects)])).validate(change("approval"), objects.lookup)
    assert (refused.value.code, refused.value.message) == (
        403,
        'certificatesigningrequests.certificates.k8s.io "web" is forbidden: user not permitted to approve'
        ' requests with signerName "example.com/web"',
    )


async def test_only_what_signs_needs_sign() -> None:
    objects = permitted()
    plugin = CertificateSigning(Union([RBAC.over(objects)]))
    await plugin.validate(change("status"), objects.lookup)
    for signing in (change("status", certificate=b"x"), change("status", condition="Failed")):
        with pytest.raises(
            StatusError, match=r'not permitted to sign requests with signerName "example\.com/web"'
        ):
            await plugin.validate(signing, objects.lookup)
    assert plugin.handles(KIND, "UPDATE", "status")
    assert not plugin.handles(KIND, "UPDATE", "")
