"""A cluster for a scenario: of real processes, or of a simulation in one process.

The runner has no other access to processes, files or time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nominee.lab.history.invariants.checking import checker
from nominee.lab.history.revision import Revision
from nominee.lab.history.verification.acknowledged import AcknowledgedWrites
from nominee.lab.scenario import cloud
from nominee.lab.scenario.fields.options import ComponentOptions, InvariantException
from nominee.lab.scenario.result import Violation
from nominee.localcluster.cluster import ClusterError, FaultState, ProcessState
from nominee.localcluster.components import find_process
from nominee.machinery.api import kinds
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.runtime.faults.failpoint_registry import PointState
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.simulation.leftovers import Holdings


class ScenarioCluster(ABC):
    """A running cluster in a state directory, the time of its scenario, and a client as administrator.

    Components are named as in `nominee status` (`scheduler`, `kubelet-0`); `kubelet` is all kubelets.
    Every method may raise ClusterError.
    """

    def __init__(self, directory: Path, client: Client, clock: Clock) -> None:
        self.directory, self.client, self.clock = directory, client, clock
        self.acknowledged = client.write_observer = AcknowledgedWrites()
        self._last_options: dict[str, ComponentOptions] = {}

    # Processes.

    @abstractmethod
    async def processes(self) -> Sequence[ProcessState]:
        """Return the state of every process."""

    async def start(self, component: str, options: ComponentOptions | None) -> None:
        """Start a component that is down, with the cluster's options and these; return when it is ready.

        None: with the options of its last start, but for the failpoints.
        """
        chosen = self._chosen(component, options)
        await self._start(component, chosen)
        self._note_start(component, chosen)

    @abstractmethod
    async def stop(self, component: str, *, kill: bool) -> None:
        """Stop a component, with SIGKILL if asked; it stays down until `start`."""

    async def restart(self, component: str, options: ComponentOptions | None, *, kill: bool) -> None:
        """Restart a component with the cluster's options and these; return when it is ready.

        None: with the options of its last start, but for the failpoints.
        """
        chosen = self._chosen(component, options)
        await self._restart(component, chosen, kill=kill)
        self._note_start(component, chosen)

    @abstractmethod
    async def _start(self, component: str, options: ComponentOptions) -> None:
        """Start a component with the cluster's options and these."""

    @abstractmethod
    async def _restart(self, component: str, options: ComponentOptions, *, kill: bool) -> None:
        """Restart a component with the cluster's options and these."""

    def _chosen(self, component: str, options: ComponentOptions | None) -> ComponentOptions:
        """Return the options of a start."""
        if options is not None:
            return options
        kind, _ = find_process(component)
        return self._last_options.get(component) or self._last_options.get(kind.name) or ComponentOptions()

    def _note_start(self, component: str, options: ComponentOptions) -> None:
        """Keep the options of a start for the next one without any."""
        self._last_options[component] = replace(options, failpoints={})

    @abstractmethod
    async def crash(self, component: str) -> None:
        """Kill a component that runs, as a crash ends it: its supervisor starts it again."""

    async def crash_all(self) -> None:
        """Kill all processes that run; return when they are ready again, with the options that they had."""
        raise ClusterError("only simulated processes are killed together: real ones would take seconds")

    @abstractmethod
    async def pause(self, component: str) -> None:
        """Freeze a component (SIGSTOP)."""

    @abstractmethod
    async def resume(self, component: str) -> None:
        """Continue a paused component."""

    # Faults.

    @abstractmethod
    async def arm_failpoint(self, component: str, name: str, action: str) -> None:
        """Arm a failpoint, or disarm it with `off`."""

    @abstractmethod
    async def failpoints(self, component: str) -> Sequence[PointState]:
        """Return the failpoints of a running component."""

    @abstractmethod
    async def inject_fault(
        self, component: str, action: str, *, to: str = "*", method: str = "*", kind: str = "*"
    ) -> None:
        """Set a fault of the calls of a component to others, or remove faults (`off`); `*` is all."""

    @abstractmethod
    async def call_faults(self, component: str) -> FaultState:
        """Return the faults of one running process, and the calls that it made while it had some."""

    @abstractmethod
    async def shift_clock(self, component: str, offset_seconds: float) -> None:
        """Shift the wall clock of a component relative to the cluster's clock."""

    @abstractmethod
    async def damage_checkpoint(self, node: str, how: str) -> None:
        """Damage the checkpoint of a node: `corrupt`, `truncate` or `delete`."""

    # Observation.

    @abstractmethod
    async def http_json(self, component: str, path: str) -> Json:
        """Return the JSON that a component serves at a path of its serving port."""

    @abstractmethod
    async def metrics(self, component: str) -> str:
        """Return a component's metrics in Prometheus' text format."""

    def callbacks(self) -> Mapping[str, int]:
        """Return how many callbacks each process has run; nothing where they are not counted."""
        return {}

    def holdings(self) -> Mapping[str, Holdings]:
        """Return the holdings of each process; none where they are not known."""
        return {}

    # Nodes of the cloud.

    async def increase_node_group(self, group: str, count: int) -> None:
        """Create instances of a node group; their nodes appear later."""
        await cloud.increase(self.directory, group, count)

    async def delete_nodes(self, group: str, nodes: Sequence[str]) -> None:
        """Delete instances of a node group by the names of their nodes."""
        found = [await self.client.get(kinds.NODE, name) for name in nodes]
        await cloud.delete(self.directory, group, found)

    # The end.

    @abstractmethod
    def first_violation(self, exceptions: Sequence[InvariantException]) -> Violation | None:
        """Return the first violation so far of an invariant that is not excepted, if it is known already."""

    @abstractmethod
    async def history(self) -> Sequence[Revision]:
        """Return every write of the cluster so far."""

    @abstractmethod
    async def violations(self, exceptions: Sequence[InvariantException]) -> Sequence[Violation]:
        """Check the invariants on the history of all objects so far; return the violations."""


def damaged(data: bytes, how: str) -> bytes | None:
    """Return the damaged content of a checkpoint: `corrupt` or `truncate`; None for `delete`."""
    if how == "delete":
        return None
    middle = len(data) // 2
    changed = b"" if how == "truncate" else bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]
    return data[:middle] + changed


def violation_of(found: checker.Violation) -> Violation:
    """Return a violation for the result of a scenario."""
    return Violation(
        invariant=found.invariant, message=found.message, revisions=found.revisions, objects=found.objects
    )
