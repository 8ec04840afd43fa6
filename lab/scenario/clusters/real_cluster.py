"""A scenario's cluster of real processes, below the supervisor of `nominee up`."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.revision import Revision
from nominee.lab.history.verification.settings import settings_of
from nominee.lab.scenario.cluster import ScenarioCluster, damaged
from nominee.lab.scenario.clusters.recording import Recording
from nominee.lab.scenario.fields.options import ClusterOptions, ComponentOptions, InvariantException
from nominee.lab.scenario.format.up_options import arguments_of
from nominee.lab.scenario.result import Violation
from nominee.localcluster.cluster import (
    ClusterError,
    FaultState,
    ProcessState,
    RunningCluster,
)
from nominee.localcluster.supervisor.model.states import ChildState
from nominee.machinery.client import api_client as client_module
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime.clock import Clock, SystemClock
from nominee.machinery.runtime.faults.failpoint_registry import PointState
from nominee.machinery.wire.values.scalars import Json

_PROGRAM_SECONDS, _PROGRAM_POLL_SECONDS = 2.0, 0.1
"""For so long a program that is not Nominee's must run before the first step."""
_LINES_SHOWN = 5


class RealCluster(ScenarioCluster):
    """A running cluster in a state directory."""

    def __init__(
        self,
        directory: Path,
        client: Client,
        options: ClusterOptions,
        clock: Clock,
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        super().__init__(directory, client, clock)
        self._options = options
        self._processes = RunningCluster(directory)
        self._tasks = tasks
        self._recording = Recording(directory, clock)
        self._recorder = anyio.CancelScope()
        self._recorded = anyio.Event()
        self._reconfigured: set[str] = set()

    @classmethod
    @asynccontextmanager
    async def open(
        cls, directory: Path, options: ClusterOptions, clock: Clock | None = None
    ) -> AsyncIterator[RealCluster]:
        """Connect to a running cluster, record its history, and start its programs that are not Nominee's.

        Raises:
            ClusterError: a program does not start, or ends at once.
        """
        problem: ClusterError | None = None
        async with (
            await client_module.connect(directory, user_agent="nominee-scenario") as client,
            anyio.create_task_group() as tasks,
        ):
            cluster = cls(directory, client, options, clock or SystemClock(), tasks)
            cluster._record()
            try:
                await cluster._start_programs()
            except ClusterError as error:
                problem = error
            else:
                yield cluster
            tasks.cancel_scope.cancel()
        if problem is not None:
            raise problem  # within the task group it would be a group of exceptions

    async def _start_programs(self) -> None:
        for name, own in self._options.components.items():
            if own.command and not own.stopped:
                await self.start(name, ComponentOptions())
                await self._check_lives(name)

    async def _check_lives(self, program: str) -> None:
        """Watch a program that has just started; the supervisor would start it again and again.

        Raises:
            ClusterError: it has ended.
        """
        deadline = self.clock.monotonic() + _PROGRAM_SECONDS
        while self.clock.monotonic() < deadline:
            state = next(each for each in await self.processes() if each.name == program)
            if state.restarts or state.state != ChildState.READY:
                log = self.directory / "logs" / f"{program}.log"
                raise ClusterError(f"{program} does not stay up: {await anyio.to_thread.run_sync(_end, log)}")
            await self.clock.sleep(_PROGRAM_POLL_SECONDS)

    def _record(self) -> None:
        """Start to record the history."""
        self._recorder, self._recorded = anyio.CancelScope(), anyio.Event()
        self._tasks.start_soon(self._run_recorder, self._recorder, self._recorded)

    async def _run_recorder(self, scope: anyio.CancelScope, ended: anyio.Event) -> None:
        with scope:
            await self._recording.run()
        ended.set()

    # Processes

    async def processes(self) -> Sequence[ProcessState]:
        return await anyio.to_thread.run_sync(self._processes.processes)

    def _arguments(self, component: str, options: ComponentOptions) -> list[str]:
        if self._options.component(component).command:
            return []
        arguments = arguments_of(self._options, component, options)
        if any(not each.startswith("--apiserver=") for each in arguments):
            self._reconfigured.add(component)
        return arguments

    async def _start(self, component: str, options: ComponentOptions) -> None:
        arguments = self._arguments(component, options)
        await anyio.to_thread.run_sync(self._processes.start, component, arguments)

    async def stop(self, component: str, *, kill: bool) -> None:
        await anyio.to_thread.run_sync(partial(self._processes.stop, component, kill=kill))

    async def _restart(self, component: str, options: ComponentOptions, *, kill: bool) -> None:
        arguments = self._arguments(component, options)
        await anyio.to_thread.run_sync(partial(self._processes.restart, component, arguments, kill=kill))

    async def crash(self, component: str) -> None:
        pids = [each.pid for each in await self.processes() if component in (each.name, each.component)]
        if not any(pids):
            raise ClusterError(f"{component} does not run")
        for pid in filter(None, pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def pause(self, component: str) -> None:
        await anyio.to_thread.run_sync(self._processes.pause, component)

    async def resume(self, component: str) -> None:
        await anyio.to_thread.run_sync(self._processes.resume, component)

    # Serving ports

    async def http_json(self, component: str, path: str) -> Json:
        return await anyio.to_thread.run_sync(self._processes.get_json, component, path)

    async def metrics(self, component: str) -> str:
        return (await anyio.to_thread.run_sync(self._processes.get, component, "/metrics")).text

    async def failpoints(self, component: str) -> Sequence[PointState]:
        return await anyio.to_thread.run_sync(self._processes.failpoints, component)

    async def arm_failpoint(self, component: str, name: str, action: str) -> None:
        await anyio.to_thread.run_sync(self._processes.arm_failpoint, component, name, action)

    async def inject_fault(
        self, component: str, action: str, *, to: str = "*", method: str = "*", kind: str = "*"
    ) -> None:
        put = partial(self._processes.set_fault, component, action, to=to, method=method, kind=kind)
        await anyio.to_thread.run_sync(put)

    async def call_faults(self, component: str) -> FaultState:
        return await anyio.to_thread.run_sync(self._processes.call_faults, component)

    async def shift_clock(self, component: str, offset_seconds: float) -> None:
        await anyio.to_thread.run_sync(self._processes.shift_clock, component, offset_seconds)

    async def damage_checkpoint(self, node: str, how: str) -> None:
        await anyio.to_thread.run_sync(_damage, self.directory, node, how)

    # The end

    def first_violation(self, exceptions: Sequence[InvariantException]) -> Violation | None:
        """Return None: the history is checked when it ends."""
        return None

    async def history(self) -> Sequence[Revision]:
        return await anyio.to_thread.run_sync(self._recording.revisions)

    async def violations(self, exceptions: Sequence[InvariantException]) -> Sequence[Violation]:
        self._recorder.cancel()
        await self._recorded.wait()
        without = {exception.name for exception in exceptions}
        try:
            return await self._recording.violations(self._settings(), self.acknowledged.writes, without)
        finally:
            self._record()

    def _settings(self) -> ComponentSettings:
        """Return the settings of the processes; those that steps changed meanwhile are unknown."""
        settings = settings_of(self.directory, records_acknowledged=True)
        if "apiserver" in self._reconfigured:
            settings = replace(settings, clears_nominations=None)
        if "scheduler" in self._reconfigured:
            settings = replace(settings, preempts_for_resizes=None)
        if "autoscaler" in self._reconfigured:
            settings = replace(settings, protects_nominated_nodes=None, scale_down=None)
        return settings


def _end(log: Path) -> str:
    """Return the last lines of a log, and its path."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return "\n".join([f"see {log}", *lines[-_LINES_SHOWN:]])


def _damage(directory: Path, node: str, how: str) -> None:
    """Damage the file D/kubelet/NODE.json. Raises: ClusterError."""
    path = next(iter(sorted(directory.glob(f"kubelet/**/{node}.json"))), None)
    if path is None:
        raise ClusterError(f"node {node} has no checkpoint file")
    data = damaged(path.read_bytes(), how)
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
