"""The result of one loop of the autoscaler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from nominee.autoscaler.orders import ErrorType
from nominee.autoscaler.planning.objects.events import Events
from nominee.autoscaler.planning.scale_up.plan import ScaleUpPlan, ScaleUpResult
from nominee.machinery.api.objects import key_of
from nominee.machinery.runtime.clock import Clock, Moment

_PODS_MAX: Final = 10
"""Pods and reasons that a line of the log names."""


class ScaleDownResult(StrEnum):
    """Upstream's result of a scale-down."""

    NO_STATUS = ""
    """The loop ended before there was a status."""
    ERROR = "ScaleDownError"
    NOT_TRIED = "ScaleDownNotTried"
    NO_CANDIDATES = "ScaleDownNoCandidates"
    IN_COOLDOWN = "ScaleDownInCooldown"
    NO_NODE_DELETED = "ScaleDownNoNodeDeleted"
    NODE_DELETE_STARTED = "ScaleDownNodeDeleteStarted"


@dataclass(slots=True, kw_only=True)
class LoopResult:
    """The result of a loop, for the log, the status, the metrics and the tests."""

    at: Moment
    """When the cluster was read."""
    scale_up: ScaleUpPlan = field(default_factory=lambda: ScaleUpPlan(result=ScaleUpResult.NO_STATUS))
    scale_down: ScaleDownResult = ScaleDownResult.NO_STATUS
    empty: list[str] = field(default_factory=list)
    """Empty nodes whose deletion has started."""
    drained: list[str] = field(default_factory=list)
    """Nodes whose drain has started."""
    target_decreased: dict[str, int] = field(default_factory=dict)
    """By how many nodes the targets of groups were decreased because the nodes did not come."""
    unschedulable_pods: int = 0
    unprocessed_pods: int = 0
    """Pods of bypassed schedulers that have not been tried."""
    activities: set[str] = field(default_factory=set)
    """Parts of the loop that were executed: main, autoscaling, scaleUp, scaleDown."""
    durations: list[tuple[str, float]] = field(default_factory=list)
    """Seconds that parts of the loop took, by upstream's names."""
    in_cooldown: bool = False
    empty_cluster: str = ""
    """Why the loop ended early: there is no (ready) node, and scale-up from zero is disabled."""
    error: str = ""
    error_type: ErrorType | None = None
    status_error: str = ""
    """Why the status ConfigMap was not written."""
    events: Events = field(default_factory=Events)

    def begin_status(self) -> None:
        """Record that the state of the cluster is known: from now on, a step without result was not tried."""
        self.scale_up = ScaleUpPlan(result=ScaleUpResult.NOT_TRIED)
        self.scale_down = ScaleDownResult.NOT_TRIED

    @contextmanager
    def time(self, function: str, clock: Clock) -> Iterator[None]:
        """Record how long a part of the loop takes."""
        started = clock.monotonic()
        try:
            yield
        finally:
            self.durations.append((function, clock.monotonic() - started))

    def decisions(self) -> dict[str, str]:
        """Return the decisions of the loop, for its line of the log; without those that were not made."""
        plan = self.scale_up
        remaining = Counter(
            f"{group}: {'; '.join(reasons)}"
            for _, by_group in plan.remaining
            for group, reasons in by_group.items()
        )
        found = {
            "scaleUp": str(plan.result),
            "increased": " ".join(map(str, plan.scale_ups)),
            "triggeredBy": ",".join(str(key_of(pod)) for pod in plan.triggered[:_PODS_MAX]),
            "skippedGroups": "; ".join(f"{name}: {', '.join(why)}" for name, why in plan.skipped.items()),
            "noFit": "; ".join(f"{text} ({count} pods)" for text, count in remaining.most_common(_PODS_MAX)),
            "scaleDown": str(self.scale_down),
            "empty": ",".join(self.empty),
            "drained": ",".join(self.drained),
            "targetDecreased": ",".join(f"{name}:{by}" for name, by in self.target_decreased.items()),
            "unschedulablePods": str(self.unschedulable_pods),
        }
        return {name: text for name, text in found.items() if text}

    @property
    def acted(self) -> bool:
        """Whether the next loop should start at once."""
        return (
            self.scale_up.result is ScaleUpResult.SUCCESSFUL
            or self.scale_down is ScaleDownResult.NODE_DELETE_STARTED
        )
