"""The credentials, verb and attributes of a REST request."""

from __future__ import annotations

from nominee.apiserver.access.authentication import Credentials
from nominee.apiserver.access.impersonation import PREFIX, Headers
from nominee.apiserver.chain.request import Verb
from nominee.apiserver.fronts.rest.http.messages import Request
from nominee.apiserver.fronts.rest.http.target import Target
from nominee.apiserver.objects.attributes import Attributes, selected

PEER_CERTIFICATE = "peer_certificate"
_IMPERSONATE = PREFIX.encode()
_VERBS: dict[str, Verb] = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def credentials(request: Request) -> Credentials:
    """Return the client's certificate and its Authorization header."""
    state = request.scope.get("state")
    certificate = (state.get(PEER_CERTIFICATE) if state else None) or b""
    return Credentials(certificate, request.header("authorization"))


def impersonation(request: Request) -> Headers:
    """Return the Impersonate-* headers, each as often as it was sent."""
    return [
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in request.scope["headers"]
        if name.lower().startswith(_IMPERSONATE)
    ]


def verb_of(request: Request, target: Target | None) -> Verb:
    """Return the verb of RBAC; "" for a method that has none."""
    collection = target is not None and target.collection
    if request.method not in ("GET", "HEAD"):
        if request.method == "DELETE" and collection:
            return "deletecollection"
        return _VERBS.get(request.method, "")
    if target is not None and _is_watch(request, target):
        return "watch"
    return "list" if collection else "get"


def _is_watch(request: Request, target: Target) -> bool:
    """Report whether a request is a watch of stored objects."""
    if request.method != "GET" or target.kind is None or target.subresource:
        return False
    return target.watch or (target.collection and request.flag("watch"))


def attributes(request: Request, target: Target | None, verb: Verb) -> Attributes:
    """Return the attributes of a request (endpoints/request/requestinfo.go)."""
    if target is None:
        return Attributes(request.method.lower(), path=request.path)
    fields, labels = "", ""
    name = target.name
    if verb in ("list", "watch", "deletecollection"):
        fields, labels = request.query_value("fieldSelector"), request.query_value("labelSelector")
        name = name or selected(fields)
    # A request for a Namespace is in that namespace.
    about = not target.group and target.resource == "namespaces"
    return Attributes(
        verb,
        target.resource,
        target.group,
        target.version,
        target.subresource,
        target.name if about else target.namespace,
        name,
        "",
        fields,
        labels,
    )
