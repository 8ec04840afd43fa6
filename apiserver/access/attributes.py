"""What a request is about, as authorizers and priority levels see it.

Source: kube-apiserver 1.36, endpoints/request (requestinfo.go) and filters/authorization.go.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class Attributes(NamedTuple):
    """One request. For a path that is about no resource only `verb` (get, post, ...) and `path` are set.

    `verb` of a resource request: get, list, watch, create, update, patch, delete, deletecollection, or
    one that only reviews ask about (impersonate, bind, escalate, use). Selectors are as the client sent them.
    """

    verb: str
    resource: str = ""
    group: str = ""
    version: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    field_selector: str = ""
    label_selector: str = ""

    @property
    def is_resource(self) -> bool:
        return not self.path


CURRENT_ATTRIBUTES: ContextVar[Attributes | None] = ContextVar("attributes", default=None)
"""Of the request that this task serves; None where the server itself writes. The fronts set it."""
