"""What a client is told of an API that has a successor, whatever it asks of it.

Source: the APILifecycleDeprecated of Kubernetes 1.36's types, and endpoints/deprecation for the words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apiserver.fronts.rest.target import Target
from machinery.api import kinds
from machinery.api.kinds import Kind
from machinery.features.gates import Version

_SUCCESSORS: Mapping[Kind[Any], tuple[Version, Kind[Any]]] = {
    kinds.ENDPOINTS: (Version(1, 33), kinds.ENDPOINT_SLICE),
}


def warnings(target: Target | None, version: Version) -> Iterator[str]:
    """The texts of its Warning headers."""
    kind = target.kind if target is not None else None
    if kind is None or kind not in _SUCCESSORS:
        return
    since, successor = _SUCCESSORS[kind]
    if version >= since:
        yield (
            f"{kind.api_version} {kind.kind} is deprecated in v{since}+;"
            f" use {successor.api_version} {successor.kind}"
        )
