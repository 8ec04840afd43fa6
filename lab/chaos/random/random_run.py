"""Perform a plan of random load and faults on any ScenarioCluster; then wait for rest, and check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio
import anyio.abc

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.disturbed_run import rest
from nominee.lab.chaos.perturbing import calm, points
from nominee.lab.chaos.random.load import Target, plan
from nominee.lab.chaos.random.load_client import LoadClient
from nominee.lab.chaos.random.operations import Arm, FailCalls, Fault, Freeze, JumpClock, Kill, Timed
from nominee.lab.chaos.rest.state import ANY_NODE, Expectations
from nominee.lab.history.invariants.pod_rules.late_rejections import OUT_OF
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.format.replacing import REPLACEABLE
from nominee.lab.scenario.result import Violation
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.client.api_client import retry_unavailable

QUIET_SECONDS_MAX = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a run: the operations, the violations, and the reasons for unrest."""

    operations: Counter[str]
    refused: Counter[str]
    """Operations that the cluster refused, as is usual while it is disturbed."""
    violations: tuple[Violation, ...]
    unsettled: str
    pods: int
    seconds: float


class RandomRun:
    """One run on one cluster."""

    def __init__(self, cluster: ScenarioCluster, say: Callable[[str], None]) -> None:
        self._cluster, self._say = cluster, say
        self._load = LoadClient(cluster)
        self._busy: set[str] = set()
        self._done: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()

    async def run(self, seed: int, seconds: float, rate: float) -> Outcome:
        """Perform the plan of a seed; return when the cluster is at rest, or should be."""
        clock = self._cluster.clock
        began = clock.monotonic()
        timed = plan(seed, seconds, rate, await self._target())
        await self._load.prepare()
        start = clock.monotonic()
        async with anyio.create_task_group() as tasks:
            for each in timed:
                await clock.sleep(start + each.at - clock.monotonic())
                self._say(f"{each.at:7.2f}s {each.operation}")
                tasks.start_soon(self._perform, each)
        unsettled = await self._settle()
        violations = tuple(await self._cluster.violations(()))
        pods = len((await self._cluster.client.list(kinds.POD)).items)
        return Outcome(
            operations=self._done,
            refused=self._refused,
            violations=violations,
            unsettled=unsettled,
            pods=pods,
            seconds=clock.monotonic() - began,
        )

    async def _target(self) -> Target:
        found = await points(self._cluster)
        components = {each.name: each.component for each in await self._cluster.processes()}
        return Target(
            failpoints={
                # A program that is not Nominee's has no failpoints.
                process: sorted(found.get(process, ()))
                for process, component in components.items()
                if process in found or component in REPLACEABLE
            },
            has_group="cloud" in components,
        )

    async def _perform(self, each: Timed) -> None:
        """Perform an operation; that it is refused is usual."""
        name = type(each.operation).__name__
        self._done[name] += 1
        try:
            if isinstance(each.operation, Fault):
                await self._disturb(each.operation)
            else:
                await self._load.perform(each.operation)
        except (StatusError, ClusterError) as error:
            self._refused[name] += 1
            self._say(f"{'':8} {each.operation} is refused: {error}")

    async def _disturb(self, fault: Fault) -> None:
        """Disturb a process for a time, unless it is disturbed already."""
        cluster, component = self._cluster, fault.component
        if component in self._busy:
            return
        self._busy.add(component)
        try:
            match fault:
                case Kill():
                    await cluster.stop(component, kill=True)
                    await cluster.clock.sleep(fault.seconds)
                    await cluster.start(component, None)
                case Freeze():
                    await cluster.pause(component)
                    await cluster.clock.sleep(fault.seconds)
                    await cluster.resume(component)
                case Arm():
                    await cluster.arm_failpoint(component, fault.failpoint, fault.action)
                    await cluster.clock.sleep(fault.seconds)
                    await cluster.arm_failpoint(component, fault.failpoint, "off")
                case FailCalls():
                    await cluster.inject_fault(component, fault.action, to="apiserver", kind=fault.kind)
                    await cluster.clock.sleep(fault.seconds)
                    await cluster.inject_fault(component, "off")
                case JumpClock():
                    await cluster.shift_clock(component, fault.offset_seconds)
                    await cluster.clock.sleep(fault.seconds)
                    await cluster.shift_clock(component, 0.0)
        finally:
            self._busy.discard(component)

    async def _settle(self) -> str:
        """End all faults and wait until the cluster is idle; return the reason if it is not."""
        cluster = self._cluster
        for process in await cluster.processes():
            with suppress(ClusterError):
                if process.state == "paused":
                    await cluster.resume(process.name)
                elif process.state == "down":
                    await cluster.start(process.name, None)
        await calm(cluster, Case(), await points(cluster))
        for name in await points(cluster):
            with suppress(ClusterError):
                await cluster.shift_clock(name, 0.0)
        for node in await self._cordoned():
            with suppress(StatusError):
                await self._load.uncordon(node)
        return await rest(cluster, Expectations(races=frozenset({(ANY_NODE, OUT_OF)})), QUIET_SECONDS_MAX)

    async def _cordoned(self) -> Sequence[str]:
        listed = await retry_unavailable(
            lambda: self._cluster.client.list(kinds.NODE), clock=self._cluster.clock
        )
        return [node.metadata.name for node in listed.items if node.spec.unschedulable]
