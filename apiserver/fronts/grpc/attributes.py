"""The attributes of a gRPC request for authorization, and its width for flow control."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nominee.apiserver.flow_control.controller import FlowControl
from nominee.apiserver.objects.attributes import Attributes, selected
from nominee.apiserver.objects.list_options import EXACT
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.pb.nominee_api.v1 import api_pb2 as api

COLLECTION_VERBS = ("list", "watch", "deletecollection")
_LISTS = ("list", "deletecollection")


def attributes(verb: str, request: Any, kind: AnyKind | None) -> Attributes:
    """Return the attributes of a request; `kind` is None where the resource is not served."""
    target: api.Target = request.target
    name, subresource, fields = target.name, target.subresource, ""
    # A role in a namespace must not allow access to cluster-scoped objects. A request for a Namespace is in
    # that namespace.
    namespace = target.namespace if kind is None or kind.namespaced else ""
    if verb in COLLECTION_VERBS:
        # The response has what the selector selects: a name in the target must not allow access to the rest.
        fields = getattr(request, "list", request).field_selector
        name, subresource = selected(fields), ""
    else:
        if kind is kinds.NAMESPACE:
            namespace = name
        if verb == "create" and not subresource:
            # Authorizers do not see a new object's name.
            name = ""
    if kind is not None:
        return Attributes(
            verb, kind.plural, kind.group, kind.version, subresource, namespace, name, "", fields
        )
    return Attributes(
        verb, target.resource, target.group, target.version, subresource, namespace, name, "", fields
    )


def width(control: FlowControl, request: Any, asked: Attributes) -> Callable[[int], int] | None:
    """Return the function of a list's seats for `FlowControl.arrive`; None for one seat."""
    if asked.verb not in _LISTS or asked.field_selector.startswith("metadata.name="):
        return None
    listing = getattr(request, "list", request)
    version, limit = listing.resource_version, listing.limit
    exact = listing.resource_version_match == EXACT or (limit and version not in ("", "0"))
    return control.list_seats(
        asked,
        limit=limit,
        from_cache=not exact and not getattr(listing, "continue"),
        selects=bool(listing.field_selector or listing.label_selector),
    )
