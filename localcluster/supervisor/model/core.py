"""The supervisor's decisions, without I/O: events in, actions out, time as an argument.

The shell passes every event (a command, an exit, a readiness answer, a tick) to `Supervision` and performs
the actions that it returns. Times are monotonic seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from nominee.localcluster.supervisor.model.states import (
    RUNNING,
    ChildState,
    Effect,
    Trigger,
    step,
)
from nominee.machinery.runtime.queues.backoff import ExponentialBackoff
from nominee.machinery.runtime.state_table import InvalidTransitionError

TRANSITION_LOG_LENGTH_MAX = 50
# A component's exit code for invalid options: a restart cannot help. After the process was ready it is a
# crash (Go programs, such as etcd, exit with 2 after a panic).
EXIT_USAGE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits and delays of restarts and stops; all times in seconds.

    The delay before the n-th restart in a row is `backoff_initial * 2**(n-1)`, at most `backoff_max`.
    After a process was ready for `stable_after`, the next restart has the first delay again. A process
    that exits `start_failures_max` times in a row without ever having been ready is left down.
    """

    restart: bool = True
    backoff_initial: float = 0.2
    backoff_max: float = 10.0
    stable_after: float = 10.0
    stop_grace: float = 10.0
    start_failures_max: int = 3

    def delay(self, failures: int) -> float:
        """Return the seconds to wait before the restart after the `failures`-th failure in a row (from 1)."""
        return ExponentialBackoff(self.backoff_initial, self.backoff_max).delay(failures)


@dataclass(frozen=True, slots=True)
class Action:
    """One instruction to the shell about one process."""

    name: str
    effect: Effect


@dataclass(slots=True)
class ProcessState:
    """One process as the core knows it. `deadline` and `ready_since` are monotonic seconds."""

    name: str
    stop_stage: int
    state: ChildState = ChildState.DOWN
    restarts: int = 0  # after crashes and on request, since `up`
    failures: int = 0  # crashes in a row
    ever_ready: bool = False
    ready_since: float | None = None
    deadline: float | None = None
    last_exit: str = ""
    transition_log: deque[str] = field(default_factory=lambda: deque(maxlen=TRANSITION_LOG_LENGTH_MAX))


class UnknownProcessError(Exception):
    """A command names a process that this cluster does not have."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"this cluster has no {name!r}; it has {', '.join(known)}")


class Supervision:
    """The processes of one cluster and their states."""

    def __init__(self, processes: Iterable[tuple[str, int]], policy: Policy) -> None:
        """Set up processes: names with their stop stage, in the order in which they are started."""
        self.policy = policy
        self.processes = {name: ProcessState(name, stage) for name, stage in processes}
        self.closing = False

    # -- commands

    def start_all(self, now: float, *, without: Container[str] = ()) -> list[Action]:
        """Start all processes at once, except for those in `without`: each waits for those that it needs."""
        return [
            action
            for name in self.processes
            if name not in without
            for action in self.ask(name, Trigger.START, now)
        ]

    def ask(self, name: str, trigger: Trigger, now: float) -> list[Action]:
        """Apply a command to one process.

        Raises:
            UnknownProcessError: there is no such process.
            InvalidTransitionError: the command is not possible in the process's state.
        """
        process = self.processes.get(name)
        if process is None:
            raise UnknownProcessError(name, self.processes)
        if self.closing:
            raise InvalidTransitionError("the cluster is going down")
        if trigger in (Trigger.START, Trigger.RESTART, Trigger.RESTART_KILL):
            process.failures = 0
        return self._move(process, trigger, now)

    def close(self, now: float, *, at_once: bool = False) -> list[Action]:
        """Stop all processes, stage by stage; with `at_once` kill those that are left."""
        self.closing = True
        for process in self.processes.values():  # no process may restart, whatever its stage
            if process.state in (ChildState.BACKOFF, ChildState.RESTARTING):
                self._move(process, Trigger.STOP, now)
        if at_once:
            running = [p for p in self.processes.values() if p.state in RUNNING]
            return [action for p in running for action in self._move(p, Trigger.KILL, now)]
        return self._close_stage(now)

    @property
    def closed(self) -> bool:
        """Whether no process is left and none will be started."""
        return self.closing and not any(p.state in RUNNING for p in self.processes.values())

    # -- events

    def became_ready(self, name: str, now: float) -> list[Action]:
        """Record that the process has announced itself and answers its health check."""
        process = self.processes[name]
        if process.state is not ChildState.STARTING:
            return []
        process.ever_ready = True
        process.ready_since = now
        return self._move(process, Trigger.BECAME_READY, now)

    def exited(self, name: str, code: int, reason: str, now: float) -> list[Action]:
        """Record an exit. `code` is the exit code, negative for a signal; `reason` is its description."""
        process = self.processes[name]
        process.last_exit = reason
        expected = process.state in (ChildState.STOPPING, ChildState.RESTARTING)
        refused = code == EXIT_USAGE and process.state is ChildState.STARTING
        if not expected:
            if process.ready_since is not None and now - process.ready_since >= self.policy.stable_after:
                process.failures = 0
            process.failures += 1
        process.ready_since = None
        hopeless = not process.ever_ready and process.failures >= self.policy.start_failures_max
        for_good = refused or hopeless or not self.policy.restart or self.closing
        actions = self._move(process, Trigger.DIED_FOR_GOOD if for_good else Trigger.DIED, now)
        return actions + (self._close_stage(now) if self.closing else [])

    def tick(self, now: float) -> list[Action]:
        """Return the actions that are due."""
        actions = []
        for process in self.processes.values():
            if process.deadline is not None and process.deadline <= now:
                process.deadline = None
                actions += self._move(process, Trigger.DEADLINE, now)
        return actions

    @property
    def next_deadline(self) -> float | None:
        """Return the time of the next `tick` that has something to do, or None."""
        return min((p.deadline for p in self.processes.values() if p.deadline is not None), default=None)

    @property
    def all_ready(self) -> bool:
        """Whether every process is ready (or was stopped by a command)."""
        return all(
            p.state in (ChildState.READY, ChildState.DOWN, ChildState.PAUSED) for p in self.processes.values()
        )

    def hopeless(self) -> list[ProcessState]:
        """Return the processes that crashed and will not be restarted."""
        return [p for p in self.processes.values() if p.state is ChildState.CRASHED]

    # -- internals

    def _move(self, process: ProcessState, trigger: Trigger, now: float) -> list[Action]:
        came_from = process.state
        try:
            found = step(came_from, trigger)
        except InvalidTransitionError as error:
            log = "; ".join(process.transition_log) or "none yet"
            raise InvalidTransitionError(f"{process.name}: {error} (its transitions: {log})") from None
        process.state = found.to
        if found.to is not came_from or found.effects:
            process.transition_log.append(f"{came_from} -> {found.to} ({trigger})")
        if found.to is not ChildState.READY:
            process.ready_since = None if found.to is not ChildState.PAUSED else process.ready_since
        process.deadline = self._deadline(process, came_from, now)
        if Effect.SPAWN in found.effects and came_from in (ChildState.BACKOFF, ChildState.RESTARTING):
            process.restarts += 1
        return [Action(process.name, effect) for effect in found.effects]

    def _deadline(self, process: ProcessState, came_from: ChildState, now: float) -> float | None:
        if process.state is ChildState.BACKOFF:
            return now + self.policy.delay(process.failures)
        if process.state in (ChildState.STOPPING, ChildState.RESTARTING):
            if came_from in (ChildState.STOPPING, ChildState.RESTARTING):
                return process.deadline
            return now + self.policy.stop_grace
        return None

    def _close_stage(self, now: float) -> list[Action]:
        """Stop the lowest stage that still runs."""
        running = [p for p in self.processes.values() if p.state in RUNNING]
        if not running:
            return []
        stage = min(p.stop_stage for p in running)
        return [
            action for p in running if p.stop_stage == stage for action in self._move(p, Trigger.STOP, now)
        ]
