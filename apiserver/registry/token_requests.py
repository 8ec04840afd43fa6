"""The subresource serviceaccounts/token: issue a token for an account.

Source: kube-apiserver 1.36, pkg/registry/core/serviceaccount/storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nominee.apiserver.access.service_accounts import ISSUER, Claims
from nominee.apiserver.objects.cached_object import CachedObject, never_stored
from nominee.apiserver.validation import field
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import GroupKind, GroupResource
from nominee.machinery.api.kinds import AnyKind, Kind
from nominee.pb.k8s.io.api.authentication.v1 import generated_pb2 as authentication

if TYPE_CHECKING:
    from nominee.apiserver.access.service_accounts import ServiceAccountTokens
    from nominee.apiserver.admission.interface import Lookup

GROUP = "authentication.k8s.io"
TOKEN_REQUEST = Kind(
    GROUP, "v1", "TokenRequest", "tokenrequests", authentication.TokenRequest, authentication.TokenRequest
)
SECONDS, SECONDS_MIN, SECONDS_MAX = 3600, 600, 1 << 32
_BOUND: dict[str, AnyKind] = {"Pod": kinds.POD, "Secret": kinds.SECRET, "Node": kinds.NODE}


def prepare(body: Any, namespace: str, name: str) -> None:
    """Set defaults of a TokenRequest in place, and validate it.

    Raises: StatusError 400, 422.
    """
    if body.metadata.name not in ("", name):
        raise errors.bad_request("the name of the object does not match the name on the URL")
    body.metadata.namespace, body.metadata.name = namespace, name
    spec = body.spec
    if not spec.HasField("expirationSeconds"):
        spec.expirationSeconds = SECONDS
    if not spec.audiences:
        spec.audiences.append(ISSUER)
    problem = ""
    if spec.expirationSeconds < SECONDS_MIN:
        problem = "may not specify a duration less than 10 minutes"
    elif spec.expirationSeconds > SECONDS_MAX:
        problem = "may not specify a duration larger than 2^32 seconds"
    if problem:
        cause = field.invalid("spec.expirationSeconds", spec.expirationSeconds, problem)
        raise errors.invalid(GroupKind(GROUP, "TokenRequest"), "", [cause])


async def issue(
    tokens: ServiceAccountTokens, lookup: Lookup, body: Any, now: float, token_id: str
) -> CachedObject:
    """Return the TokenRequest with its token.

    Raises: StatusError 400, 404, 409.
    """
    namespace, name, spec = body.metadata.namespace, body.metadata.name, body.spec
    account = await lookup.find(kinds.SERVICE_ACCOUNT, namespace, name)
    if account is None:
        raise errors.not_found(kinds.SERVICE_ACCOUNT, name)
    bound = (
        await _bound(lookup, spec.boundObjectRef, namespace, name) if spec.HasField("boundObjectRef") else []
    )
    expires = now + spec.expirationSeconds
    claims = Claims(
        namespace, name, account.message.metadata.uid, list(spec.audiences), now, expires, token_id, bound
    )
    body.status.token = tokens.issue(claims)
    body.status.expirationTimestamp.seconds = int(expires)
    body.metadata.creationTimestamp.seconds = int(now)
    return never_stored(TOKEN_REQUEST, body, namespace, name)


async def _bound(lookup: Lookup, reference: Any, namespace: str, account: str) -> list[tuple[str, str, str]]:
    """Return the objects that the token is bound to, a pod's node included."""
    kind = _BOUND.get(reference.kind) if reference.apiVersion == "v1" else None
    if kind is None:
        raise errors.bad_request(
            f'cannot bind token for serviceaccount "{account}" to type'
            f" {reference.apiVersion}/{reference.kind}"
        )
    found = await lookup.find(kind, namespace if kind.namespaced else "", reference.name)
    if found is None:
        raise errors.not_found(kind, reference.name)
    uid = found.message.metadata.uid
    if reference.uID and reference.uID != uid:
        raise errors.conflict(
            GroupResource("", reference.kind),
            reference.name,
            f"the UID in the bound object reference ({reference.uID}) does not match the UID in record."
            " The object might have been deleted and then recreated",
        )
    bound = [(reference.kind.lower(), reference.name, uid)]
    if kind is kinds.POD:
        spec = found.message.spec
        if spec.serviceAccountName != account:
            raise errors.bad_request(
                f'cannot bind token for serviceaccount "{account}" to pod running with different'
                " serviceaccount name."
            )
        node = await lookup.find(kinds.NODE, "", spec.nodeName) if spec.nodeName else None
        if node is not None:
            bound.append(("node", spec.nodeName, node.message.metadata.uid))
    return bound
