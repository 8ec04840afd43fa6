"""One simulation: the event loop, the network, the files, and processes that start, freeze and die."""

from __future__ import annotations

import asyncio
import gc
import importlib
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar

import click

from nominee.machinery.client.api_client import Client, connect
from nominee.machinery.process import component, run_files
from nominee.machinery.runtime.faults.call_faults import FAULTS
from nominee.machinery.runtime.runtime import RUNTIME
from nominee.simulation import logs, per_process
from nominee.simulation.etcd.service import EtcdService
from nominee.simulation.etcd.store import Store
from nominee.simulation.event_loop import interrupts
from nominee.simulation.event_loop.clock import SimulatedClock
from nominee.simulation.event_loop.loop import SimulatedLoop, SimulationError
from nominee.simulation.event_loop.watchdog import limit_callbacks
from nominee.simulation.host import Files, SimulatedHost
from nominee.simulation.network.delays import Delays
from nominee.simulation.network.deliveries import PLAYER
from nominee.simulation.network.network import Network
from nominee.simulation.owner import Owner, OwnerState
from nominee.simulation.per_process import ProcessPoints
from nominee.simulation.process import SimulatedProcess
from nominee.simulation.runtime import SimulatedRuntime
from nominee.simulation.started import NoAnswerError, Started

T = TypeVar("T")
DIRECTORY: Final = Path("/simulated")
"""The state directory of the simulated processes. It exists in memory only."""
ETCD_ADDRESS: Final = "127.0.0.1:2379"
MODULES: Final = {
    "apiserver": "nominee.apiserver.__main__",
    "scheduler": "nominee.scheduler.__main__",
    "controllers": "nominee.controllers.__main__",
    "kubelet": "nominee.kubelet.__main__",
    "cloud": "nominee.autoscaler.cloud.__main__",
    "autoscaler": "nominee.autoscaler.__main__",
}
KILLED = CRASHED = -9
"""The exit status of a process that was killed, or that a failpoint made crash."""
LOG_LINES_MAX: Final = 20_000
READY_SECONDS_MAX: Final = 120.0
READY_POLL_SECONDS: Final = 0.02
_FIRST_PID: Final = 100
_COMMAND_LINES_MAX: Final = 256


@lru_cache(_COMMAND_LINES_MAX)
def _parsed(component_name: str, arguments: tuple[str, ...]) -> click.Context:
    """Return a component's options, parsed once for all simulations. Raises: ClickException."""
    command: click.Command = importlib.import_module(MODULES[component_name]).main
    return command.make_context(component_name, list(arguments))


class Simulation:
    """A cluster's machine and network with one seed.

    The same seed, and the same calls at the same simulated times, give the same history byte for byte.
    """

    def __init__(
        self,
        seed: int,
        *,
        delays: Delays | None = None,
        late_watches: float = 0.0,
        log_level: str = "warning",
    ) -> None:
        self.seed = seed
        self.loop = SimulatedLoop()  # type: ignore[abstract]  # no sockets, threads, signals
        self.network = Network(self.loop, lambda link: self.rng(f"network/{link}"), delays, late_watches)
        self.files = Files()
        self.store = Store()
        self.processes: dict[str, Started] = {}
        """The last process of each name."""
        self.log: deque[str] = deque(maxlen=LOG_LINES_MAX)
        self.clock = SimulatedClock(self.loop)
        self.on_exit: Callable[[str, int], None] = lambda name, status: None
        """Called when a process has ended, with its name and exit status; negative for a signal."""
        self._log_level = log_level
        self._owners: dict[int, Owner] = {}
        self._dead: list[list[asyncio.Task[object]]] = []

    def rng(self, name: str) -> random.Random:
        """Return a random generator of the seed for a purpose."""
        return random.Random(f"{self.seed}/{name}")

    def redraw_network(self, purpose: str) -> None:
        """Draw another network of the seed, for messages that are sent from now on."""
        self.network.redraw(lambda link: self.rng(f"network/{purpose}/{link}"))

    # Running.

    def run(self, main: Callable[[], Awaitable[T]]) -> T:
        """Run a program that drives the simulation, and everything else until it returns.

        Raises:
            SimulationError: nothing can happen any more, or no time passes.
        """

        async def driver() -> T:
            return await main()

        before = logs.configure(self._log_level)
        collects = gc.isenabled()
        # Cycles are collected between simulations: when they are within one depends on the whole interpreter.
        gc.disable()
        try:
            with (
                interrupts.defer_signals(self.loop.interrupts),
                limit_callbacks(lambda: self.loop.callbacks, self.loop.on_endless),
                per_process.install(),
            ):
                try:
                    return self._spawn(PLAYER).context.run(self.loop.run_until_complete, driver())
                finally:
                    self._bury()
        finally:
            logs.restore(before)
            if collects:
                gc.enable()

    def _spawn(self, name: str) -> Started:
        """Return a new process, with the context in which its tasks run."""
        pid = _FIRST_PID + len(self._owners)
        owner = self._owners[pid] = Owner(name, pid)
        clock = SimulatedClock(self.loop)
        purpose = f"{name}/{pid}"
        registry = ProcessPoints(rng=self.rng(f"{purpose}/failpoints"), clock=clock)
        registry.crash = lambda: self._die(started, CRASHED)
        faults = FAULTS.of_process(self.rng(f"{purpose}/faults"), clock)
        started = Started(owner, clock, registry, faults)
        runtime = SimulatedRuntime(
            host=SimulatedHost(owner, self.files, self._owners, self.rng(f"{purpose}/disk"), self._get),
            transport=self.network,
            process_type=SimulatedProcess,
            failpoints=registry,
            faults=faults,
            clock=clock,
            rng=self.rng(purpose),
            log=self.log.append,
            owner=owner,
            adopt=started.adopt,
        )
        started.context.run(RUNTIME.set, runtime)
        return started

    # Processes.

    async def _get(self, address: str, path: str) -> tuple[int, bytes]:
        """Return the answer of the process with this serving port. Raises: OSError."""
        for started in self.processes.values():
            if started.process is not None and started.process.serving.address == address:
                try:
                    answer = await started.get(path)
                except NoAnswerError as error:
                    raise OSError(str(error)) from None
                return answer.status, answer.body
        raise OSError(f"no process listens on {address}")

    def start(self, name: str, component_name: str, arguments: Sequence[str] = ()) -> Started:
        """Start a component from its options; etcd has none.

        Raises:
            SimulationError: a process of this name runs.
        """
        running = self.processes.get(name)
        if running is not None and running.running:
            raise SimulationError(f"{name} runs already")
        started = self.processes[name] = self._spawn(name)
        body = (
            self._etcd(started)
            if component_name == "etcd"
            else self._component(started, component_name, arguments)
        )
        self.loop.create_task(body, context=started.context)
        return started

    async def _component(self, started: Started, component_name: str, arguments: Sequence[str]) -> None:
        try:
            with _parsed(component_name, tuple(arguments)) as context:
                context.command.invoke(context)
        except click.ClickException as error:
            self.log.append(f"{started.name}: {error.format_message()}")
            status = component.EXIT_USAGE
        else:
            assert started.process is not None, f"{started.name}: the command made no process"
            status = await started.process.main()
        self._die(started, status)

    async def _etcd(self, started: Started) -> None:
        started.is_etcd = True
        document = {"component": "etcd", "name": "etcd", "pid": started.owner.pid, "grpc": ETCD_ADDRESS}
        run_files.write(DIRECTORY, "etcd", document)
        service = EtcdService(self.store, started.clock, self.rng(f"etcd/{started.owner.pid}/leases"))
        await service.run(ETCD_ADDRESS)

    async def wait_ready(self, *names: str, limit_seconds: float = READY_SECONDS_MAX) -> None:
        """Wait until these processes have announced themselves.

        Raises:
            SimulationError: one of them has ended, or is not ready after the limit.
        """
        deadline = self.loop.time() + limit_seconds
        for name in names:
            started = self.processes[name]
            while not started.ready:
                if not started.running or self.loop.time() >= deadline:
                    raise SimulationError(f"{name} is not ready:\n" + "\n".join(self.log))
                await self.clock.sleep(READY_POLL_SECONDS)

    async def client(self, user_agent: str = "nominee") -> Client:
        """Return a client of the API server for the program that drives the simulation."""
        return await connect(DIRECTORY, user_agent=user_agent, clock=self.clock)

    def kill(self, name: str) -> None:
        """Kill a process at the instruction where it is, as SIGKILL does."""
        self._die(self.processes[name], KILLED)

    def _die(self, started: Started, status: int) -> None:
        """End a process; `status` is its exit status, negative for a signal."""
        owner = started.owner
        if owner.state is OwnerState.DEAD:
            return
        owner.state = OwnerState.DEAD
        self.network.died(owner)
        # Kept until the end, so that no `finally` runs because a task is freed.
        self._dead.append(self.loop.tasks_of(owner))
        self.network.at(self.loop.time(), self.on_exit, started.name, status)

    def stop(self, name: str) -> None:
        """Ask a process to stop, as SIGTERM does."""
        started = self.processes[name]
        if started.process is None:
            self._die(started, 0)
        else:
            started.context.run(started.process.stop)

    def use_rules(self) -> None:
        """Apply the call faults that were set in `processes`."""
        per_process.use_rules(started.faults for started in self.processes.values())

    def freeze(self, name: str) -> None:
        """Stop a process for a while, as SIGSTOP does."""
        owner = self.processes[name].owner
        if owner.state is OwnerState.RUNNING:
            owner.state = OwnerState.FROZEN
            self.network.froze(owner)

    def resume(self, name: str) -> None:
        """Let a frozen process continue."""
        owner = self.processes[name].owner
        if owner.state is OwnerState.FROZEN:
            self.loop.resume(owner)

    def _bury(self) -> None:
        """End the remaining tasks, without any effect on the network, the files and the history."""
        self.network.close()
        self.files.close()
        try:
            self.loop.finish(self._owners.values())
        finally:
            self.loop.close()
