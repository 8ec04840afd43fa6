"""The supervisor's decisions on simulated processes: started, stopped, restarted with back-off."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

import anyio

from nominee.lab.history.verification.settings import Configured, of_arguments
from nominee.localcluster.cluster import ClusterError, ProcessState
from nominee.localcluster.supervisor.model.core import Action, Supervision
from nominee.localcluster.supervisor.model.spec import ClusterSpec, ProcessSpec
from nominee.localcluster.supervisor.model.states import ChildState, Effect, Trigger
from nominee.machinery.runtime.state_table import InvalidTransitionError
from nominee.simulation.simulation import Simulation

READY_SECONDS_MAX = 90.0
POLL_SECONDS = 0.05
_OPTIONS_FROM = 4
"""Where the options begin in a command line: after `python -P -m MODULE`."""
_NOT_SIMULATED = {"apiserver": ("--rest-address", "")}
"""Options that are added: there is no REST port."""


class SimulatedProcesses:
    """The processes of a cluster. `run` must run beside it."""

    def __init__(self, simulation: Simulation, spec: ClusterSpec, more: Mapping[str, Sequence[str]]) -> None:
        """`more` adds arguments to those of a process's first start."""
        self._simulation = simulation
        self._specs = {process.name: process for process in spec.processes}
        self._core = Supervision([(p.name, p.stop_stage) for p in spec.processes], spec.policy)
        self._more = {name: tuple(arguments) for name, arguments in more.items()}
        self._spawned: set[str] = set()
        self.configured: list[Configured] = []
        """What the processes were started with, each start."""
        self._changed = anyio.Event()
        simulation.on_exit = self._exited

    # Commands.

    def start_all(self, *, without: Container[str] = ()) -> None:
        """Start all processes, except for those in `without`."""
        self._perform(self._core.start_all(self._now, without=without))
        self._changed.set()

    def ask(self, component: str, trigger: Trigger, arguments: Sequence[str] | None = None) -> None:
        """Apply a command to the processes of a name; `arguments` are added from the next start on.

        Raises:
            ClusterError: there is no such process, or the command is not possible now.
        """
        for name in self.names(component):
            if arguments is not None:
                self._more[name] = tuple(arguments)
            try:
                self._perform(self._core.ask(name, trigger, self._now))
            except InvalidTransitionError as error:
                raise ClusterError(f"{trigger} {name}: {error}") from None
        self._changed.set()

    def names(self, component: str) -> list[str]:
        """Return the processes of a name: one, or all kubelets. Raises: ClusterError."""
        found = [spec.name for spec in self._specs.values() if component in (spec.name, spec.component)]
        if not found:
            raise ClusterError(f"there is no process {component}; there are {', '.join(self._specs)}")
        return found

    def states(self) -> list[ProcessState]:
        """Return the state of every process."""
        return [
            ProcessState(
                name=name,
                component=self._specs[name].component,
                state=str(process.state),
                restarts=process.restarts,
                last_exit=process.last_exit,
            )
            for name, process in self._core.processes.items()
        ]

    async def until(self, component: str, *states: ChildState) -> None:
        """Wait until the processes of a name are in one of these states.

        Raises:
            ClusterError: one of them is left down, or it takes too long.
        """
        await self._until(self.names(component), states)

    async def until_all_ready(self) -> None:
        """Wait until all processes are ready. Raises: ClusterError."""
        await self._until(list(self._specs), (ChildState.READY, ChildState.DOWN, ChildState.PAUSED))

    async def _until(self, names: Sequence[str], states: Container[ChildState]) -> None:
        deadline = self._now + READY_SECONDS_MAX
        while pending := [name for name in names if self._core.processes[name].state not in states]:
            hopeless = [process.name for process in self._core.hopeless() if process.name in names]
            if hopeless or self._now >= deadline:
                problem = f"{', '.join(hopeless)} failed" if hopeless else f"{', '.join(pending)}: not ready"
                log = "\n".join(list(self._simulation.log)[-20:])
                raise ClusterError(f"{problem} after {READY_SECONDS_MAX:g} s\n{log}".rstrip())
            await self._simulation.clock.sleep(POLL_SECONDS)

    # Events.

    async def run(self) -> None:
        """Look for processes that have become ready, and for due actions, until cancelled."""
        while True:
            core, changed = self._core, anyio.Event()
            self._changed = changed
            starting = [p.name for p in core.processes.values() if p.state is ChildState.STARTING]
            for name in starting:
                if self._simulation.processes[name].ready:
                    self._perform(core.became_ready(name, self._now))
            self._perform(core.tick(self._now))
            waits = any(process.state is ChildState.STARTING for process in core.processes.values())
            seconds = POLL_SECONDS if waits else None
            if core.next_deadline is not None:
                due = max(core.next_deadline - self._now, 0.0)
                seconds = due if seconds is None else min(seconds, due)
            with anyio.move_on_after(seconds):
                await changed.wait()

    def _exited(self, name: str, status: int) -> None:
        if name in self._specs:
            reason = f"signal {-status}" if status < 0 else f"exit code {status}"
            self._perform(self._core.exited(name, status, reason, self._now))
            self._changed.set()

    @property
    def _now(self) -> float:
        return self._simulation.clock.monotonic()

    def _perform(self, actions: Sequence[Action]) -> None:
        effects: Mapping[Effect, Callable[[str], None]] = {
            Effect.SPAWN: self._spawn,
            Effect.TERM: self._simulation.stop,
            Effect.KILL: self._simulation.kill,
            Effect.STOP: self._simulation.freeze,
            Effect.CONT: self._simulation.resume,
        }
        for action in actions:
            effects[action.effect](action.name)

    def _spawn(self, name: str) -> None:
        spec = self._specs[name]
        arguments = self._arguments(spec)
        configured = of_arguments(spec.component, arguments)
        if configured is not None:
            self.configured.append(configured)
        self._simulation.start(name, spec.component, arguments)
        self._spawned.add(name)

    def _arguments(self, spec: ProcessSpec) -> list[str]:
        first = () if spec.name in self._spawned else spec.first_start
        return [
            *spec.argv[_OPTIONS_FROM:],
            *_NOT_SIMULATED.get(spec.component, ()),
            *self._more.get(spec.name, ()),
            *first,
        ]
