"""Many nodes with nominations at once: the same verdicts as node by node, also when things change between."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nominee.machinery.api.pb import core
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    NominatingInfo,
    NominatingMode,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    Status,
)
from nominee.scheduler.framework.nominations.contended_nodes import PRIORITIES_MAX
from nominee.scheduler.framework.scheduling.algorithm import find_feasible
from nominee.scheduler.framework.scheduling.diagnosis import FitError, NodeStatusTable
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from tests.scheduler.builders import Desk, desk, node, pod
from tests.scheduler.clusters import clusters, pod_documents, read_pod


def on_node(name: str) -> NominatingInfo:
    return NominatingInfo(NominatingMode.Override, name)


def check(on: Desk, who: PodInfo) -> None:
    """Verdicts and reasons of all nodes at once against each node alone."""
    framework, state = on.framework, CycleState()
    on.cache.update_snapshot(framework.snapshot)
    snapshot = framework.snapshot
    try:
        search, _ = find_feasible(framework, state, who, snapshot)
    except FitError as error:
        found: list[str] = []
        statuses: NodeStatusTable | None = error.diagnosis.statuses
    else:
        found = [snapshot.nodes[row].name for row in search.rows.tolist()]
        statuses = None
    narrowed, status, _ = framework.run_pre_filter_plugins(CycleState(), who, snapshot)
    if status is not None:
        return
    wanted = []
    for info in snapshot.nodes:
        if narrowed.node_names is not None and info.name not in narrowed.node_names:
            continue
        rejection = framework.run_filter_plugins_with_nominated_pods(state, who, info)
        if rejection is None:
            wanted.append(info.name)
        elif statuses is not None:
            assert statuses.get(info.name) == rejection
    assert found == wanted


@settings(max_examples=60, deadline=None)
@given(cluster=clusters(), data=st.data())
def test_like_node_by_node(
    cluster: tuple[list[core.Node], list[core.Pod], core.Pod], data: st.DataObject
) -> None:
    nodes, pods, pending = cluster
    on = desk(without=("DefaultPreemption", "DynamicResources", "VolumeBinding"))
    on.add_nodes(*nodes)
    for each in pods:
        on.cache.add_pod(PodInfo(each))
    who = PodInfo(pending)
    names = [*(n.metadata.name for n in nodes), "missing"]
    for step in range(3):
        for index in range(data.draw(st.integers(0, 3))):
            other = PodInfo(read_pod(data.draw(pod_documents(f"nominated-{index}"))))
            on.nominator.add(other, on_node(data.draw(st.sampled_from(names))))
        if step == 1:
            on.nominator.add(who, on_node(data.draw(st.sampled_from(names))))
        if data.draw(st.booleans()):
            on.nominator.delete("uid-nominated-0")
        if data.draw(st.booleans()):
            bound = read_pod(data.draw(pod_documents(f"bound-{step}", nodes[0].metadata.name)))
            on.cache.add_pod(PodInfo(bound))
        check(on, who)


class Follower(PreFilterPlugin):
    """A plugin that follows added pods."""

    name = "Follower"

    def __init__(self) -> None:
        self.added: list[tuple[str, str]] = []

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Any
    ) -> tuple[PreFilterResult | None, Status | None]:
        return None, None

    def pre_filter_extensions(self) -> PreFilterExtensions:
        return self

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status | None:
        self.added.append((added.name, node.name))
        return None

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status | None:
        return None


def test_plugins_that_follow_pods_are_called() -> None:
    follower = Follower()
    on = desk(follower)
    on.add_nodes(node("n0"), node("n1"))
    on.nominator.add(pod("rival", cpu="3", priority=5), on_node("n1"))
    on.cache.update_snapshot(on.framework.snapshot)
    search, _ = find_feasible(on.framework, CycleState(), pod("a", cpu="2"), on.framework.snapshot)
    assert search.rows.tolist() == [0]
    assert ("rival", "n1") in follower.added


@pytest.mark.parametrize("count", [PRIORITIES_MAX + 3])
def test_copies_are_kept_for_few_priorities(count: int) -> None:
    on = desk()
    on.add_nodes(node("n0"))
    on.nominator.add(pod("rival", cpu="3", priority=100), on_node("n0"))
    on.cache.update_snapshot(on.framework.snapshot)
    for priority in range(count):
        who = pod("a", cpu="2", priority=priority)
        with pytest.raises(FitError):
            find_feasible(on.framework, CycleState(), who, on.framework.snapshot)
    assert len(on.framework.contended._by_priority) == PRIORITIES_MAX
