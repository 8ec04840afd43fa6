"""What a gRPC request is about: for authorizers, for flow control, and as it is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nominee_api.v1 import api_pb2 as api

from apiserver.access.access import named
from apiserver.access.attributes import Attributes
from apiserver.chain.metrics import RequestLabels
from apiserver.flow_control.controller import FlowControl
from apiserver.objects.list_options import EXACT
from machinery.api import kinds
from machinery.api.kinds import Kind

_OF_COLLECTIONS = ("list", "watch", "deletecollection")
_LISTS = ("list", "deletecollection")


def attributes(verb: str, request: Any, kind: Kind[Any] | None) -> Attributes:
    """`verb` as authorizers call it; `kind` is None where nothing of that name is served."""
    target: api.Target = request.target
    name, subresource, fields = target.name, target.subresource, ""
    # What is in no namespace must not be opened by what somebody may do in one. A request about a
    # namespace is in it.
    namespace = target.namespace if kind is None or kind.namespaced else ""
    if verb in _OF_COLLECTIONS:
        # What is answered is what is selected: a name beside that must not open the rest.
        fields = getattr(request, "list", request).field_selector
        name, subresource = named(fields), ""
    else:
        if kind is kinds.NAMESPACE:
            namespace = name
        if verb == "create" and not subresource:
            # A new object has a name only for who creates it.
            name = ""
    if kind is not None:
        return Attributes(
            verb, kind.plural, kind.group, kind.version, subresource, namespace, name, "", fields
        )
    return Attributes(
        verb, target.resource, target.group, target.version, subresource, namespace, name, "", fields
    )


def width(control: FlowControl, request: Any, asked: Attributes) -> Callable[[int], int] | None:
    """How many seats a list takes, for `FlowControl.arrive`; None is one."""
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


def labels(verb: str, target: api.Target, kind: Kind[Any] | None) -> RequestLabels:
    """`verb` as metrics call it. Whatever a client makes up is counted as one."""
    if kind is None:
        return RequestLabels(verb, "", "", "", "")
    subresource = target.subresource
    if subresource and subresource not in kind.subresources:
        subresource = ""
    return RequestLabels(verb, kind.group, kind.version, kind.plural, subresource)
