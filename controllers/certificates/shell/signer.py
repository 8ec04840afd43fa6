"""The signing controller's shell: the four signers of kube-controller-manager, with one authority."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from nominee.controllers.certificates.requests import fail, parse, problem, waits_for_certificate
from nominee.controllers.certificates.signing import Authority, SigningError, lifetime, moment, sign
from nominee.controllers.shell.controller import Context, Controller
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey, copy_of
from nominee.machinery.api.pb import certificates
from nominee.machinery.runtime import failpoints

if TYPE_CHECKING:
    # cryptography is imported with the first request: 80 ms that most clusters never need.
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

SIGN_BEFORE = failpoints.declare(
    "controllers.certificates.sign.before",
    "the certificate, or the condition Failed, is made; it is not written",
)


@dataclass(frozen=True, slots=True)
class SigningOptions:
    """The authority's files, and how long a certificate lasts that does not ask for less."""

    certificate: Path
    key: Path
    seconds_max: float


def load_authority(options: SigningOptions) -> Authority:
    """Read the authority's PEM files. Raises: SigningError, which names them."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        certificate = x509.load_pem_x509_certificate(options.certificate.read_bytes())
        key = load_pem_private_key(options.key.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise SigningError(
            f"the authority {options.certificate} with the key {options.key}: {error}"
        ) from None
    if certificate.public_key() != key.public_key():
        raise SigningError(f"the key {options.key} is not the one of the certificate {options.certificate}")
    return Authority(certificate, cast("CertificateIssuerPrivateKeyTypes", key))


class Signer(Controller):
    """Signs approved requests; without an authority it does nothing."""

    name = "certificatesigningrequest-signing-controller"

    def __init__(self, context: Context, options: SigningOptions | None) -> None:
        super().__init__(context)
        self._options = options
        self._requests = self.watch(kinds.CERTIFICATE_SIGNING_REQUEST)

    @cached_property
    def _authority(self) -> Authority:
        assert self._options is not None
        return load_authority(self._options)

    async def reconcile(self, key: ObjectKey) -> float | None:
        request = self._requests.get_by_key(key)
        if self._options is None or request is None or not waits_for_certificate(request):
            return None
        try:
            new = self._answer(request, self._options)
        except (SigningError, ValueError) as error:
            self.log.error("the request cannot be signed", request=key.name, error=str(error))
            return None
        await SIGN_BEFORE.hit(request=key.name)
        await self.client.update(new, subresource="status")
        return None

    def _answer(
        self, request: certificates.CertificateSigningRequest, options: SigningOptions
    ) -> certificates.CertificateSigningRequest:
        """Return the request with its certificate, or with the condition that says why it gets none."""
        from cryptography import x509

        spec = request.spec
        parsed, names = parse(request)
        refusal = problem(spec, names)
        if refusal:
            return fail(request, refusal)
        seconds = spec.expirationSeconds if spec.HasField("expirationSeconds") else None
        new = copy_of(request)
        new.status.certificate = sign(
            parsed,
            spec.usages,
            self._authority,
            lasts=lifetime(seconds, timedelta(seconds=options.seconds_max)),
            now=moment(self.clock.now()),
            serial=x509.random_serial_number(),
        )
        return new
