"""The options, scenarios and sizes of the study of KEP-5836's open questions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NODE_CPU: Final = 8000
"""Allocatable cpu of each node in milli-units."""
SEEDS_MAX: Final = 50


class Scenario(StrEnum):
    """The scenarios of the study."""

    CRASH = "crash"
    GRACE = "grace"
    THROUGHPUT = "throughput"
    FOUR_PODS = "four-pods"


NO_CRASH: Final = "no crash"
VICTIMS_TERMINATING: Final = "victims terminating"
CRASH_POINTS: Final = (
    NO_CRASH,
    "scheduler.cycle.before",
    "scheduler.preempt.before",
    "scheduler.preempt.victim.marked",
    "scheduler.preempt.victim.after",
    "scheduler.status.before",
    "scheduler.status.after",
    VICTIMS_TERMINATING,
)
"""The failpoints of the scheduler on the path of a resize preemption, and two points without a failpoint.

`scheduler.status.*` is on the path only where nominatedNodeName is written. `scheduler.nominate.*` belongs to
the binding cycle, which a deferred resize does not have.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of one option's run; times in seconds."""

    crash_stop_seconds: tuple[float, float] = (3.0, 6.0)
    """The time that victims take to stop, from and to: longer than the scheduler's restart."""
    grace_stop_seconds: tuple[float, float] = (1.5, 7.5)
    fallback_seconds: float = 3.0
    """The emulated autoscaler's fallback time; it stands for VPA's five minutes, 1:100."""
    deferred_pods: int = 1000
    deferred_nodes: int = 20
    free_nodes: int = 8
    new_pods: int = 300
    churn_seconds: float = 0.05
    """The interval of deletions on the nodes of the deferred pods, while churning."""
    trial_seconds_max: float = 30.0


FULL: Final = Sizes()
QUICK: Final = Sizes(
    crash_stop_seconds=(1.5, 2.5),
    grace_stop_seconds=(1.0, 2.5),
    fallback_seconds=1.5,
    deferred_pods=50,
    deferred_nodes=1,
    free_nodes=1,
    new_pods=30,
)
QUICK_CRASH_POINTS: Final = ("scheduler.preempt.victim.after",)
QUICK_SEEDS: Final = 3
