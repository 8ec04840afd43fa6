"""Kill a process again and again, each time when it is ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

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
class Crashes(Kill):
    """The step with which a crash loop begins; with `over` the next step begins when it is over."""

    has_supervisor: bool
    over: anyio.Event | None

    async def perform(self, stage: Stage) -> Performed:
        """Look whether there is a process to kill, and wait."""
        if not self.has_supervisor:
            raise ClusterError(f"{self.component} is not started again in a cluster with `restart: never`")
        if not await is_ready(stage.cluster, self.component):
            raise ClusterError(f"{self.component} is no process that runs")
        if self.over is not None:
            await self.over.wait()
            await is_ready(stage.cluster, self.component)
            await stage.cluster.clock.sleep(SETTLE_SECONDS)
        return DONE


async def crash_in_a_row(cluster: ScenarioCluster, component: str, times: int) -> int:
    """Kill a process as often, each time when it is ready; return how often.

    That is less if it is stopped or left down meanwhile.
    """
    count = 0
    while count < times and await is_ready(cluster, component):
        before = await _state(cluster, component)
        try:
            await cluster.crash(component)
        except ClusterError:
            await cluster.clock.sleep(POLL_SECONDS)  # it has just died otherwise
            continue
        count += 1
        while await _state(cluster, component) == before:  # its supervisor has not noticed yet
            await cluster.clock.sleep(POLL_SECONDS)
    return count


async def is_ready(cluster: ScenarioCluster, component: str) -> bool:
    """Wait until a process has come up or stays down; return whether it is ready."""
    while (found := await _state(cluster, component)) is not None and found.state in COMING_UP:
        await cluster.clock.sleep(POLL_SECONDS)
    return found is not None and found.state == ChildState.READY


async def _state(cluster: ScenarioCluster, component: str) -> ProcessState | None:
    return next((each for each in await cluster.processes() if each.name == component), None)
