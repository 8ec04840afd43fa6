"""CertificateSigningRequests (kube-apiserver 1.36, pkg/apis/certificates/validation)."""

from __future__ import annotations

from apiserver.validation import field, names
from machinery.api.errors import Cause
from machinery.api.pb import certificates

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


def request(obj: certificates.CertificateSigningRequest) -> list[Cause]:
    spec = obj.spec
    errors: list[Cause] = []
    if problem := _problem(spec.request):
        errors.append(field.invalid("spec.request", list(spec.request), problem))
    if not spec.usages:
        errors.append(field.required("spec.usages"))
    for index, usage in enumerate(spec.usages):
        if usage not in _USAGES:
            errors.append(field.not_supported(f"spec.usages[{index}]", usage, _USAGES))
        elif usage in spec.usages[:index]:
            errors.append(field.duplicate(f"spec.usages[{index}]", usage))
    if spec.signerName == _LEGACY_SIGNER:
        problem = "the legacy signerName is not allowed via this API version"
        errors.append(field.invalid("spec.signerName", spec.signerName, problem))
    else:
        errors += _signer(spec.signerName)
    if spec.HasField("expirationSeconds") and spec.expirationSeconds < _SECONDS_MIN:
        problem = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(field.invalid("spec.expirationSeconds", spec.expirationSeconds, problem))
    return errors


def change(
    new: certificates.CertificateSigningRequest, old: certificates.CertificateSigningRequest
) -> list[Cause]:
    """What an approval or a status says: verdicts are for good."""
    errors = _conditions(new)
    held = {(row.type, row.status) for row in new.status.conditions}
    for row in old.status.conditions:
        if row.type in _PERMANENT and (row.type, row.status) not in held:
            problem = f"updates may not remove a condition of type {field.quoted(row.type)}"
            errors.append(field.forbidden("status.conditions", problem))
    if old.status.certificate and new.status.certificate != old.status.certificate:
        errors.append(
            field.forbidden("status.certificate", "updates may not set certificate content, it is set")
        )
    return errors


def _conditions(obj: certificates.CertificateSigningRequest) -> list[Cause]:
    errors: list[Cause] = []
    seen: set[str] = set()
    for index, row in enumerate(obj.status.conditions):
        path = f"status.conditions[{index}]"
        if not row.type:
            errors.append(field.required(f"{path}.type"))
        elif row.type in seen:
            errors.append(field.duplicate(f"{path}.type", row.type))
        if not row.status:
            errors.append(field.required(f"{path}.status"))
        elif row.type in _PERMANENT and row.status != "True":
            errors.append(field.not_supported(f"{path}.status", row.status, ["True"]))
        elif row.status not in ("True", "False", "Unknown"):
            errors.append(field.not_supported(f"{path}.status", row.status, ["False", "True", "Unknown"]))
        seen.add(row.type)
    if APPROVED in seen and DENIED in seen:
        problem = "Approved and Denied conditions are mutually exclusive"
        index = [row.type for row in obj.status.conditions].index(DENIED)
        errors.append(field.invalid(f"status.conditions[{index}].type", DENIED, problem))
    return errors


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
        field.invalid(path, domain, f"validating label {field.quoted(part)}: {problem}")
        for part in domain.split(".")
        for problem in names.dns_label(part)
    ]
    if len(domain.split(".")) < 2:
        errors.append(
            field.invalid(path, domain, "should be a domain with at least two segments separated by dots")
        )
    errors += [
        field.invalid(path, rest, f"validating label {field.quoted(part)}: {problem}")
        for part in rest.split(".")
        for problem in names.dns_subdomain(part)
    ]
    if len(name.encode()) > _PATH_LENGTH_MAX:
        errors.append(field.too_long(path, _PATH_LENGTH_MAX))
    return errors


def _problem(data: bytes) -> str:
    """Why this is no request that its maker has signed, or ""."""
    # 80 ms to import, and nobody asks for it in most clusters.
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
