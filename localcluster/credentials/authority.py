"""A certificate authority in two files, and the certificates that it issues: ECDSA P-256, in PEM.

Only the owner may read keys (0600). Existing files are kept; a certificate that expires soon is issued again.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nominee.machinery.api.names import dns_subdomain_problems

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

# The functions import cryptography: 90 ms that commands without a new certificate would pay.
CA_DAYS, CERTIFICATE_DAYS, RENEW_DAYS = 3650, 365, 7


@dataclass(frozen=True, slots=True)
class Identity:
    """A user and its groups."""

    user: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority at a moment: its certificates are valid from `now`."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey
    now: datetime.datetime

    @classmethod
    def load(cls, certificate: Path, key: Path, now: datetime.datetime) -> Authority:
        """Read an authority from its files.

        Raises:
            OSError: a file cannot be read.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        loaded = load_pem_private_key(key.read_bytes(), None)
        assert isinstance(loaded, EllipticCurvePrivateKey)
        return cls(x509.load_pem_x509_certificate(certificate.read_bytes()), loaded, now)

    @classmethod
    def ensure(cls, certificate: Path, key: Path, now: datetime.datetime, *, name: str) -> Authority:
        """Read an authority from its files, or create it if the files do not exist.

        Raises:
            OSError: a file cannot be read or written.
        """
        if certificate.exists() or key.exists():
            # Half an authority is not replaced: every certificate that it signed would become invalid.
            return cls.load(certificate, key, now)
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA256

        own = new_key()
        subject = _name(name, ())
        usage = _usage(signs=True)
        made = (
            _builder(subject, subject, own, now, CA_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False)
            .sign(own, SHA256())
        )
        write(key, key_pem(own), secret=True)
        write(certificate, _pem(made), secret=False)
        return cls(made, own, now)

    def client(self, identity: Identity) -> tuple[bytes, bytes]:
        """Issue a client certificate; return it and its key without writing either."""
        from cryptography.x509.oid import ExtendedKeyUsageOID

        return self._issue(identity, [ExtendedKeyUsageOID.CLIENT_AUTH])

    def ensure_client(self, certificate: Path, key: Path, identity: Identity) -> None:
        """Issue a client certificate into files, unless they hold one that is valid for long enough.

        Raises:
            OSError: a file cannot be read or written.
        """
        if not lasts(certificate, self.now) or not key.exists():
            _write_pair(certificate, key, self.client(identity))

    def ensure_serving(
        self, certificate: Path, key: Path, identity: Identity, names: Iterable[str], *, client: bool = False
    ) -> None:
        """Issue a server's certificate into files, unless they hold a valid one with all names.

        A certificate that expires soon is issued again. With `client` the certificate is also valid
        for connections that the server opens, to itself too.

        Raises:
            OSError: a file cannot be read or written.
        """
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        wanted = list(dict.fromkeys(names))
        if key.exists() and lasts(certificate, self.now) and _has_names(certificate, wanted):
            return
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, *([ExtendedKeyUsageOID.CLIENT_AUTH] if client else [])]
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in wanted])
        _write_pair(certificate, key, self._issue(identity, purposes, alternatives))

    def _issue(
        self,
        identity: Identity,
        purposes: Sequence[x509.ObjectIdentifier],
        names: x509.SubjectAlternativeName | None = None,
    ) -> tuple[bytes, bytes]:
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA256

        own = new_key()
        subject = _name(identity.user, identity.groups)
        builder = (
            _builder(subject, self.certificate.subject, own, self.now, CERTIFICATE_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return _pem(builder.sign(self.key, SHA256())), key_pem(own)


def host_names() -> list[str]:
    """Return this machine's names that a certificate can hold."""
    name = socket.gethostname().lower()
    return [name] if name and not dns_subdomain_problems(name) else []


def _write_pair(certificate: Path, key: Path, made: tuple[bytes, bytes]) -> None:
    write(key, made[1], secret=True)
    write(certificate, made[0], secret=False)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of other machines may be behind.
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not signs,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str, organizations: Sequence[str]) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    # Upstream's groups and users may be longer than X.520 allows, as Go's library lets them be.
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each, _validate=False) for each in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common, _validate=False)])


def _alternative(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def lasts(path: Path, now: datetime.datetime) -> bool:
    """Return whether a file holds a certificate that stays valid for long enough."""
    from cryptography import x509

    if not path.exists():
        return False
    until = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    return until - now > datetime.timedelta(days=RENEW_DAYS)


def _has_names(path: Path, wanted: Iterable[str]) -> bool:
    from cryptography import x509

    made = x509.load_pem_x509_certificate(path.read_bytes())
    found = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {_alternative(name) for name in wanted} <= set(found)


def new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def key_pem(key: EllipticCurvePrivateKey) -> bytes:
    """Return a private key as PEM, unencrypted."""
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def write(path: Path, data: bytes, *, secret: bool) -> None:
    """Write a file atomically; no other user may read a secret at any moment."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    temporary.replace(path)
