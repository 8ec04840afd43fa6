"""A scenario's cluster in a simulation."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from nominee.lab.history.gone import names_of_gone
from nominee.lab.history.invariants.check import Result
from nominee.lab.history.invariants.checking.evidence import CheckpointedPod, Evidence
from nominee.lab.history.invariants.table import CHECKERS
from nominee.lab.history.revision import Revision
from nominee.lab.history.verification.evidence import checkpointed_pods, queued_pods
from nominee.lab.history.verification.settings import settings_from
from nominee.lab.history.verification.verification import settled
from nominee.lab.scenario.cluster import ScenarioCluster, damaged, violation_of
from nominee.lab.scenario.clusters.running_check import RunningCheck
from nominee.lab.scenario.clusters.simulated_processes import SimulatedProcesses
from nominee.lab.scenario.fields.options import ClusterOptions, ComponentOptions, InvariantException
from nominee.lab.scenario.format.up_options import arguments_of
from nominee.lab.scenario.result import Violation
from nominee.localcluster.cluster import ClusterError, FaultState, ProcessState
from nominee.localcluster.supervisor.model.states import ChildState, Trigger
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime.faults.action_chain import ActionError
from nominee.machinery.runtime.faults.failpoint_registry import PointState
from nominee.machinery.wire.values.scalars import Json
from nominee.simulation.asgi import Answer
from nominee.simulation.leftovers import Holdings, holdings
from nominee.simulation.simulation import DIRECTORY, Simulation
from nominee.simulation.started import NoAnswerError, Started

_TRACEBACK: Final = "Traceback (most recent call last)"


class SimulatedCluster(ScenarioCluster):
    """A running cluster of a simulation."""

    def __init__(
        self,
        simulation: Simulation,
        processes: SimulatedProcesses,
        client: Client,
        options: ClusterOptions,
        running_check: RunningCheck,
    ) -> None:
        super().__init__(DIRECTORY, client, simulation.clock)
        self._simulation, self._processes, self._options = simulation, processes, options
        self._running_check = running_check

    # Processes.

    async def processes(self) -> Sequence[ProcessState]:
        return self._processes.states()

    async def _start(self, component: str, options: ComponentOptions) -> None:
        arguments = arguments_of(self._options, component, options)
        self._processes.ask(component, Trigger.START, arguments)
        await self._processes.until(component, ChildState.READY)

    async def stop(self, component: str, *, kill: bool) -> None:
        self._processes.ask(component, Trigger.KILL if kill else Trigger.STOP)
        await self._processes.until(component, ChildState.DOWN)

    async def _restart(self, component: str, options: ComponentOptions, *, kill: bool) -> None:
        arguments = arguments_of(self._options, component, options)
        self._processes.ask(component, Trigger.RESTART_KILL if kill else Trigger.RESTART, arguments)
        await self._processes.until(component, ChildState.READY)

    async def crash(self, component: str) -> None:
        for started in self._started(component):
            self._simulation.kill(started.name)

    async def crash_all(self) -> None:
        ready = [each.name for each in self._processes.states() if each.state == ChildState.READY]
        for name in ready:
            self._processes.ask(name, Trigger.RESTART_KILL)
        for name in ready:
            await self._processes.until(name, ChildState.READY)

    async def pause(self, component: str) -> None:
        self._processes.ask(component, Trigger.PAUSE)

    async def resume(self, component: str) -> None:
        self._processes.ask(component, Trigger.RESUME)

    def _started(self, component: str) -> list[Started]:
        """Return the running processes of a name. Raises: ClusterError."""
        found = [self._simulation.processes.get(name) for name in self._processes.names(component)]
        running = [each for each in found if each is not None and each.running]
        if not running:
            raise ClusterError(f"{component} does not run")
        return running

    # Faults.

    async def arm_failpoint(self, component: str, name: str, action: str) -> None:
        for started in self._started(component):
            try:
                started.points.arm(name, action)
            except ActionError as error:
                raise ClusterError(str(error)) from None

    async def failpoints(self, component: str) -> Sequence[PointState]:
        """Return a process's failpoints, and those of other components without hits."""
        return self._started(component)[0].points.states()

    async def inject_fault(
        self, component: str, action: str, *, to: str = "*", method: str = "*", kind: str = "*"
    ) -> None:
        if component.startswith("etcd"):
            raise ClusterError("links between etcd members are not simulated")
        for started in self._started(component):
            try:
                started.faults.put(action, to, method, kind)
            except ActionError as error:
                raise ClusterError(str(error)) from None
        self._simulation.use_rules()

    async def call_faults(self, component: str) -> FaultState:
        faults = self._started(component)[0].faults
        return FaultState(rules=faults.states(), calls=faults.counts())

    async def shift_clock(self, component: str, offset_seconds: float) -> None:
        for started in self._started(component):
            started.clock.offset = offset_seconds

    async def damage_checkpoint(self, node: str, how: str) -> None:
        files = self._simulation.files.content
        path = DIRECTORY / "kubelet" / f"{node}.json"
        if path not in files:
            raise ClusterError(f"node {node} has no checkpoint file")
        data = damaged(files.pop(path), how)
        if data is not None:
            files[path] = data

    # Observation.

    async def _get(self, component: str, path: str) -> Answer:
        started = self._started("kubelet-0" if component == "kubelet" else component)[0]
        try:
            answer = await started.get(path)
        except NoAnswerError as error:
            raise ClusterError(str(error)) from None
        if answer.status >= HTTPStatus.BAD_REQUEST:
            text = answer.body.decode(errors="replace").strip()
            raise ClusterError(f"{component}{path} answers {answer.status}: {text}")
        return answer

    async def http_json(self, component: str, path: str) -> Json:
        return json.loads((await self._get(component, path)).body)

    async def metrics(self, component: str) -> str:
        """Return a process's metrics. Those of kubelets are of all kubelets, and of earlier simulations."""
        return (await self._get(component, "/metrics")).body.decode()

    def callbacks(self) -> Mapping[str, int]:
        return {name: each.owner.callbacks for name, each in self._simulation.processes.items()}

    def holdings(self) -> Mapping[str, Holdings]:
        gone = names_of_gone(self._running_check.revisions)
        tasks = self._simulation.loop.tasks_by_owner()
        found: dict[str, Holdings] = {}
        for state in self._processes.states():
            process = self._simulation.processes.get(state.name)
            # A paused process forgets nothing, and is not restarted by `crash_all`.
            if process is not None and process.running and state.state != ChildState.PAUSED:
                roots = [task.get_coro() for task in tasks.get(process.owner, ())]
                found[state.name] = holdings(state.component, roots, gone)
        return found

    # The end.

    async def history(self) -> Sequence[Revision]:
        return self._running_check.revisions

    def first_violation(self, exceptions: Sequence[InvariantException]) -> Violation | None:
        """Return the first violation that a write has shown, None if there was none yet."""
        excepted = {exception.name for exception in exceptions}
        found = (each for each in self._running_check.violations if each.invariant not in excepted)
        return next(map(violation_of, found), None)

    async def violations(self, exceptions: Sequence[InvariantException]) -> Sequence[Violation]:
        excepted = {exception.name for exception in exceptions}
        names = [each.about.name for each in CHECKERS if each.about.name not in excepted]
        results = await settled(await self._check(names), self._check, self.clock)
        return [violation_of(found) for result in results for found in result.violations]

    async def _check(self, names: Collection[str]) -> Sequence[Result]:
        evidence = Evidence(
            now=self.clock.now(),
            acknowledged=self.acknowledged.writes,
            queued_pods=await self._queued_pods(),
            checkpoints=self._checkpoints(),
            errors=self._errors(),
            scaled_down=self._running_check.scaled_down,
        )
        settings = settings_from(self._processes.configured, records_acknowledged=True)
        return self._running_check.results(names, settings, evidence)

    async def _queued_pods(self) -> frozenset[ObjectKey] | None:
        """Return the pods in the schedulers' queues; None if no scheduler answers."""
        found: frozenset[ObjectKey] | None = None
        for state in self._processes.states():
            if state.component == "scheduler":
                with suppress(ClusterError):
                    document = await self.http_json(state.name, "/debug/queue")
                    found = (found or frozenset()) | queued_pods(document)
        return found

    def _errors(self) -> tuple[str, ...]:
        """Return the errors that processes did not foresee: first and last line of each entry."""
        logged = [line.splitlines() for line in self._simulation.log if _TRACEBACK in line]
        found = [f"{lines[0]}: {lines[-1]}" for lines in logged]
        return tuple(dict.fromkeys([*found, *self._simulation.loop.problems]))

    def _checkpoints(self) -> dict[str, Mapping[str, CheckpointedPod]] | None:
        """Return the checkpoints, if all kubelets run."""
        states = self._processes.states()
        if not all(each.state == ChildState.READY for each in states if each.name.startswith("kubelet")):
            return None
        folder = DIRECTORY / "kubelet"
        files = self._simulation.files.content.items()
        found = {path.stem: checkpointed_pods(data) for path, data in files if path.parent == folder}
        return {node: pods for node, pods in found.items() if pods is not None}
