"""What one loop of the autoscaler has done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from autoscaler.planning.events import Events
from autoscaler.planning.scale_up import ScaleUpPlan, ScaleUpResult
from autoscaler.ports import CloudError
from machinery.api.errors import StatusError
from machinery.runtime.clock import Clock

SCALE_DOWN_ERROR = "ScaleDownError"
SCALE_DOWN_NOT_TRIED = "ScaleDownNotTried"
SCALE_DOWN_NO_CANDIDATES = "ScaleDownNoCandidates"
SCALE_DOWN_IN_COOLDOWN = "ScaleDownInCooldown"
SCALE_DOWN_NO_NODE_DELETED = "ScaleDownNoNodeDeleted"
SCALE_DOWN_STARTED = "ScaleDownNodeDeleteStarted"


@dataclass(slots=True, kw_only=True)
class LoopResult:
    """The result of a loop, for the status, metrics and tests."""

    at: float
    scale_up: ScaleUpPlan = field(default_factory=lambda: ScaleUpPlan(result=ScaleUpResult.NOT_TRIED))
    scale_down: str = SCALE_DOWN_NOT_TRIED
    empty: list[str] = field(default_factory=list)
    drained: list[str] = field(default_factory=list)
    target_decreased: dict[str, int] = field(default_factory=dict)
    unschedulable_pods: int = 0
    unprocessed_pods: int = 0
    """Pods that no scheduler has tried, of schedulers that are not waited for."""
    activities: set[str] = field(default_factory=set)
    """Parts of the loop that were executed: main, autoscaling, scaleUp, scaleDown."""
    durations: list[tuple[str, float]] = field(default_factory=list)
    """Seconds that parts of the loop took, by upstream's names."""
    in_cooldown: bool = False
    empty_cluster: str = ""
    """Why the loop ended at once: there is no (ready) node, and scale-up from zero is disabled."""
    error: str = ""
    error_type: str = ""
    """`error_type` of the error."""
    events: Events = field(default_factory=Events)

    @contextmanager
    def timed(self, function: str, clock: Clock) -> Iterator[None]:
        """Record how long a part of the loop takes."""
        began = clock.monotonic()
        try:
            yield
        finally:
            self.durations.append((function, clock.monotonic() - began))

    @property
    def acted(self) -> bool:
        """Whether the next loop should come at once."""
        return self.scale_up.result is ScaleUpResult.SUCCESSFUL or self.scale_down == SCALE_DOWN_STARTED


def error_type(error: Exception) -> str:
    """Return upstream's name for the kind of an error that ends a loop."""
    if isinstance(error, CloudError):
        return "cloudProviderError"
    return "apiCallError" if isinstance(error, StatusError) else "internalError"
