"""The attributes of a request, which authorizers and flow schemas match.

Source: kube-apiserver 1.36, endpoints/request (requestinfo.go) and filters/authorization.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from nominee.apiserver.objects.user import ADMIN, User


class Attributes(NamedTuple):
    """The attributes of one request. For a non-resource path only `verb` and `path` are set.

    `verb` of a non-resource request: get, post, ... `verb` of a resource request: get, list, watch, create,
    update, patch, delete, deletecollection, or one that only access reviews name (impersonate, bind,
    escalate, use). Selectors are as the client sent them.
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


@dataclass(frozen=True, slots=True)
class Origin:
    """The user of a request and its attributes, which are None when the server itself writes."""

    user: User = ADMIN
    attributes: Attributes | None = None


SERVER = Origin()
"""The origin of what the server itself writes."""


def selected(field_selector: str, field: str = "metadata.name") -> str:
    """Return the value that a field selector wants of a field, "" where it wants none."""
    for term in field_selector.split(","):
        key, equals, value = term.partition("=")
        if key == field and equals:
            return value.removeprefix("=")
    return ""
