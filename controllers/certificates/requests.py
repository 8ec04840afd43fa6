"""The names and usages of a certificate signing request, and the rules of its signer. Pure.

Source: kube-controller-manager 1.36, pkg/controller/certificates (approver, signer) and
pkg/apis/certificates (ValidateKubeletClientCSR, ValidateKubeletServingCSR).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import certificates

if TYPE_CHECKING:
    # cryptography is imported with the first request: 80 ms that most clusters never need.
    from cryptography import x509

CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
LEGACY: Final = "kubernetes.io/legacy-unknown"
NODE_USER_PREFIX: Final = "system:node:"
NODES_GROUP: Final = "system:nodes"

Subresource = Literal["selfnodeclient", "nodeclient"]
"""The subresource of certificatesigningrequests that a user must be allowed to create for its approval."""

_APPROVALS: Final[dict[Subresource, str]] = {
    "selfnodeclient": "Auto approving self kubelet client certificate after SubjectAccessReview.",
    "nodeclient": "Auto approving kubelet client certificate after SubjectAccessReview.",
}


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a certificate would have."""

    common_name: str = ""
    organizations: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


def parse(request: certificates.CertificateSigningRequest) -> tuple[x509.CertificateSigningRequest, Names]:
    """Return the parsed request and its names. Raises: ValueError where it is not a request."""
    from cryptography import x509

    found = x509.load_pem_x509_csr(request.spec.request)
    return found, _names_of(found)


def _names_of(request: x509.CertificateSigningRequest) -> Names:
    from cryptography import x509

    common = [row.value for row in request.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    groups = request.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
    try:
        found = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        found = x509.SubjectAlternativeName([])
    return Names(
        common_name=str(common[-1]) if common else "",
        organizations=tuple(str(row.value) for row in groups),
        dns=tuple(found.get_values_for_type(x509.DNSName)),
        emails=tuple(found.get_values_for_type(x509.RFC822Name)),
        addresses=tuple(str(address) for address in found.get_values_for_type(x509.IPAddress)),
        uris=tuple(found.get_values_for_type(x509.UniformResourceIdentifier)),
    )


def has(request: certificates.CertificateSigningRequest, *types: str) -> bool:
    """Report whether a request has a condition of one of these types."""
    return any(row.type in types for row in request.status.conditions)


def waits_for_approval(request: certificates.CertificateSigningRequest) -> bool:
    return not request.status.certificate and not has(request, "Approved", "Denied")


def waits_for_certificate(request: certificates.CertificateSigningRequest) -> bool:
    """Report whether a request is approved, and neither signed nor failed."""
    return (
        not request.status.certificate
        and has(request, "Approved")
        and not has(request, "Denied")
        and not any(row.type == "Failed" and row.status == "True" for row in request.status.conditions)
        and request.spec.signerName in _RULES
    )


def approve(
    request: certificates.CertificateSigningRequest, subresource: Subresource
) -> certificates.CertificateSigningRequest:
    """Return the request with the condition Approved, since its user may create the subresource."""
    new = copy_of(request)
    message = _APPROVALS[subresource]
    new.status.conditions.add(type="Approved", status="True", reason="AutoApproved", message=message)
    return new


def fail(
    request: certificates.CertificateSigningRequest, message: str
) -> certificates.CertificateSigningRequest:
    """Return the request with the condition Failed, since its signer refuses it."""
    new = copy_of(request)
    reason = "SignerValidationFailure"
    new.status.conditions.add(type="Failed", status="True", reason=reason, message=message)
    return new


def permissions(spec: certificates.CertificateSigningRequestSpec, names: Names) -> list[Subresource]:
    """Return the subresources of which the request's user must be allowed to create one.

    The list is empty where a person must approve the request.
    """
    if spec.signerName != KUBELET_CLIENT or kubelet_client_problem(names, spec.usages):
        return []
    return ["selfnodeclient", "nodeclient"] if spec.username == names.common_name else ["nodeclient"]


def problem(spec: certificates.CertificateSigningRequestSpec, names: Names) -> str:
    """Return why the request's signer refuses it, "" where it does not."""
    return _RULES[spec.signerName](names, spec.usages)


def kubelet_client_problem(names: Names, usages: Iterable[str]) -> str:
    """Return why this is no request of a kubelet's client certificate, "" where it is one."""
    if names.organizations != (NODES_GROUP,):
        return "subject organization is not system:nodes"
    rows = {"DNS": names.dns, "Email": names.emails, "IP": names.addresses, "URI": names.uris}
    return _alternatives_problem(rows) or _node_problem(names, usages, "client auth")


def _kubelet_serving_problem(names: Names, usages: Iterable[str]) -> str:
    if names.organizations != (NODES_GROUP,):
        return "subject organization is not system:nodes"
    if not names.dns and not names.addresses:
        return "DNS or IP subjectAltName is required"
    rows = {"Email": names.emails, "URI": names.uris}
    return _alternatives_problem(rows) or _node_problem(names, usages, "server auth")


def _alternatives_problem(rows: Mapping[str, Collection[str]]) -> str:
    return next((f"{kind} subjectAltNames are not allowed" for kind, found in rows.items() if found), "")


def _node_problem(names: Names, usages: Iterable[str], purpose: str) -> str:
    if not names.common_name.startswith(NODE_USER_PREFIX):
        return "subject common name does not begin with system:node:"
    required = {"digital signature", "key encipherment", purpose}
    if set(usages) not in (required, required - {"key encipherment"}):
        return f"usages did not match [{' '.join(sorted(required))}]"
    return ""


def _client_problem(_: Names, usages: Iterable[str]) -> str:
    asked = list(usages)
    for usage in asked:
        if usage not in ("digital signature", "key encipherment", "client auth"):
            return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in asked else "missing required usage for client certificate: client auth"


_RULES: Final[dict[str, Callable[[Names, Iterable[str]], str]]] = {
    CLIENT: _client_problem,
    KUBELET_CLIENT: kubelet_client_problem,
    KUBELET_SERVING: _kubelet_serving_problem,
    LEGACY: lambda _names, _usages: "",
}
