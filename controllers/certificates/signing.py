"""Certificates for signing requests. Pure: the time and the serial number are arguments.

Source: kube-controller-manager 1.36, pkg/controller/certificates/signer, authority (PermissiveSigningPolicy).
cryptography is imported when the first certificate is signed: 80 ms that most clusters never need.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
    from cryptography.hazmat.primitives.hashes import SHA256

BACKDATE: Final = timedelta(minutes=5)
"""Clocks differ: a certificate is valid from so long ago."""
SHORT: Final = timedelta(hours=8)
"""Below this a certificate's end is not dated back."""
SHORTEST: Final = timedelta(minutes=10)

_KEY_USAGES: Final = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_PURPOSES: Final = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}


class SigningError(Exception):
    """The authority cannot sign: it cannot be read, it has expired, or a usage cannot be expressed."""


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: CertificateIssuerPrivateKeyTypes


def lifetime(asked_seconds: int | None, most: timedelta) -> timedelta:
    """Return how long a certificate lasts: as asked, within ten minutes and the authority's limit."""
    asked = most if asked_seconds is None else timedelta(seconds=asked_seconds)
    return most if asked >= most else max(SHORTEST, asked)


def sign(
    request: x509.CertificateSigningRequest,
    usages: Collection[str],
    authority: Authority,
    *,
    lasts: timedelta,
    now: datetime,
    serial: int,
) -> bytes:
    """Return a certificate (PEM) for a request. Raises: SigningError."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    last = authority.certificate.not_valid_after_utc
    if now >= last:
        raise SigningError(f"the signer has expired: NotAfter={last:%Y-%m-%d %H:%M:%S} +0000 UTC")
    end = now + (lasts if lasts < SHORT else lasts - BACKDATE)
    builder = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .issuer_name(authority.certificate.subject)
        .public_key(request.public_key())
        .serial_number(serial)
        .not_valid_before(now - BACKDATE)
        .not_valid_after(min(end, last))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    for extension, critical in _extensions(request, usages, authority):
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(authority.key, _algorithm(authority.key)).public_bytes(Encoding.PEM)


def end_of(certificate: bytes) -> datetime | None:
    """Return until when a certificate (PEM) is valid, None where it cannot be parsed."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    except ValueError:
        return None


def moment(seconds: float) -> datetime:
    """Return the time of `seconds` since the epoch, in whole seconds as in certificates."""
    return datetime.fromtimestamp(int(seconds), UTC)


def _extensions(
    request: x509.CertificateSigningRequest, usages: Collection[str], authority: Authority
) -> list[tuple[x509.ExtensionType, bool]]:
    """Return the extensions and whether each is critical."""
    from cryptography import x509

    found: list[tuple[x509.ExtensionType, bool]] = []
    flags = {_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES}
    if flags:
        try:
            found.append((x509.KeyUsage(**{name: name in flags for name in _KEY_USAGES.values()}), True))
        except ValueError as error:
            raise SigningError(f"usages: {error}") from None
    purposes = dict.fromkeys(_PURPOSES[name] for name in _PURPOSES if name in usages)
    if purposes:
        found.append((x509.ExtendedKeyUsage([x509.ObjectIdentifier(each) for each in purposes]), False))
    try:
        own = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)
        found.append((identifier, False))
    except x509.ExtensionNotFound:
        pass
    alternatives = _alternatives(request)
    if alternatives:
        found.append((x509.SubjectAlternativeName(alternatives), not list(request.subject)))
    return found


def _alternatives(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """Return the names of a request that a certificate may have: others are left out, as by Go."""
    from cryptography import x509

    try:
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    kept = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)
    return [name for name in names if isinstance(name, kept)]


def _algorithm(key: CertificateIssuerPrivateKeyTypes) -> SHA256 | None:
    from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256

    return None if isinstance(key, Ed25519PrivateKey | Ed448PrivateKey) else SHA256()
