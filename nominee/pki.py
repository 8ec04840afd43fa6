"""A cluster's certificates and tokens, made at `up`: D/pki.

    ca.crt, ca.key                    the cluster's own authority
    apiserver.crt, apiserver.key      what the API server shows
    sa.key                            signs service accounts' tokens
    clients/NAME.crt, NAME.key        client certificates of components, with upstream's identities
    clients/NAME.token                bearer tokens: what our own processes use over gRPC
    tokens.csv                        whose tokens these are (kube-apiserver's --token-auth-file)

What is there is kept, so that a cluster's credentials outlive it; a certificate near its end is made again.
Keys and tokens are the owner's alone (0600, in directories of 0700). ECDSA P-256: all of it takes some 20 ms.
"""

from __future__ import annotations

import csv
import datetime
import io
import ipaddress
import os
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from machinery.api.names import dns_subdomain_problems

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

CA_DAYS, CERTIFICATE_DAYS, RENEW_DAYS = 3650, 365, 7
SERVING_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
)
SERVING_ADDRESSES = ("127.0.0.1", "::1", "10.96.0.1")
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class Identity:
    """A user and its groups."""

    user: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pki:
    """The paths below D/pki."""

    path: Path

    @property
    def ca(self) -> Path:
        return self.path / "ca.crt"

    @property
    def ca_key(self) -> Path:
        return self.path / "ca.key"

    @property
    def serving(self) -> tuple[Path, Path]:
        return self.path / "apiserver.crt", self.path / "apiserver.key"

    @property
    def accounts_key(self) -> Path:
        return self.path / "sa.key"

    @property
    def tokens(self) -> Path:
        return self.path / "tokens.csv"

    @property
    def clients(self) -> Path:
        return self.path / "clients"

    def arguments(self, authorization_mode: str) -> list[str]:
        """What an API server is started with that is to use all this."""
        certificate, key = self.serving
        return [
            *("--tls-cert-file", str(certificate), "--tls-private-key-file", str(key)),
            *("--client-ca-file", str(self.ca), "--token-auth-file", str(self.tokens)),
            *("--service-account-signing-key-file", str(self.accounts_key)),
            *("--client-certificates", str(self.clients)),
            *("--authorization-mode", authorization_mode),
        ]

    @property
    def signing_arguments(self) -> list[str]:
        """What controllers are started with that are to sign certificates with this authority."""
        return [
            *("--cluster-signing-cert-file", str(self.ca)),
            *("--cluster-signing-key-file", str(self.ca_key)),
        ]

    def ensure(
        self,
        certificates: Mapping[str, Identity],
        tokens: Mapping[str, Identity],
        *,
        now: datetime.datetime,
        names: Iterable[str] = (),
    ) -> None:
        """Make what is missing; `names` are further names or addresses of the API server. OSError."""
        for directory in (self.path, self.clients):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = _Authority.ensure(self.ca, self.ca_key, now)
        authority.ensure_serving(*self.serving, names)
        if not self.accounts_key.exists():
            _write(self.accounts_key, _key_pem(_new_key()), secret=True)
        for name, identity in certificates.items():
            paths = self.clients / f"{name}.crt", self.clients / f"{name}.key"
            if not _lasts(paths[0], now) or not paths[1].exists():
                authority.issue_client(*paths, identity)
        self._write_tokens({name: self._row(name, identity) for name, identity in tokens.items()})

    def reassign(self, tokens: Mapping[str, Identity]) -> None:
        """Whose some tokens are from now on, as a kubelet's that carries other nodes; they stay. OSError."""
        with self.tokens.open(encoding="utf-8", newline="") as file:
            rows = {row[2]: row for row in csv.reader(file) if row}
        self._write_tokens(rows | {name: self._row(name, identity) for name, identity in tokens.items()})

    def _row(self, name: str, identity: Identity) -> list[str]:
        return [self._token(name), identity.user, name, ",".join(identity.groups)]

    def _write_tokens(self, rows: Mapping[str, Sequence[str]]) -> None:
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows(rows.values())
        _write(self.tokens, table.getvalue().encode(), secret=True)

    def _token(self, name: str) -> str:
        path = self.clients / f"{name}.token"
        if not path.exists():
            _write(path, secrets.token_urlsafe(_TOKEN_BYTES).encode(), secret=True)
        return path.read_text(encoding="ascii").strip()

    def client(self, identity: Identity, *, now: datetime.datetime) -> tuple[bytes, bytes]:
        """A certificate and key (PEM) for anybody, kept nowhere. OSError without an authority."""
        authority = _Authority.load(self.ca, self.ca_key, now)
        return authority.client(identity)


@dataclass(frozen=True, slots=True)
class _Authority:
    certificate: x509.Certificate
    key: EllipticCurvePrivateKey
    now: datetime.datetime

    @classmethod
    def load(cls, certificate: Path, key: Path, now: datetime.datetime) -> _Authority:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        loaded = load_pem_private_key(key.read_bytes(), None)
        assert isinstance(loaded, EllipticCurvePrivateKey)
        return cls(x509.load_pem_x509_certificate(certificate.read_bytes()), loaded, now)

    @classmethod
    def ensure(cls, certificate: Path, key: Path, now: datetime.datetime) -> _Authority:
        """The authority as it is, or a new one where there is none."""
        if certificate.exists() or key.exists():
            # Half an authority is not replaced: everything that it signed would be worth nothing.
            return cls.load(certificate, key, now)
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA256

        own = _new_key()
        subject = _name("kubernetes", ())
        usage = _usage(signs=True)
        made = (
            _builder(subject, subject, own, now, CA_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False)
            .sign(own, SHA256())
        )
        _write(key, _key_pem(own), secret=True)
        _write(certificate, _pem(made), secret=False)
        return cls(made, own, now)

    def client(self, identity: Identity) -> tuple[bytes, bytes]:
        from cryptography.x509.oid import ExtendedKeyUsageOID

        subject = _name(identity.user, identity.groups)
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def issue_client(self, certificate: Path, key: Path, identity: Identity) -> None:
        made, secret = self.client(identity)
        _write(key, secret, secret=True)
        _write(certificate, made, secret=False)

    def ensure_serving(self, certificate: Path, key: Path, names: Iterable[str]) -> None:
        """The API server's own, again where it is old or lacks a name."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        wanted = list(dict.fromkeys((*SERVING_NAMES, *_host_names(), *names, *SERVING_ADDRESSES)))
        if key.exists() and _lasts(certificate, self.now) and _has_names(certificate, wanted):
            return
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in wanted])
        made, secret = self._issue(_name("kube-apiserver", ()), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)
        _write(key, secret, secret=True)
        _write(certificate, made, secret=False)

    def _issue(
        self, subject: x509.Name, purpose: x509.ObjectIdentifier, names: x509.SubjectAlternativeName | None
    ) -> tuple[bytes, bytes]:
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA256

        own = _new_key()
        builder = (
            _builder(subject, self.certificate.subject, own, self.now, CERTIFICATE_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return _pem(builder.sign(self.key, SHA256())), _key_pem(own)


def _host_names() -> list[str]:
    """This machine's, where it is one that a certificate can have."""
    name = socket.gethostname().lower()
    return [name] if name and not dns_subdomain_problems(name) else []


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
        # Clocks differ.
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


def _lasts(path: Path, now: datetime.datetime) -> bool:
    """Whether a certificate is there and good for a while."""
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


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(path: Path, data: bytes, *, secret: bool) -> None:
    """Whole or not at all; a secret is never readable by others, not for a moment."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    temporary.replace(path)
