"""Which kinds this API server serves: those of an API that is not there by default need its gate.

Set once, when the process starts; until then no such kind is served.
"""

from __future__ import annotations

from typing import Any

from machinery.api import kinds
from machinery.api.kinds import Kind
from machinery.features.gates import Gates

_gates_on: set[str] = set()


def configure(gates: Gates) -> None:
    """From now on kinds whose gate is on are served beside those that need none."""
    _gates_on.clear()
    _gates_on.update(kind.gate for kind in kinds.KINDS if kind.gate and gates.enabled(kind.gate))


def is_served(kind: Kind[Any]) -> bool:
    return not kind.gate or kind.gate in _gates_on


def by_resource(group: str, version: str, plural: str) -> Kind[Any] | None:
    """The served kind of a request's group, version and plural, or None."""
    kind = kinds.by_resource(group, version, plural)
    return kind if kind is not None and is_served(kind) else None


def all_kinds() -> list[Kind[Any]]:
    """In the order of the table."""
    return [kind for kind in kinds.KINDS if is_served(kind)]
