"""Why nodes stay, and which of these are not looked at again for a while."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Source: cluster-autoscaler 1.36, simulator."""

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
    """`blocked` is `pod/Reason` of the pod that keeps the node."""

    reason: Reason
    blocked: str = ""

    def __str__(self) -> str:
        return f"{self.reason}({self.blocked})" if self.blocked else str(self.reason)


class UnremovableNodes:
    """Reasons of this loop, and until when some nodes are not tried again."""

    def __init__(self) -> None:
        self.reasons: dict[str, Unremovable] = {}
        self._until: dict[str, float] = {}

    def begin(self, nodes: Collection[str], now: float) -> None:
        """A new loop."""
        self.reasons = {}
        self._until = {n: until for n, until in self._until.items() if n in nodes and until > now}

    def add(self, node: str, reason: Unremovable) -> None:
        self.reasons[node] = reason

    def add_until(self, node: str, reason: Unremovable, until: float) -> None:
        self.add(node, reason)
        self._until[node] = until

    def is_recent(self, node: str) -> bool:
        return node in self._until
