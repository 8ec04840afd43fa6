"""A process that is killed again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import anyio
import pytest

from nominee.lab.chaos.crashing import crash_in_a_row
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.localcluster.cluster import ClusterError, ProcessState
from nominee.machinery.runtime.clock import SystemClock

LOOKS = 2
"""So often the supervisor is asked until it shows a change."""


@dataclass
class Supervised:
    """One process, which its supervisor starts again until it has died `left_down_after` times."""

    left_down_after: int = 99
    clock: SystemClock = field(default_factory=SystemClock)
    process: ProcessState = field(
        default_factory=lambda: ProcessState(name="scheduler", component="scheduler", state="ready")
    )
    is_dead: bool = False
    knows_the_dead: bool = False
    """Killing a dead process fails, as in a simulation; a real one that was not reaped can be killed."""
    crashes: int = 0
    looks: int = 0

    async def processes(self) -> Sequence[ProcessState]:
        self.looks += 1
        if self.looks % LOOKS == 0:
            self._go_on()
        return [self.process]

    def _go_on(self) -> None:
        if self.is_dead and self.process.state == "ready":
            is_left = self.crashes >= self.left_down_after
            self.process = replace(self.process, state="crashed" if is_left else "backoff")
        elif self.process.state == "backoff":
            self.process = replace(self.process, state="starting", restarts=self.process.restarts + 1)
            self.is_dead = False
        elif self.process.state == "starting":
            self.process = replace(self.process, state="ready")

    async def crash(self, component: str) -> None:
        assert component == "scheduler"
        if self.is_dead and self.knows_the_dead:
            raise ClusterError("scheduler does not run")
        assert not self.is_dead
        assert self.process.state == "ready"
        self.is_dead = True
        self.crashes += 1


async def crash(supervised: Supervised, times: int) -> int:
    with anyio.fail_after(10):
        return await crash_in_a_row(cast("ScenarioCluster", supervised), "scheduler", times)


async def test_a_process_is_killed_each_time_it_is_ready() -> None:
    supervised = Supervised()
    assert await crash(supervised, 4) == 4
    assert (supervised.crashes, supervised.process.restarts) == (4, 3)


async def test_a_process_that_has_just_died_is_killed_when_it_is_ready_again() -> None:
    supervised = Supervised(knows_the_dead=True)
    await supervised.crash("scheduler")
    assert await crash(supervised, 4) == 4
    assert (supervised.crashes, supervised.process.restarts) == (5, 4)


@pytest.mark.parametrize("state", ["down", "crashed", "paused"])
async def test_a_process_that_does_not_come_up_is_not_killed(state: str) -> None:
    supervised = Supervised()
    supervised.process = replace(supervised.process, state=state)
    assert await crash(supervised, 4) == 0
    assert supervised.crashes == 0


async def test_a_process_that_is_left_down_is_not_waited_for() -> None:
    supervised = Supervised(left_down_after=3)
    assert await crash(supervised, 5) == 3
    assert (supervised.crashes, supervised.process.state) == (3, "crashed")
