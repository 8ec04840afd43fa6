"""The kinds that this API server serves: those of an API that is off by default need their feature gate.

Set once, when the process starts; until then no such kind is served.
"""

from __future__ import annotations

from contextvars import ContextVar

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.features.gates import Gates

_gates_on: set[str] = set()
_of_task: ContextVar[frozenset[str] | None] = ContextVar("gates_on", default=None)
"""The gates of the running task's API server; only in a simulation, which may have several."""


def configure(gates: Gates, *, owns_interpreter: bool = True) -> None:
    """Serve the kinds whose gate is on, besides those without a gate.

    Without `owns_interpreter` this is for the calling task and those that it starts.
    """
    found = frozenset(kind.gate for kind in kinds.KINDS if kind.gate and gates.enabled(kind.gate))
    if not owns_interpreter:
        _of_task.set(found)
        return
    _gates_on.clear()
    _gates_on.update(found)


def is_served(kind: AnyKind) -> bool:
    """Report whether a kind is served."""
    if not kind.gate:
        return True
    of_task = _of_task.get()
    return kind.gate in (_gates_on if of_task is None else of_task)


def by_resource(group: str, version: str, plural: str) -> AnyKind | None:
    """Return the served kind of a group, version and resource, or None."""
    kind = kinds.by_resource(group, version, plural)
    return kind if kind is not None and is_served(kind) else None


def all_kinds() -> list[AnyKind]:
    """Return the served kinds in the order of the table."""
    return [kind for kind in kinds.KINDS if is_served(kind)]
