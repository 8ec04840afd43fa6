"""CertificateSigningRequests: how they are created, approved and signed.

Approving and signing are for controllers and people: nothing here issues a certificate. Source:
kube-apiserver 1.36, registry/certificates/certificates/strategy.go and pkg/apis/certificates/validation.
"""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, Strategy, keep
from nominee.apiserver.objects.selectable_fields import selectable
from nominee.apiserver.printing.cells import NONE, or_none
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.objects import metadata
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.names import go_quote
from nominee.machinery.api.pb import certificates, meta
from nominee.machinery.printing.durations import human_duration

Request = certificates.CertificateSigningRequest

APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
_PERMANENT = (APPROVED, DENIED, FAILED)
_SECONDS_MIN = 600
_LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
_PATH_LENGTH_MAX, _DOMAIN_LENGTH_MAX = 571, 253
_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign",
    "data encipherment", "decipher only", "digital signature", "email protection", "encipher only",
    "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc",
    "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping",
)  # fmt: skip
_VERDICTS = (APPROVED, DENIED)
_SPEC = "certificatesigningrequestspec-certificates-v1"


class RequestStrategy(Strategy[Request]):
    """Its maker is who asks; it never changes but by its subresources."""

    def name_rule(self, name: str) -> names.Problems:
        return ()

    def prepare_for_create(self, new: Request, env: Environment) -> None:
        spec, user = new.spec, env.user
        for name in ("username", "uid", "groups", "extra"):
            spec.ClearField(name)
        spec.username, spec.uid = user.name, user.uid
        spec.groups.extend(user.groups)
        for key, values in user.extra:
            spec.extra[key].items.extend(values)
        new.ClearField("status")

    def validate(self, new: Request, env: Environment) -> list[Cause]:
        return [*self.validate_metadata(new), *_validate(new)]

    def prepare_for_update(self, new: Request, old: Request, env: Environment) -> None:
        keep(new, old, "spec")
        keep(new, old, "status")

    def validate_update(self, new: Request, old: Request, env: Environment) -> list[Cause]:
        return [*metadata.object_meta_update(new.metadata, old.metadata), *_validate_change(new, old)]


class ApprovalStrategy(RequestStrategy):
    """PUT of `approval`: only conditions."""

    def prepare_for_update(self, new: Request, old: Request, env: Environment) -> None:
        keep(new, old, "spec")
        new.status.certificate = old.status.certificate
        _date(new, old, env.now)


class RequestStatusStrategy(RequestStrategy):
    """PUT of `status`: all but the verdicts."""

    reset_fields = ("spec",)

    def prepare_for_update(self, new: Request, old: Request, env: Environment) -> None:
        keep(new, old, "spec")
        own = [row for row in new.status.conditions if row.type not in _VERDICTS]
        rows = [row for row in old.status.conditions if row.type in _VERDICTS] + own
        copies = [type(row).FromString(row.SerializeToString()) for row in rows]
        del new.status.conditions[:]
        new.status.conditions.extend(copies)
        _date(new, old, env.now)


def _date(new: Request, old: Request, now: meta.Time) -> None:
    """Set the missing times of conditions, in place."""
    before = {row.type: row for row in old.status.conditions}
    for row in new.status.conditions:
        if not row.lastUpdateTime.seconds:
            row.lastUpdateTime.CopyFrom(now)
        if not row.lastTransitionTime.seconds:
            known = before.get(row.type)
            same = known is not None and known.status == row.status and known.lastTransitionTime.seconds
            row.lastTransitionTime.CopyFrom(known.lastTransitionTime if same and known is not None else now)


def _validate(obj: Request) -> Iterator[Cause]:
    spec = obj.spec
    if problem := _problem(spec.request):
        yield field.invalid("spec.request", list(spec.request), problem)
    if not spec.usages:
        yield field.required("spec.usages")
    for index, usage in enumerate(spec.usages):
        if usage not in _USAGES:
            yield field.not_supported(f"spec.usages[{index}]", usage, _USAGES)
        elif usage in spec.usages[:index]:
            yield field.duplicate(f"spec.usages[{index}]", usage)
    if spec.signerName == _LEGACY_SIGNER:
        problem = "the legacy signerName is not allowed via this API version"
        yield field.invalid("spec.signerName", spec.signerName, problem)
    else:
        yield from _signer(spec.signerName)
    if spec.HasField("expirationSeconds") and spec.expirationSeconds < _SECONDS_MIN:
        problem = "may not specify a duration less than 600 seconds (10 minutes)"
        yield field.invalid("spec.expirationSeconds", spec.expirationSeconds, problem)


def _validate_change(new: Request, old: Request) -> Iterator[Cause]:
    """Check an update of approval or status: permanent conditions and the certificate cannot be removed."""
    yield from _conditions(new)
    held = {(row.type, row.status) for row in new.status.conditions}
    for row in old.status.conditions:
        if row.type in _PERMANENT and (row.type, row.status) not in held:
            problem = f"updates may not remove a condition of type {go_quote(row.type)}"
            yield field.forbidden("status.conditions", problem)
    if old.status.certificate and new.status.certificate != old.status.certificate:
        yield field.forbidden("status.certificate", "updates may not set certificate content, it is set")


def _conditions(obj: Request) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, row in enumerate(obj.status.conditions):
        path = f"status.conditions[{index}]"
        if not row.type:
            yield field.required(f"{path}.type")
        elif row.type in seen:
            yield field.duplicate(f"{path}.type", row.type)
        if not row.status:
            yield field.required(f"{path}.status")
        elif row.type in _PERMANENT and row.status != "True":
            yield field.not_supported(f"{path}.status", row.status, ["True"])
        elif row.status not in ("True", "False", "Unknown"):
            yield field.not_supported(f"{path}.status", row.status, ["False", "True", "Unknown"])
        seen.add(row.type)
    if APPROVED in seen and DENIED in seen:
        problem = "Approved and Denied conditions are mutually exclusive"
        index = [row.type for row in obj.status.conditions].index(DENIED)
        yield field.invalid(f"status.conditions[{index}].type", DENIED, problem)


def _signer(name: str) -> list[Cause]:
    """`domain/path`."""
    path = "spec.signerName"
    if not name:
        return [field.required(path)]
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        problem = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [field.invalid(path, name, problem)]
    errors = [
        field.invalid(path, domain, f"validating label {go_quote(part)}: {problem}")
        for part in domain.split(".")
        for problem in names.dns_label(part)
    ]
    if len(domain.split(".")) < 2:
        errors.append(
            field.invalid(path, domain, "should be a domain with at least two segments separated by dots")
        )
    errors += [
        field.invalid(path, rest, f"validating label {go_quote(part)}: {problem}")
        for part in rest.split(".")
        for problem in names.dns_subdomain(part)
    ]
    if len(name.encode()) > _PATH_LENGTH_MAX:
        errors.append(field.too_long(path, _PATH_LENGTH_MAX))
    return errors


def _problem(data: bytes) -> str:
    """Why this is no request that its maker has signed, or ""."""
    # 80 ms to import, and most clusters have no such request.
    from cryptography import exceptions, x509

    if b"-----BEGIN CERTIFICATE REQUEST-----" not in data:
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        found = x509.load_pem_x509_csr(data)
        signed = found.is_signature_valid
    except (ValueError, x509.InvalidVersion):
        return "asn1: structure error: malformed certificate request"
    except exceptions.UnsupportedAlgorithm:
        return "x509: cannot verify signature: algorithm unimplemented"
    return "" if signed else "x509: signature verification failed"


def _fields(found: Request) -> dict[str, str]:
    return {"metadata.name": found.metadata.name, "spec.signerName": found.spec.signerName}


def _row(obj: Request, now: float) -> Cells:
    spec = obj.spec
    wanted = human_duration(spec.expirationSeconds) if spec.HasField("expirationSeconds") else NONE
    types = {row.type for row in obj.status.conditions}
    verdict = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    verdict += ",Failed" * ("Failed" in types) + ",Issued" * bool(obj.status.certificate)
    return [or_none(spec.signerName), spec.username, wanted, verdict]


RULES = KindRules(
    kind=kinds.CERTIFICATE_SIGNING_REQUEST,
    strategy=RequestStrategy(
        kinds.CERTIFICATE_SIGNING_REQUEST,
        {
            "status": RequestStatusStrategy(kinds.CERTIFICATE_SIGNING_REQUEST),
            "approval": ApprovalStrategy(kinds.CERTIFICATE_SIGNING_REQUEST),
        },
    ),
    columns=Columns(
        _row,
        NAME,
        AGE,
        Column("SignerName", f"{_SPEC}#signerName"),
        Column("Requestor", f"{_SPEC}#request"),
        Column("RequestedDuration", f"{_SPEC}#expirationSeconds"),
        Column("Condition", "certificatesigningrequeststatus-certificates-v1#conditions"),
    ),
    fields=selectable(Request, _fields),
)
