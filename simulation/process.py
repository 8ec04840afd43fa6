"""A component's process in a simulation: its body runs as a task, and it dies as a process does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from prometheus_client import CollectorRegistry

from nominee.machinery.process import run_files
from nominee.machinery.process.component import GRACE_SECONDS, Body, Process
from nominee.machinery.runtime import host
from nominee.simulation import memory, runtime

if TYPE_CHECKING:
    # Starlette is imported with the first page that is asked for.
    from starlette.requests import Request
    from starlette.responses import Response


class SimulatedProcess(Process):
    """A process that a component's own command line made; `run` keeps its body for `main`."""

    owns_interpreter = False

    @staticmethod
    def prepare() -> None:
        """Do nothing: the interpreter belongs to the simulation."""

    def __init__(self, component: str, **options: object) -> None:
        own = runtime.current()
        options.update(clock=own.clock, rng=own.rng)
        super().__init__(component, **options)  # type: ignore[arg-type]
        self._failpoints = own.failpoints
        self._body: Body | None = None
        self._grace_seconds = GRACE_SECONDS
        self.serving.address = f"127.0.0.1:{own.owner.pid}"
        self.serving.serve_metrics(CollectorRegistry())
        self.serving.add_route(memory.PATH, self._answer_memory)
        own.adopt(self)

    async def _answer_memory(self, _request: Request) -> Response:
        from starlette.responses import JSONResponse

        return JSONResponse(memory.holdings(runtime.current(), self.component))

    def run(
        self,
        body: Body,
        *,
        check: Callable[[], object] | None = None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._body, self._grace_seconds = body, grace_seconds
        self._failpoints.on_fire = self._on_fire
        self._failpoints.arm_early(self._armed)

    async def main(self) -> int:
        """Run the body to its end, or until `stop` and its grace period are over; return the exit status."""
        assert self._body is not None, "the command has not called run"
        try:
            await self._supervise(self._body, self._grace_seconds)
        except Exception as error:  # noqa: BLE001  # the last handler there is
            return self._report(error)
        finally:
            run_files.remove(self.directory, self.name, host.current().pid())
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                for client in self._clients:
                    await client.close()
        return 0

    def stop(self) -> None:
        """Ask the process to stop, as SIGTERM does."""
        if not self.stopping.is_set():
            self._grace_wanted = self.stopping.statistics().tasks_waiting > 0
            self.stopping.set()
            self._stop_asked.set()

    @property
    def ready(self) -> bool:
        """Whether the process has announced itself."""
        with suppress(RuntimeError):
            self._check_announced()
            return True
        return False
