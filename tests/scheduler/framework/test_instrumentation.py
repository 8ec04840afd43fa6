"""Hooks see what plugins do, and without hooks nothing is measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, FilterError, FilterPlugin, PostBindPlugin, Status
from nominee.scheduler.framework.plugin_hooks import PluginHooks
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.instrumentation import FAILED, PointHook, hooks_of
from nominee.scheduler.framework.scheduling.algorithm import find_feasible, prioritize
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.shell.metrics.timing import POINT_NAMES
from tests.scheduler.builders import UNREAD, Desk, Scripted, desk, node, pod
from tests.scheduler.performing import binding_plugins


class NoClock(FakeClock):
    """Fails the test when the time is read."""

    def monotonic(self) -> float:
        raise AssertionError("the clock was read without a hook")


class Odd(FilterPlugin):
    """Rejects n1; has no vectorised filter."""

    name = "Odd"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return Status(Code.Unschedulable, ("odd",)) if node.name == "n1" else None


class Everywhere(Scripted, PostBindPlugin):
    async def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Do nothing."""


SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "p"}},
}


def ready(clock: FakeClock) -> Desk:
    at = desk(Odd(), Everywhere(), environment={"clock": clock})
    at.add_nodes(node("n0"), node("n1"), node("n2"))
    at.cache.update_snapshot(at.framework.snapshot)
    return at


async def attempt(framework: Framework, state: CycleState) -> None:
    """Run every extension point of an attempt once."""
    who, snapshot = pod("p", topologySpreadConstraints=[SPREAD]), framework.snapshot
    search, _ = find_feasible(framework, state, who, snapshot)
    prioritize(framework, state, who, snapshot, np.asarray(search.rows, dtype=np.intp))
    framework.run_filter_plugins(state, who, snapshot.nodes[1])
    framework.run_pre_filter_extension_add_pod(state, who, pod("other"), snapshot.nodes[0])
    framework.run_post_filter_plugins(state, who, UNREAD)
    framework.run_reserve_plugins(state, who, "n0")
    framework.run_permit_plugins(state, who, "n0")
    framework.run_pre_bind_pre_flights(state, who, "n0")
    await binding_plugins(framework).pre_bind(framework, state, who, "n0")
    framework.run_unreserve_plugins(state, who, "n0")
    await binding_plugins(framework).bind(framework, state, who, "n0")
    await binding_plugins(framework).post_bind(framework, state, who, "n0")


async def test_without_hooks_the_clock_is_not_read() -> None:
    await attempt(ready(NoClock()).framework, CycleState())


class Calls:
    """Counts the calls of each method and keeps the last arguments of one."""

    counts: Counter[str]


def _counting(name: str) -> Any:
    def method(self: Calls, *args: Any) -> None:
        self.counts[name] += 1

    return method


for _field in fields(PluginHooks):
    setattr(Calls, _field.name, _counting(_field.name))


async def test_every_hook_is_called() -> None:
    calls = Calls()
    calls.counts = Counter()
    framework = ready(FakeClock()).framework
    points: Counter[str] = Counter()

    def counting(name: str) -> PointHook:
        return lambda state, status, seconds: points.update([name])

    framework.point_hooks = {name: (counting(name),) for name in POINT_NAMES}
    await attempt(framework, CycleState(hooks_of(calls)))
    assert set(calls.counts) == {each.name for each in fields(PluginHooks)}
    assert set(points) == set(POINT_NAMES)
    assert set(points.values()) == {1}


async def test_a_hook_sees_the_plugins_answer_and_duration() -> None:
    seen: list[tuple[str, Status | None, float]] = []

    class Slow(Scripted):
        def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Any:
            clock.set(clock.now() + 2.0)
            return super().permit(state, pod, node_name)

    class Observer:
        def permit(
            self,
            state: CycleState,
            plugin: str,
            status: Status | None,
            timeout_seconds: float,
            seconds: float,
        ) -> None:
            seen.append((plugin, status, timeout_seconds + seconds))

    clock = FakeClock()
    waits = Status(Code.Wait)
    framework = desk(Slow(permit_status=(waits, 60.0)), environment={"clock": clock}).framework
    framework.run_permit_plugins(CycleState(hooks_of(Observer())), pod("p"), "n0")
    assert seen == [("Scripted", waits, 62.0)]


def test_an_extension_point_that_raises_counts_as_an_error() -> None:
    seen: list[Status | None] = []

    class Broken(Odd):
        def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
            raise ValueError("broken")

    at = desk(Broken())
    at.add_nodes(node("n0"))
    at.cache.update_snapshot(at.framework.snapshot)
    at.framework.point_hooks = {"filter": (lambda state, status, seconds: seen.append(status),)}
    with pytest.raises(FilterError, match='running "Odd" filter plugin: broken'):
        find_feasible(at.framework, CycleState(), pod("p"), at.framework.snapshot)
    assert seen == [FAILED]


async def test_the_clone_of_a_state_has_its_hooks() -> None:
    hooks = hooks_of(Calls())
    assert CycleState(hooks).clone().hooks is hooks
