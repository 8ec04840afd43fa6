"""The kinds that this API server serves: those of an API that is off by default need their feature gate.

Set once, when the process starts; until then no such kind is served.
"""

from __future__ import annotations

from machinery.api import kinds
from machinery.api.kinds import AnyKind
from machinery.features.gates import Gates

_gates_on: set[str] = set()


def configure(gates: Gates) -> None:
    """Serve the kinds whose gate is on, besides those without a gate."""
    _gates_on.clear()
    _gates_on.update(kind.gate for kind in kinds.KINDS if kind.gate and gates.enabled(kind.gate))


def is_served(kind: AnyKind) -> bool:
    return not kind.gate or kind.gate in _gates_on


def by_resource(group: str, version: str, plural: str) -> AnyKind | None:
    """Return the served kind of a group, version and resource, or None."""
    kind = kinds.by_resource(group, version, plural)
    return kind if kind is not None and is_served(kind) else None


def all_kinds() -> list[AnyKind]:
    """Return the served kinds in the order of the table."""
    return [kind for kind in kinds.KINDS if is_served(kind)]
