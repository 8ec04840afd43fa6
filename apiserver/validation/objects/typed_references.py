"""References to objects of any kind, as Ingresses and IngressClasses have them (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.validation import field, names
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core


def typed_reference(path: str, reference: core.TypedLocalObjectReference) -> Iterator[Cause]:
    """Check a reference within a namespace (validateIngressTypedLocalObjectReference)."""
    if reference.HasField("apiGroup"):
        yield from field.check(f"{path}.apiGroup", reference.apiGroup, names.dns_subdomain)
    yield from segment(f"{path}.kind", reference.kind, "kind is required")
    yield from segment(f"{path}.name", reference.name, "name is required")


def segment(path: str, name: str, missing: str = "") -> list[Cause]:
    """Check a required name that is part of an object's path."""
    if not name:
        return [field.required(path, missing)]
    return field.check(path, name, names.path_segment)
