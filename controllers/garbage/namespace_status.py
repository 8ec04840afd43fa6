"""The conditions of a namespace that is being deleted, and its remaining content. Pure.

Source: kube-controller-manager 1.36, pkg/controller/namespace/deletion (conditions and their messages).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from google.protobuf.message import Message

from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import copy_of, get_condition, metadata_of, set_condition
from nominee.machinery.api.pb import core, meta

CONTENT_FINALIZER: Final = "kubernetes"
RECHECK_SECONDS_MIN, RECHECK_SECONDS_MAX = 1.0, 15.0
# (type, reason, message) of the conditions that are False unless the deletion fails.
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


class RemainingContent:
    """The objects of a namespace that were not deleted at once."""

    def __init__(self) -> None:
        self.by_resource: Counter[str] = Counter()
        self.by_finalizer: Counter[str] = Counter()
        self.failure = ""
        self._grace_seconds = 0.0

    def add(self, kind: Kind[Message], obj: Message, now: float) -> None:
        """Count an object that is still there; `now` is in seconds since the epoch."""
        metadata = metadata_of(obj)
        self.by_resource[f"{kind.plural}.{kind.group}"] += 1
        self.by_finalizer.update(metadata.finalizers)
        grace = 0.0
        if metadata.HasField("deletionTimestamp"):
            grace = metadata.deletionTimestamp.seconds - now
        elif isinstance(obj, core.Pod) and obj.spec.nodeName:
            grace = float(obj.spec.terminationGracePeriodSeconds)
        self._grace_seconds = max(self._grace_seconds, grace)

    def fail(self, failure: str) -> None:
        """Record why a deletion failed; the first failure is reported."""
        self.failure = self.failure or failure

    def conditions(self) -> Sequence[core.NamespaceCondition]:
        return conditions(self.by_resource, self.by_finalizer, self.failure)

    def recheck_seconds(self) -> float | None:
        """Return after how many seconds to look again, half of the longest grace period; None when empty."""
        if not self.by_resource:
            return None
        return min(max(self._grace_seconds / 2, RECHECK_SECONDS_MIN), RECHECK_SECONDS_MAX)


def _condition(row: tuple[str, str, str], status: str = "False") -> core.NamespaceCondition:
    return core.NamespaceCondition(type=row[0], reason=row[1], message=row[2], status=status)


def conditions(
    remaining: Mapping[str, int], finalizers: Mapping[str, int], failure: str = ""
) -> Sequence[core.NamespaceCondition]:
    """Return the conditions for counts of remaining objects by resource ("pods.") and by finalizer."""
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
    """Return the terminating namespace with these conditions, None where it has them."""
    new = copy_of(namespace)
    changes = [set_condition(new.status.conditions, row, now) for row in rows]
    if namespace.status.phase != "Terminating":
        new.status.phase = "Terminating"
        return new
    return new if any(changes) else None


def is_begun(namespace: core.Namespace) -> bool:
    """Report whether the content of a terminating namespace has been looked at."""
    return get_condition(namespace.status.conditions, _REMOVED[0]) is not None


def without_content_finalizer(namespace: core.Namespace) -> core.Namespace | None:
    """Return the namespace without its content finalizer, None where it does not have it."""
    if CONTENT_FINALIZER not in namespace.spec.finalizers:
        return None
    new = copy_of(namespace)
    new.spec.finalizers.remove(CONTENT_FINALIZER)
    return new
