"""Admission of certificate requests: permissions to approve and sign, and the group that none may name.

Permission to update `approval` or `status` is not enough: the verbs `approve` and `sign` on the request's
signer are required too, for its name or for all of its domain ("example.com/*").

Source: kube-apiserver 1.36, plugin/pkg/admission/certificates.
"""

from __future__ import annotations

from nominee.apiserver.access.authorizer import Authorizer
from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import MASTERS, User
from nominee.machinery.api.kinds import CERTIFICATE_SIGNING_REQUEST

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


class _OfSigner(Plugin):
    """Requires permission for a verb on the request's signer."""

    verb = ""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def may(self, user: User, signer: str) -> bool:
        domain = signer.partition("/")[0]
        return any(
            self._authorizer.decide(
                user, Attributes(self.verb, "signers", CERTIFICATE_SIGNING_REQUEST.group, "*", name=name)
            ).allowed
            for name in (signer, f"{domain}/*")
        )


class CertificateApproval(_OfSigner):
    """Requires the verb `approve` on the signer for updates of `approval`."""

    name = "CertificateApproval"
    verb = "approve"
    requests = ((CERTIFICATE_SIGNING_REQUEST, "UPDATE", "approval"),)

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        signer = request.old.spec.signerName
        if not self.may(request.origin.user, signer):
            raise request.forbidden(f'user not permitted to approve requests with signerName "{signer}"')


class CertificateSigning(_OfSigner):
    """Requires the verb `sign` on the signer for updates of `status` that issue a certificate."""

    name = "CertificateSigning"
    verb = "sign"
    requests = ((CERTIFICATE_SIGNING_REQUEST, "UPDATE", "status"),)

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        new, old = request.obj.status, request.old.status
        if new.certificate == old.certificate and new.conditions == old.conditions:
            return
        signer = request.old.spec.signerName
        if not self.may(request.origin.user, signer):
            raise request.forbidden(f'user not permitted to sign requests with signerName "{signer}"')


class CertificateSubjectRestriction(Plugin):
    """Refuses a client certificate for the group system:masters."""

    name = "CertificateSubjectRestriction"
    requests = ((CERTIFICATE_SIGNING_REQUEST, "CREATE", ""),)

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        if request.obj.spec.signerName != CLIENT_SIGNER:
            return
        # 80 ms to import, and most clusters never need it.
        from cryptography import x509

        # Validation has parsed it already.
        found = x509.load_pem_x509_csr(request.obj.spec.request)
        groups = found.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
        if any(group.value == MASTERS for group in groups):
            raise request.forbidden(f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
