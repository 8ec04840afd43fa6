"""Number resource names, one numbering for the whole process, as strings are interned.

Columns: 0 cpu (milli-units), 1 memory (bytes), 2 ephemeral-storage (bytes), then scalar resources (extended
resources, hugepages, attachable volumes) in order of first appearance. "pods" has no column: it is counted.
"""

from __future__ import annotations

CPU = 0
MEMORY = 1
EPHEMERAL_STORAGE = 2
FIRST_SCALAR = 3
COLUMNS_MAX = 4096

_names: list[str] = ["cpu", "memory", "ephemeral-storage"]
_columns: dict[str, int] = {name: column for column, name in enumerate(_names)}
_NATIVE_DOMAIN = "kubernetes.io/"
_REQUESTS_PREFIX = "requests."


def is_extended(name: str) -> bool:
    """Return whether the resource has a domain that is not Kubernetes' own and no `requests.` prefix."""
    if "/" not in name or _NATIVE_DOMAIN in name:
        return False
    return not name.startswith(_REQUESTS_PREFIX)


def is_scalar(name: str) -> bool:
    """Return whether a node counts the resource beside cpu, memory, ephemeral-storage and pods.

    Source: kube-scheduler 1.36, scheduler util, IsScalarResourceName.
    """
    return (
        is_extended(name)
        or name.startswith("hugepages-")
        or (_NATIVE_DOMAIN in name)
        or name.startswith("attachable-volumes-")
    )


def column_of(name: str) -> int | None:
    """Return the column of a resource name, numbered now if it is new; None for one that is not counted.

    Raises:
        ValueError: there are too many names.
    """
    column = _columns.get(name)
    if column is None and is_scalar(name):
        if len(_names) >= COLUMNS_MAX:
            raise ValueError(f"more than {COLUMNS_MAX} resource names; the last is {name!r}")
        column = _columns[name] = len(_names)
        _names.append(name)
    return column


def name_of(column: int) -> str:
    """Return the resource of a column."""
    return _names[column]


def count() -> int:
    """Return how many columns there are now."""
    return len(_names)
