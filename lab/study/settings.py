"""The measurements of the study of KEP-5836's open questions: scenarios, setups, sizes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nominee.lab.reports.records import Record
from nominee.scheduler.framework.resize_preemption import Fit, Tracking

NODE_CPU: Final = 8000
"""Allocatable cpu of each node in milli-units."""
SEEDS_MAX: Final = 10_000


class Scenario(StrEnum):
    """The scenarios of the study; all but the last are simulated."""

    CRASH = "crash"
    GRACE = "grace"
    RACES = "races"
    KUBELET = "kubelet"
    POLICY_LAG = "policy-lag"
    FOUR_PODS = "four-pods"
    THROUGHPUT = "throughput"


SHIPPED: Final = "1.37"
"""The races, with what Kubernetes 1.37 shipped."""
AT_ONCE: Final = "no policy"
AFTER_POLICY: Final = "policy removed"
OLD_KUBELET: Final = "kubelet 1.34"
NEW_KUBELET: Final = "kubelet 1.37"
LATER: Final = {f"{OLD_KUBELET}, {delay} ms later": delay / 1000 for delay in (20,)}
LIVE_READ: Final = f"{OLD_KUBELET}, live read"

NO_LOAD: Final = "no deferred pods"
QUIET: Final = "deferred pods"
CHURN: Final = "deferred pods, deletions on their nodes"

VICTIMS_TERMINATING: Final = "victims terminating"
CRASH_POINTS: Final = (
    "scheduler.cycle.before",
    "scheduler.preempt.before",
    "scheduler.preempt.victim.marked",
    "scheduler.preempt.victim.after",
    VICTIMS_TERMINATING,
)
"""The failpoints on the path of each option's preemption, and one point without a failpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup(Record):
    """A scenario and the configuration of its cluster. `variant`: of the scenario, or a load."""

    scenario: Scenario
    tracking: Tracking = Tracking.NONE
    fit: Fit = Fit.SCHEDULER
    variant: str = ""


def setups(scenario: Scenario, trackings: tuple[Tracking, ...]) -> list[Setup]:
    """Return the simulated setups of a scenario; `trackings` where the option for tracking matters."""
    if scenario is Scenario.THROUGHPUT:
        return []
    if scenario is Scenario.FOUR_PODS:
        return [Setup(scenario=scenario, fit=fit) for fit in (Fit.SCHEDULER, Fit.KUBELET)]
    if scenario is Scenario.POLICY_LAG:
        variants = (OLD_KUBELET, *LATER, LIVE_READ, NEW_KUBELET)
        return [Setup(scenario=scenario, variant=each) for each in variants]
    if scenario is Scenario.KUBELET:
        return [
            Setup(scenario=scenario, tracking=each, variant=variant)
            for each in trackings
            for variant in (AT_ONCE, AFTER_POLICY)
            if variant == AFTER_POLICY or each is Tracking.NONE
        ]
    found = [Setup(scenario=scenario, tracking=each) for each in trackings]
    return [*found, Setup(scenario=scenario, variant=SHIPPED)] if scenario is Scenario.RACES else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a run; times in seconds."""

    seeds: int = 1000
    seeds_of_others: int = 250
    """Of the setups that are there for comparison."""
    four_pods: int = 50
    """Of a scenario whose result does not vary."""
    rates: int = 10
    """Measurements of each throughput."""
    deferred_pods: int = 1000
    deferred_nodes: int = 20
    free_nodes: int = 8
    new_pods: int = 300

    def seeds_for(self, setup: Setup) -> int:
        """Return the number of seeds for a setup."""
        if setup.scenario is Scenario.FOUR_PODS:
            return min(self.four_pods, self.seeds)
        compared = setup.tracking in (Tracking.MEMORY, Tracking.NOMINATED_NODE_NAME)
        compared = compared or setup.variant == AT_ONCE
        compared = compared or (setup.scenario, setup.tracking) == (Scenario.KUBELET, Tracking.SPEC_NODE_NAME)
        return min(self.seeds_of_others, self.seeds) if compared else self.seeds


CRASH_STOP_SECONDS: Final = (3.0, 6.0)
"""The time that victims take to stop, from and to: longer than the scheduler's restart."""
GRACE_STOP_SECONDS: Final = (1.5, 7.5)
FALLBACK_SECONDS: Final = 3.0
"""The emulated autoscaler's fallback time; it stands for VPA's five minutes, 1:100."""
CHURN_SECONDS: Final = 0.05
"""The interval of deletions on the nodes of the deferred pods, while churning."""
FULL: Final = Sizes()
QUICK: Final = Sizes(
    seeds=3,
    seeds_of_others=2,
    four_pods=2,
    rates=3,
    deferred_pods=50,
    deferred_nodes=1,
    free_nodes=1,
    new_pods=30,
)
