"""Kill a process again and again, each time when it is ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nominee.lab.scenario.acting.base import DONE, Performed
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.steps.processes.stop import Kill
from nominee.localcluster.cluster import ClusterError, ProcessState
from nominee.localcluster.supervisor.model.states import COMING_UP, ChildState

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage

POLL_SECONDS: Final = 0.05
SETTLE_SECONDS: Final = 1.0
"""For a process that has been killed several times, to take over its objects before the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash(Kill):
    """Kill a process, whose supervisor starts it again; `waits`: the next step begins when it is ready."""

    times: int
    waits: bool

    async def perform(self, stage: Stage) -> Performed:
        """Kill the process."""
        await crash_in_a_row(stage.cluster, self.component, self.times)
        if self.waits:
            await is_ready(stage.cluster, self.component)
            await stage.cluster.clock.sleep(SETTLE_SECONDS)
        return DONE


async def crash_in_a_row(cluster: ScenarioCluster, component: str, times: int) -> None:
    """Kill a process as often, each time when it is ready, unless it is stopped or left down meanwhile."""
    left = times
    while left and await is_ready(cluster, component):
        before = await _state(cluster, component)
        try:
            await cluster.crash(component)
        except ClusterError:
            await cluster.clock.sleep(POLL_SECONDS)  # it has just died otherwise
            continue
        left -= 1
        while await _state(cluster, component) == before:  # its supervisor has not noticed yet
            await cluster.clock.sleep(POLL_SECONDS)


async def is_ready(cluster: ScenarioCluster, component: str) -> bool:
    """Return whether a process is ready, when it does not come up any more."""
    while (found := await _state(cluster, component)) is not None and found.state in COMING_UP:
        await cluster.clock.sleep(POLL_SECONDS)
    return found is not None and found.state == ChildState.READY


async def _state(cluster: ScenarioCluster, component: str) -> ProcessState | None:
    return next((each for each in await cluster.processes() if each.name == component), None)
