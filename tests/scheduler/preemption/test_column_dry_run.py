"""The dry run over columns: the same candidates and statuses as node by node, on random clusters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core, policy
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import codec
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    FilterPlugin,
    NodeStatuses,
    NominatingInfo,
    NominatingMode,
    Plugin,
    Status,
)
from nominee.scheduler.framework.scheduling.algorithm import find_feasible
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.default_preemption import DefaultPreemption
from nominee.scheduler.preemption.dry_runs.column_dry_run import ColumnDryRun
from nominee.scheduler.preemption.evaluator import Decision
from tests.scheduler.builders import Desk, desk, node, pod

NOW = 100
PRIORITY = 10


@dataclass(frozen=True)
class Pdbs:
    """A lister of PodDisruptionBudgets."""

    items: tuple[policy.PodDisruptionBudget, ...]

    def list(self, namespace: str = "") -> list[policy.PodDisruptionBudget]:
        return list(self.items)


def budget(name: str, allowed: int, **labels: str) -> policy.PodDisruptionBudget:
    made: policy.PodDisruptionBudget = codec.from_json(
        kinds.POD_DISRUPTION_BUDGET.message,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {"disruptionsAllowed": allowed},
        },
    )
    return made


@contextmanager
def node_by_node() -> Iterator[None]:
    with mock.patch.object(ColumnDryRun, "is_possible", return_value=False):
        yield


@contextmanager
def counted() -> Iterator[list[int]]:
    """Yield a list that gets the number of nodes of each round over columns."""
    rounds: list[int] = []
    select = ColumnDryRun.select

    def counting(self: ColumnDryRun, nodes: Any) -> Any:
        rounds.append(len(nodes))
        return select(self, nodes)

    with mock.patch.object(ColumnDryRun, "select", counting):
        yield rounds


def rejected(on: Desk, who: PodInfo, state: CycleState) -> NodeStatuses | None:
    snapshot = on.framework.snapshot
    on.cache.update_snapshot(snapshot)
    try:
        find_feasible(on.framework, state, who, snapshot)
    except FitError as error:
        return error.diagnosis.statuses
    return None


def decided(on: Desk, state: CycleState, who: PodInfo, statuses: NodeStatuses, seed: int = 0) -> Decision:
    plugin = on.framework.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    on.framework.rng.seed(seed)
    return plugin.decide(state, who, statuses)


def check(on: Desk, who: PodInfo, seed: int) -> None:
    """Compare the decisions over columns and node by node, and the order of everything in them."""
    state = CycleState()
    statuses = rejected(on, who, state)
    if statuses is None:
        return
    assert ColumnDryRun.is_possible(on.framework, state)
    over_columns = decided(on, state, who, statuses, seed)
    with node_by_node():
        one_by_one = decided(on, state, who, statuses, seed)
    assert over_columns == one_by_one
    assert list(over_columns.node_statuses or {}) == list(one_by_one.node_statuses or {})


@st.composite
def running_pods(draw: st.DrawFn, names: list[str], at_least: int = 0) -> list[core.Pod]:
    """Draw pods that fill the nodes, of several priorities and starts, some of which budgets cover."""
    found = []
    for index in range(draw(st.integers(at_least, at_least + 12))):
        each = pod(
            f"running-{index}",
            cpu=draw(st.sampled_from(("250m", "500m", "1", "2"))),
            on=draw(st.sampled_from(names)),
            priority=draw(st.sampled_from((-5, 0, 3, PRIORITY, 20))),
        ).pod
        each.metadata.labels["app"] = draw(st.sampled_from(("web", "db", "none")))
        started = draw(st.sampled_from((None, 5, 50, NOW, NOW + 50)))
        if started is not None:
            each.status.startTime.seconds = started
        found.append(each)
    return found


class Picky(FilterPlugin):
    """A filter from outside that does not look at pods, and rejects so that preemption tries the node."""

    name = "Picky"
    looks_at_pods = False

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return Status(Code.Unschedulable, ("picky",)) if node.name == "n1" else None


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_like_node_by_node(data: st.DataObject) -> None:
    allowed = data.draw(st.lists(st.integers(0, 2), max_size=2))
    pdbs = tuple(budget(app, left, app=app) for app, left in zip(("web", "db"), allowed, strict=False))
    on = desk(
        *([Picky()] if data.draw(st.booleans()) else []),
        without=(),
        environment={
            "listers": {kinds.POD_DISRUPTION_BUDGET: Pdbs(pdbs)},
            "clock": FakeClock(now=NOW),
        },
    )
    names = [f"n{index}" for index in range(data.draw(st.integers(1, 3)))]
    for name in names:
        taints = [{"key": "a", "effect": "NoSchedule"}] if data.draw(st.integers(0, 5)) == 0 else []
        on.add_nodes(node(name, cpu="2", pods=data.draw(st.integers(3, 8)), taints=taints))
    for each in data.draw(running_pods(names, at_least=4 * len(names))):
        on.cache.add_pod(PodInfo(each))
    for index in range(data.draw(st.integers(0, 2))):
        rival = pod(f"rival-{index}", cpu="500m", priority=data.draw(st.sampled_from((0, PRIORITY))))
        where = data.draw(st.sampled_from(names))
        on.nominator.add(rival, NominatingInfo(NominatingMode.Override, where))
    cpu = data.draw(st.sampled_from(("500m", "1", "1500m", "2")))
    check(on, pod("who", cpu=cpu, priority=PRIORITY), seed=0)


def full_desk(count: int, *plugins: Plugin) -> Desk:
    """A cluster of nodes with 4 cpu, each with four pods of 900m and priority 0."""
    on = desk(*plugins, without=())
    for index in range(count):
        on.add_nodes(node(f"n{index}"))
        for number in range(4):
            on.cache.add_pod(pod(f"p{index}-{number}", cpu="900m", on=f"n{index}"))
    return on


def test_all_nodes_are_tried_in_few_rounds() -> None:
    on = full_desk(300)
    who, state = pod("who", cpu="3", priority=PRIORITY), CycleState()
    statuses = rejected(on, who, state)
    assert statuses is not None
    with counted() as rounds:
        decision = decided(on, state, who, statuses)
    assert rounds == [100]
    assert {len(candidate.victims) for candidate in decision.candidates} == {3}
    assert len(decision.candidates) == 100


def test_further_rounds_look_for_what_is_missing() -> None:
    on = full_desk(300)
    for index in range(300):
        if index % 3:
            on.nominator.add(
                pod(f"rival-{index}", cpu="3", priority=PRIORITY),
                NominatingInfo(NominatingMode.Override, f"n{index}"),
            )
    who, state = pod("who", cpu="3", priority=PRIORITY), CycleState()
    statuses = rejected(on, who, state)
    assert statuses is not None
    with counted() as rounds:
        decision = decided(on, state, who, statuses)
    assert len(decision.candidates) == 100
    assert sum(rounds) <= 300
    assert len(rounds) > 1
    check(on, who, seed=0)


class SeesPods(FilterPlugin):
    """A filter from outside: at most three pods on a node."""

    name = "SeesPods"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return None if len(node.pods) < 3 else Status(Code.Unschedulable, ("three pods",))


class Breaks(FilterPlugin):
    """A filter from outside that fails on one node."""

    name = "Breaks"
    looks_at_pods = False
    is_broken = False

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if self.is_broken and node.name == "n1":
            raise ValueError("broken")
        return None


def test_a_filter_that_sees_pods_is_asked_node_by_node() -> None:
    on = full_desk(3, SeesPods())
    with counted() as rounds:
        who, state = pod("who", cpu="1", priority=PRIORITY), CycleState()
        statuses = rejected(on, who, state)
        assert statuses is not None
        decision = decided(on, state, who, statuses)
    assert [len(candidate.victims) for candidate in decision.candidates] == [2, 2, 2]
    assert rounds == []


def test_a_filter_that_breaks_gives_its_node_an_error() -> None:
    breaks = Breaks()
    on = full_desk(3, breaks)
    who, state = pod("who", cpu="3", priority=PRIORITY), CycleState()
    statuses = rejected(on, who, state)
    assert statuses is not None
    breaks.is_broken = True
    decision = decided(on, state, who, statuses)
    assert sorted(candidate.node for candidate in decision.candidates) == ["n0", "n2"]
    broken = (decision.node_statuses or {})["n1"]
    assert broken.code is Code.Error
    assert broken.message() == 'running "Breaks" filter plugin: broken'


class Fails(FilterPlugin):
    """Raises on some nodes, where it has a text for them."""

    name = "Fails"
    looks_at_pods = False

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if node.name in self.texts:
            raise ValueError(self.texts[node.name])
        return None


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            {"n0": "a", "n1": "b", "n2": "a"},
            '[running "Fails" filter plugin: a, running "Fails" filter plugin: b]',
        ),
        ({"n0": "a", "n1": "a", "n2": "a"}, 'running "Fails" filter plugin: a'),
    ],
)
def test_errors_of_all_nodes_are_one_error(texts: dict[str, str], message: str) -> None:
    fails = Fails()
    on = full_desk(3, fails)
    who, state = pod("who", cpu="3", priority=PRIORITY), CycleState()
    statuses = rejected(on, who, state)
    assert statuses is not None
    fails.texts = texts
    status = decided(on, state, who, statuses, seed=2).status
    assert status is not None
    assert (status.code, status.message()) == (Code.Error, message)


@pytest.mark.parametrize("kept", ["1", "2"])
def test_a_change_of_the_node_is_seen(kept: str) -> None:
    on = full_desk(1)
    who = pod("who", cpu="3", priority=PRIORITY)
    check(on, who, seed=0)
    on.cache.remove_pod(pod("p0-0", cpu="900m", on="n0"))
    on.cache.add_pod(pod("new", cpu=kept, on="n0", priority=1))
    check(on, who, seed=0)
    state = CycleState()
    statuses = rejected(on, who, state)
    assert statuses is not None
    [candidate] = decided(on, state, who, statuses).candidates
    assert "new" in {victim.name for victim in candidate.victims} or kept == "1"
