"""The shipped loop and executor on a world in memory."""

from __future__ import annotations

import random

from nominee.autoscaler.loop import run_once
from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.snapshot.dynamic_resources import Listers
from nominee.autoscaler.result import LoopResult
from nominee.autoscaler.shell.executor import Executor, Spawn
from nominee.autoscaler.shell.ports import Counters
from nominee.autoscaler.state import AutoscalerState
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from tests.autoscaler.world import World


class NoCounters:
    """Count nothing."""

    def scaled_down_node(self, node: core.Node, *, drain: bool) -> None:
        """Ignore a deleted node."""

    def evicted_pod(self, *, succeeded: bool) -> None:
        """Ignore an eviction."""


class Harness:
    """An autoscaler of the world. `spawn` gets the deletions that it starts."""

    def __init__(
        self,
        world: World,
        options: Options,
        spawn: Spawn,
        *,
        listers: Listers | None = None,
        counters: Counters | None = None,
    ) -> None:
        self.state = AutoscalerState(
            options,
            gates=Gates("autoscaler", Version(1, 36)),
            clock=world.clock,
            rng=random.Random(0),
            listers=listers,
        )
        self.executor = Executor(
            cluster=world, cloud=world, clock=world.clock, spawn=spawn, counters=counters or NoCounters()
        )

    async def run_once(self) -> LoopResult:
        """Run one loop."""
        return await self.executor.run(run_once(self.state))
