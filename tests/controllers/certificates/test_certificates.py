"""Certificate signing requests as tables: approval, the rules of signers, certificates."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from nominee.controllers.certificates.cleaning import is_garbage
from nominee.controllers.certificates.requests import (
    CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    LEGACY,
    parse,
    permissions,
    problem,
    waits_for_approval,
    waits_for_certificate,
)
from nominee.controllers.certificates.shell.signer import SigningOptions, load_authority
from nominee.controllers.certificates.signing import Authority, SigningError, end_of, lifetime, sign
from nominee.controllers.shell.manager import TABLE, Options, select_controllers
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import certificates
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.contexts import context_of
from tests.support.fake_api import FakeApi

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ec.generate_private_key(ec.SECP256R1())
KUBELET = ("client auth", "digital signature", "key encipherment")
SERVING = ("server auth", "digital signature", "key encipherment")
DNS, EMAIL = x509.DNSName("a.example.com"), x509.RFC822Name("a@example.com")
IP, URI = (
    x509.IPAddress(ipaddress.ip_address("10.0.0.1")),
    x509.UniformResourceIdentifier("spiffe://a/b"),
)


def _name(common: str, organizations: Sequence[str]) -> x509.Name:
    rows = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*rows, x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])


def _csr(common: str, organizations: Sequence[str], names: Sequence[x509.GeneralName]) -> bytes:
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(common, organizations))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.PEM)


def _request(
    *names: x509.GeneralName,
    common: str = "system:node:n1",
    organizations: Sequence[str] = ("system:nodes",),
    signer: str = KUBELET_CLIENT,
    usages: Sequence[str] = KUBELET,
    user: str = "system:node:n1",
    conditions: Sequence[str] = (),
    seconds: int | None = None,
) -> certificates.CertificateSigningRequest:
    made = certificates.CertificateSigningRequest()
    made.metadata.name, made.metadata.uid = "csr", "u"
    made.metadata.creationTimestamp.seconds = int(NOW.timestamp())
    made.spec.request = _csr(common, organizations, names)
    made.spec.signerName, made.spec.username = signer, user
    made.spec.usages.extend(usages)
    if seconds is not None:
        made.spec.expirationSeconds = seconds
    for each in conditions:
        made.status.conditions.add(type=each, status="True")
    return made


def _authority(key: Any = KEY, days: int = 3650) -> Authority:
    name = _name("kubernetes", ())
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else SHA256())
    )
    return Authority(made, key)


AUTHORITY = _authority()


@pytest.mark.parametrize(
    ("request_", "subresources"),
    [
        (_request(), ["selfnodeclient", "nodeclient"]),
        (_request(user="bootstrap"), ["nodeclient"]),
        (_request(usages=KUBELET[:2]), ["selfnodeclient", "nodeclient"]),
        (_request(usages=("client auth",)), []),
        (_request(usages=SERVING), []),
        (_request(common="jane"), []),
        (_request(organizations=("system:nodes", "more")), []),
        (_request(DNS), []),
        (_request(signer=CLIENT), []),
        (_request(IP, signer=KUBELET_SERVING, usages=SERVING), []),
    ],
)
def test_which_requests_are_approved_for_whom(
    request_: certificates.CertificateSigningRequest, subresources: list[str]
) -> None:
    assert permissions(request_.spec, parse(request_)[1]) == subresources


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (_request(), ""),
        (_request(organizations=()), "subject organization is not system:nodes"),
        (_request(common="n1"), "subject common name does not begin with system:node:"),
        (_request(DNS), "DNS subjectAltNames are not allowed"),
        (_request(EMAIL), "Email subjectAltNames are not allowed"),
        (_request(IP), "IP subjectAltNames are not allowed"),
        (_request(URI), "URI subjectAltNames are not allowed"),
        (_request(usages=SERVING), "usages did not match [client auth digital signature key encipherment]"),
        (_request(IP, DNS, signer=KUBELET_SERVING, usages=SERVING), ""),
        (_request(signer=KUBELET_SERVING, usages=SERVING), "DNS or IP subjectAltName is required"),
        (_request(IP, URI, signer=KUBELET_SERVING, usages=SERVING), "URI subjectAltNames are not allowed"),
        (_request(IP, EMAIL, signer=KUBELET_SERVING, usages=SERVING),
         "Email subjectAltNames are not allowed"),
        (_request(IP, signer=KUBELET_SERVING),
         "usages did not match [digital signature key encipherment server auth]"),
        (_request(signer=CLIENT, common="jane", organizations=("dev",), usages=("client auth",)), ""),
        (_request(signer=CLIENT, usages=("server auth",)),
         "invalid usage for client certificate: server auth"),
        (_request(signer=CLIENT, usages=("digital signature",)),
         "missing required usage for client certificate: client auth"),
        (_request(URI, signer=LEGACY, usages=("code signing",)), ""),
    ],
)  # fmt: skip
def test_what_signers_refuse(request_: certificates.CertificateSigningRequest, text: str) -> None:
    assert problem(request_.spec, parse(request_)[1]) == text


@pytest.mark.parametrize(
    ("conditions", "signer", "approval", "certificate"),
    [
        ((), CLIENT, True, False),
        (("Approved",), CLIENT, False, True),
        (("Denied",), CLIENT, False, False),
        (("Approved", "Failed"), CLIENT, False, False),
        (("Approved",), "example.com/other", False, False),
    ],
)
def test_what_a_request_waits_for(
    conditions: Sequence[str], signer: str, approval: bool, certificate: bool
) -> None:
    asked = _request(signer=signer, conditions=conditions)
    assert (waits_for_approval(asked), waits_for_certificate(asked)) == (approval, certificate)
    asked.status.certificate = b"x"
    assert not waits_for_approval(asked)
    assert not waits_for_certificate(asked)


@pytest.mark.parametrize(
    ("asked", "most", "seconds"),
    [
        (None, 3600, 3600),
        (1800, 3600, 1800),
        (7200, 3600, 3600),
        (60, 3600, 600),
        (60, 300, 600),
        (500, 300, 300),
    ],
)
def test_how_long_a_certificate_lasts(asked: int | None, most: int, seconds: int) -> None:
    assert lifetime(asked, timedelta(seconds=most)) == timedelta(seconds=seconds)


def _signed(
    asked: certificates.CertificateSigningRequest,
    lasts: timedelta = timedelta(days=365),
    authority: Authority = AUTHORITY,
) -> x509.Certificate:
    found, _ = parse(asked)
    pem = sign(found, asked.spec.usages, authority, lasts=lasts, now=NOW, serial=7)
    return x509.load_pem_x509_certificate(pem)


def test_a_certificate() -> None:
    asked = _request(DNS, IP, signer=KUBELET_SERVING, usages=SERVING)
    made = _signed(asked)
    assert made.subject == _name("system:node:n1", ("system:nodes",))
    assert made.issuer == AUTHORITY.certificate.subject
    made.verify_directly_issued_by(AUTHORITY.certificate)
    assert made.public_key() == KEY.public_key()
    assert made.serial_number == 7
    shown = {type(each.value): (each.value, each.critical) for each in made.extensions}
    assert shown[x509.BasicConstraints] == (x509.BasicConstraints(ca=False, path_length=None), True)
    assert shown[x509.SubjectAlternativeName] == (x509.SubjectAlternativeName([DNS, IP]), False)
    assert shown[x509.ExtendedKeyUsage][0] == x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    usage = shown[x509.KeyUsage][0]
    assert isinstance(usage, x509.KeyUsage)
    assert (usage.digital_signature, usage.key_encipherment, usage.key_cert_sign) == (True, True, False)
    identifier = shown[x509.AuthorityKeyIdentifier][0]
    own = x509.SubjectKeyIdentifier.from_public_key(KEY.public_key())
    assert isinstance(identifier, x509.AuthorityKeyIdentifier)
    assert identifier.key_identifier == own.digest


@pytest.mark.parametrize(
    ("lasts", "days", "end"),
    [
        (timedelta(days=365), 3650, timedelta(days=365, minutes=-5)),
        (timedelta(hours=1), 3650, timedelta(hours=1)),  # a short one is not dated back at its end
        (timedelta(days=365), 10, timedelta(days=10)),  # no longer than the authority
    ],
)
def test_from_when_to_when(lasts: timedelta, days: int, end: timedelta) -> None:
    made = _signed(_request(), lasts, _authority(days=days))
    assert made.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert made.not_valid_after_utc == NOW + end


def test_an_authority_that_expired_signs_nothing() -> None:
    with pytest.raises(
        SigningError, match=r"the signer has expired: NotAfter=2025-12-31 00:00:00 \+0000 UTC"
    ):
        _signed(_request(), authority=Authority(_expired(), KEY))


def _expired() -> x509.Certificate:
    name = _name("kubernetes", ())
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW - timedelta(days=9))
    return builder.not_valid_after(NOW - timedelta(days=1)).sign(KEY, SHA256())


@pytest.mark.parametrize(
    "key",
    [rsa.generate_private_key(public_exponent=65537, key_size=2048), ed25519.Ed25519PrivateKey.generate()],
)
def test_authorities_of_other_algorithms(key: Any) -> None:
    authority = _authority(key)
    _signed(_request(), authority=authority).verify_directly_issued_by(authority.certificate)


def test_all_usages_are_known() -> None:
    usages = [
        "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign",
        "data encipherment", "digital signature", "email protection", "ipsec end system", "ipsec tunnel",
        "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing",
        "s/mime", "server auth", "signing", "timestamping",
    ]  # fmt: skip
    made = _signed(_request(signer=LEGACY, usages=usages))
    purposes = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert len(list(purposes)) == 12  # s/mime is e-mail protection
    with pytest.raises(SigningError, match="encipher_only"):
        _signed(_request(signer=LEGACY, usages=["encipher only"]))


def test_files_that_are_no_authority(tmp_path: Path) -> None:
    certificate, key = _files(tmp_path, KEY)
    assert load_authority(SigningOptions(certificate, key, 3600.0)).certificate == AUTHORITY.certificate
    _, other = _files(tmp_path / "other", ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(SigningError, match="is not the one of the certificate"):
        load_authority(SigningOptions(certificate, other, 3600.0))
    with pytest.raises(SigningError, match="the authority"):
        load_authority(SigningOptions(key, key, 3600.0))


def _files(directory: Path, key: Any) -> tuple[Path, Path]:
    directory.mkdir(exist_ok=True)
    certificate, secret = directory / "ca.crt", directory / "ca.key"
    certificate.write_bytes(AUTHORITY.certificate.public_bytes(Encoding.PEM))
    secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, secret


@pytest.mark.parametrize(
    ("conditions", "certificate", "age_seconds", "garbage"),
    [
        ((), False, 24 * 3600, False),
        ((), False, 24 * 3600 + 1, True),
        (("Denied",), False, 3600, False),
        (("Denied",), False, 3601, True),
        (("Approved", "Failed"), False, 3601, True),
        (("Approved",), False, 10**6, False),
        (("Approved",), True, 3600, False),
        (("Approved",), True, 3601, True),
    ],
)
def test_when_requests_are_garbage(
    conditions: Sequence[str], certificate: bool, age_seconds: int, garbage: bool
) -> None:
    asked, now = _request(conditions=conditions), NOW.timestamp()
    asked.metadata.creationTimestamp.seconds = int(now) - age_seconds
    for row in asked.status.conditions:
        row.lastUpdateTime.seconds = int(now) - age_seconds
    if certificate:
        asked.status.certificate = b"x"
    assert is_garbage(asked, now, lambda _: None) is garbage
    if certificate:
        assert is_garbage(asked, now, lambda _: NOW - timedelta(seconds=1))


def test_until_when_a_certificate_is_good() -> None:
    pem = _signed(_request()).public_bytes(Encoding.PEM)
    assert end_of(pem) == NOW + timedelta(days=365, minutes=-5)
    assert end_of(b"none") is None


def test_upstreams_older_names_of_controllers() -> None:
    assert select_controllers("csrsigning,endpoint") == [
        "certificatesigningrequest-signing-controller",
        "endpoints-controller",
    ]
    assert "endpointslice-controller" not in select_controllers("*,-endpointslice")


class Api(FakeApi):
    """Allows the users in `allowed` to have certificates approved."""

    allowed: frozenset[tuple[str, str]] = frozenset()

    async def may(self, spec: Any) -> bool:
        attributes = spec.resourceAttributes
        assert (attributes.group, attributes.resource, attributes.verb, attributes.version) == (
            "certificates.k8s.io", "certificatesigningrequests", "create", "*",
        )  # fmt: skip
        return (spec.user, attributes.subresource) in self.allowed

    @property
    def csr(self) -> certificates.CertificateSigningRequest:
        (found,) = self.all_of(kinds.CERTIFICATE_SIGNING_REQUEST)
        return found

    def conditions(self) -> list[tuple[str, str, str]]:
        return [(row.type, row.reason, row.message) for row in self.csr.status.conditions]


@asynccontextmanager
async def _controllers(api: Api, tmp_path: Path) -> AsyncIterator[FakeClock]:
    clock = FakeClock(NOW.timestamp())
    context = context_of(api, clock)
    certificate, key = _files(tmp_path, KEY)
    options = Options(signing=SigningOptions(certificate, key, 3600.0))
    runners = [
        TABLE[name](context, options) for name in select_controllers("csrapproving,csrsigning,csrcleaner")
    ]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(context.informers.run)
        await context.informers.wait_synced()
        for runner in runners:
            tasks.start_soon(runner.run)
        yield clock
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("user", "subresource", "message"),
    [
        ("system:node:n1", "selfnodeclient",
         "Auto approving self kubelet client certificate after SubjectAccessReview."),
        ("bootstrap", "nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."),
    ],
)  # fmt: skip
async def test_a_kubelets_request_is_approved_and_signed(
    tmp_path: Path, user: str, subresource: str, message: str
) -> None:
    api = Api()
    api.allowed = frozenset({(user, subresource)})
    api.put(_request(user=user, seconds=900))
    async with _controllers(api, tmp_path):
        await api.until(lambda: bool(api.csr.status.certificate))
    assert api.conditions() == [("Approved", "AutoApproved", message)]
    made = x509.load_pem_x509_certificate(api.csr.status.certificate)
    assert made.not_valid_after_utc == NOW + timedelta(seconds=900)


async def test_a_request_of_a_user_without_permission_waits(tmp_path: Path) -> None:
    api = Api()
    api.put(_request(user="mallory"))
    async with _controllers(api, tmp_path) as clock:
        await clock.advance(31)
        assert not api.conditions()
        api.allowed = frozenset({("mallory", "nodeclient")})
        await clock.advance(31)
        await api.until(lambda: bool(api.csr.status.certificate))


async def test_a_request_that_its_signer_refuses_fails(tmp_path: Path) -> None:
    api = Api()
    api.put(_request(signer=CLIENT, usages=("server auth",), conditions=("Approved",)))
    async with _controllers(api, tmp_path):
        await api.until(lambda: len(api.conditions()) == 2)
    message = "invalid usage for client certificate: server auth"
    assert api.conditions()[1] == ("Failed", "SignerValidationFailure", message)
    assert not api.csr.status.certificate


async def test_old_requests_are_deleted_every_hour(tmp_path: Path) -> None:
    api = Api()
    api.put(_request(signer="example.com/other"))
    async with _controllers(api, tmp_path) as clock:
        await clock.advance(24 * 3600)
        assert api.objects[kinds.CERTIFICATE_SIGNING_REQUEST]
        await clock.advance(3600)
        await api.until(lambda: not api.objects[kinds.CERTIFICATE_SIGNING_REQUEST])
