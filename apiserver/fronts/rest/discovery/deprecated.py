"""Warnings about requests to a deprecated API.

Source: the APILifecycleDeprecated of Kubernetes 1.36's types, and endpoints/deprecation for the text.
"""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.fronts.rest.discovery import groups as discovery
from nominee.apiserver.fronts.rest.http.target import Target
from nominee.apiserver.kinds.table import rules_of
from nominee.machinery.features.gates import Version


def warnings(target: Target | None, version: Version) -> Iterator[str]:
    """Yield the texts of a request's Warning headers."""
    if target is None:
        return
    answered = discovery.virtual(target.group, target.version, target.resource)
    if answered is not None and answered.deprecated:
        yield f"{answered.api_version} {answered.kind} is deprecated in v{answered.deprecated}+"
    kind = target.kind
    found = rules_of(kind).deprecation if kind is not None else None
    if kind is None or found is None or version < found.since:
        return
    successor = found.successor
    yield (
        f"{kind.api_version} {kind.kind} is deprecated in v{found.since}+;"
        f" use {successor.api_version} {successor.kind}"
    )
