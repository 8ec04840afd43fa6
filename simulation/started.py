"""A process that was started: its state, its environment, and questions to its serving port."""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING, Final

import anyio

from nominee.machinery.process.component import Process
from nominee.machinery.runtime.faults.call_faults import Faults
from nominee.simulation import asgi
from nominee.simulation.event_loop.clock import SimulatedClock
from nominee.simulation.owner import Owner, OwnerState
from nominee.simulation.per_process import ProcessPoints
from nominee.simulation.process import SimulatedProcess

if TYPE_CHECKING:
    from nominee.simulation.asgi import Answer

ANSWER_SECONDS_MAX: Final = 5.0


class NoAnswerError(Exception):
    """A process does not answer; the text says why."""


class Started:
    """A process of a simulation, also after its end."""

    def __init__(self, owner: Owner, clock: SimulatedClock, points: ProcessPoints, faults: Faults) -> None:
        self.name = owner.name
        self.owner = owner
        self.clock = clock
        self.points = points
        self.faults = faults
        self.context = Context()
        self.process: SimulatedProcess | None = None
        self.is_etcd = False

    def adopt(self, process: Process) -> None:
        """Keep the process that the component's command made."""
        assert isinstance(process, SimulatedProcess)
        self.process = process

    @property
    def running(self) -> bool:
        """Whether the process exists; it may be frozen."""
        return self.owner.state is not OwnerState.DEAD

    @property
    def ready(self) -> bool:
        """Whether the process has announced itself; etcd need not."""
        return self.running and (self.is_etcd or (self.process is not None and self.process.ready))

    async def get(self, path: str) -> Answer:
        """Return the answer of the process's serving port to a GET.

        Raises:
            NoAnswerError: the process does not run, is frozen, or takes too long.
        """
        if self.process is None or not self.running:
            raise NoAnswerError(f"{self.name} does not run, or has no serving port")
        application = self.process.serving.application()
        loop = asyncio.get_running_loop()
        asking = loop.create_task(asgi.get(application, path), context=self.context.copy())
        with anyio.move_on_after(ANSWER_SECONDS_MAX):
            await asyncio.wait([asking])
        if not asking.done():
            raise NoAnswerError(f"{self.name} does not answer within {ANSWER_SECONDS_MAX:g} s")
        return asking.result()
