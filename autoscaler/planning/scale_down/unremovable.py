"""Reasons why nodes cannot be removed. Source: cluster-autoscaler 1.36, simulator and unremovable nodes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Upstream's UnremovableReason."""

    SCALE_DOWN_DISABLED = "ScaleDownDisabledAnnotation"
    SCALE_DOWN_UNREADY_DISABLED = "ScaleDownUnreadyDisabled"
    NOT_AUTOSCALED = "NotAutoscaled"
    NOT_UNNEEDED_LONG_ENOUGH = "NotUnneededLongEnough"
    NOT_UNREADY_LONG_ENOUGH = "NotUnreadyLongEnough"
    MIN_SIZE_REACHED = "NodeGroupMinSizeReached"
    MINIMAL_RESOURCE_LIMIT_EXCEEDED = "MinimalResourceLimitExceeded"
    CURRENTLY_BEING_DELETED = "CurrentlyBeingDeleted"
    NOT_UNDERUTILIZED = "NotUnderutilized"
    RECENTLY_UNREMOVABLE = "RecentlyUnremovable"
    NO_PLACE_TO_MOVE_PODS = "NoPlaceToMovePods"
    BLOCKED_BY_POD = "BlockedByPod"
    BLOCKED_BY_ON_COMPLETION_POD = "BlockedByOnCompletionPod"
    UNEXPECTED_ERROR = "UnexpectedError"
    NO_NODE_INFO = "NoNodeInfo"


@dataclass(frozen=True, slots=True)
class Unremovable:
    """A reason; `blocked_by` is `pod/Reason` of the pod that blocks the removal."""

    reason: Reason
    blocked_by: str = ""

    def __str__(self) -> str:
        return f"{self.reason}({self.blocked_by})" if self.blocked_by else str(self.reason)


class UnremovableNodes:
    """The reasons of this loop, and the nodes that are not simulated again for a while.

    Times are seconds of `Clock.monotonic`.
    """

    def __init__(self) -> None:
        self.reasons: dict[str, Unremovable] = {}
        self._recheck_after: dict[str, float] = {}

    def update(self, nodes: Collection[str], now: float) -> None:
        """Begin a loop with these nodes: clear the reasons, and drop timeouts that are over."""
        self.reasons = {}
        self._recheck_after = {
            name: until for name, until in self._recheck_after.items() if name in nodes and until > now
        }

    def add(self, node: str, reason: Unremovable) -> None:
        """Record why a node cannot be removed; it is simulated again in the next loop."""
        self.reasons[node] = reason

    def add_timeout(self, node: str, reason: Unremovable, until: float) -> None:
        """Record why a node cannot be removed; it is not simulated again before `until`."""
        self.add(node, reason)
        self._recheck_after[node] = until

    def is_recent(self, node: str) -> bool:
        """Report whether the node's timeout is not over."""
        return node in self._recheck_after

    def recheck_seconds(self, now: float) -> dict[str, float]:
        """Return in how many seconds each node that was found unremovable is simulated again."""
        return {name: max(until - now, 0.0) for name, until in sorted(self._recheck_after.items())}
