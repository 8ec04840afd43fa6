"""Contexts of simulated processes for tests of the parts of a simulation."""

from __future__ import annotations

import random
from contextvars import Context

from nominee.machinery.runtime.faults.call_faults import FAULTS
from nominee.machinery.runtime.runtime import RUNTIME
from nominee.simulation.event_loop.clock import SimulatedClock
from nominee.simulation.event_loop.loop import SimulatedLoop
from nominee.simulation.host import Files, SimulatedHost
from nominee.simulation.network.network import Network
from nominee.simulation.owner import Owner
from nominee.simulation.per_process import ProcessPoints
from nominee.simulation.process import SimulatedProcess
from nominee.simulation.runtime import SimulatedRuntime


def runtime_of(loop: SimulatedLoop, owner: Owner) -> SimulatedRuntime:
    """Return a runtime with a network and files of its own."""
    rng, clock = random.Random(owner.pid), SimulatedClock(loop)

    async def get(address: str, path: str) -> tuple[int, bytes]:
        raise OSError(f"no process listens on {address}")

    return SimulatedRuntime(
        host=SimulatedHost(owner, Files(), {owner.pid: owner}, rng, get),
        transport=Network(loop, random.Random),
        process_type=SimulatedProcess,
        failpoints=ProcessPoints(rng=rng, clock=clock),
        faults=FAULTS.of_process(rng, clock),
        clock=clock,
        rng=rng,
        log=lambda line: None,
        owner=owner,
        adopt=lambda process: None,
    )


def context_of(loop: SimulatedLoop, owner: Owner) -> Context:
    """Return the context of a process's tasks."""
    context = Context()
    context.run(RUNTIME.set, runtime_of(loop, owner))
    return context
