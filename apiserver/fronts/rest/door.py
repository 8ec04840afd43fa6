"""A REST request at the door: its credentials, whom it acts as, and what it is about."""

from __future__ import annotations

from apiserver.access.access import Access, named
from apiserver.access.attributes import Attributes
from apiserver.access.authentication import Credentials
from apiserver.access.impersonation import PREFIX
from apiserver.access.user import User
from apiserver.fronts.rest.http import Request
from apiserver.fronts.rest.target import Target

PEER_CERTIFICATE = "peer_certificate"
_IMPERSONATE = PREFIX.encode()
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def admit(access: Access, request: Request) -> User:
    """Who acts. Raises 401, 403."""
    state = request.scope.get("state")
    credentials = Credentials(
        (state.get(PEER_CERTIFICATE) if state else None) or b"", request.header("authorization")
    )
    # A group may come several times, so these are read as they are.
    others = [
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in request.scope["headers"]
        if name.lower().startswith(_IMPERSONATE)
    ]
    return access.admit(credentials, others)


def attributes(request: Request, target: Target | None, *, watch: bool) -> Attributes:
    """What a request is about (endpoints/request/requestinfo.go)."""
    if target is None:
        return Attributes(request.method.lower(), path=request.path)
    method, fields, labels = request.method, "", ""
    if watch:
        verb = "watch"
    elif method in ("GET", "HEAD"):
        verb = "list" if target.collection else "get"
    elif method == "DELETE" and target.collection:
        verb = "deletecollection"
    else:
        verb = _VERBS.get(method, "")
    name = target.name
    if verb in ("list", "watch", "deletecollection"):
        fields, labels = request.asked("fieldSelector"), request.asked("labelSelector")
        name = name or named(fields)
    # A request about a namespace is in it.
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
