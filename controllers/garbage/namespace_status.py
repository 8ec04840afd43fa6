"""What a namespace that is being deleted says of itself. Pure.

Source: kube-controller-manager 1.36, pkg/controller/namespace/deletion (conditions and their messages).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from machinery.api.objects import set_condition
from machinery.api.pb import core, meta

CONTENT_FINALIZER: Final = "kubernetes"
# (type, reason, message) of the conditions whose status is False as long as all goes well.
_DISCOVERY: Final = (
    "NamespaceDeletionDiscoveryFailure",
    "ResourcesDiscovered",
    "All resources successfully discovered",
)
_PARSING: Final = (
    "NamespaceDeletionGroupVersionParsingFailure",
    "ParsedGroupVersions",
    "All legacy kube types successfully parsed",
)
_DELETED: Final = (
    "NamespaceDeletionContentFailure",
    "ContentDeleted",
    "All content successfully deleted, may be waiting on finalization",
)
_REMOVED: Final = ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed")
_FINALIZED: Final = (
    "NamespaceFinalizersRemaining",
    "ContentHasNoFinalizers",
    "All content-preserving finalizers finished",
)


def _condition(row: tuple[str, str, str], status: str = "False") -> core.NamespaceCondition:
    return core.NamespaceCondition(type=row[0], reason=row[1], message=row[2], status=status)


def conditions(
    remaining: Mapping[str, int], finalizers: Mapping[str, int], failure: str = ""
) -> Sequence[core.NamespaceCondition]:
    """The conditions for what is left, by resource ("pods."), and what holds it, by finalizer."""
    failed = _condition((_DELETED[0], "ContentDeletionFailed", failure), "True")
    rows = [_condition(_DISCOVERY), _condition(_PARSING), failed if failure else _condition(_DELETED)]
    if remaining:
        left = ", ".join(
            f"{name} has {count} resource instances" for name, count in sorted(remaining.items())
        )
        row = (_REMOVED[0], "SomeResourcesRemain", f"Some resources are remaining: {left}")
        rows.append(_condition(row, "True"))
    else:
        rows.append(_condition(_REMOVED))
    if finalizers:
        held = ", ".join(
            f"{name} in {count} resource instances" for name, count in sorted(finalizers.items())
        )
        row = (
            _FINALIZED[0],
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {held}",
        )
        rows.append(_condition(row, "True"))
    else:
        rows.append(_condition(_FINALIZED))
    return rows


def with_conditions(
    namespace: core.Namespace, rows: Sequence[core.NamespaceCondition], now: meta.Time
) -> core.Namespace | None:
    """The namespace with these conditions, or None where it has them."""
    new = core.Namespace()
    new.CopyFrom(namespace)
    changes = [set_condition(new.status.conditions, row, now) for row in rows]
    if namespace.status.phase != "Terminating":
        new.status.phase = "Terminating"
        return new
    return new if any(changes) else None


def without_content_finalizer(namespace: core.Namespace) -> core.Namespace | None:
    """The namespace as it is finalized, or None where that is done."""
    if CONTENT_FINALIZER not in namespace.spec.finalizers:
        return None
    new = core.Namespace()
    new.CopyFrom(namespace)
    new.spec.finalizers.remove(CONTENT_FINALIZER)
    return new
