"""The demo plugin's PreBind takes as long as the annotation says, and ends if the node or the pod is gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from nominee.lab.demo_plugins import DELAY, SlowPreBind
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import core
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, Handle
from nominee.scheduler.framework.types import PodInfo
from tests.lab.invariants.histories import node, pod


class _Cluster:
    """A clock whose sleep applies the next of `changes`, and the objects."""

    def __init__(self, *changes: core.Pod | core.Node | None) -> None:
        self.pod = pod("p")
        self.pod.metadata.annotations[DELAY] = "1h"
        self._changes, self._now = list(changes), 0.0
        self._pods = {("p", "default"): self.pod}
        self._nodes = {"n1": node("n1")}

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._now += seconds
        change = self._changes.pop(0)
        if isinstance(change, core.Pod):
            self._pods["p", "default"] = change
        elif change is None:
            self._pods.clear()
        else:
            self._nodes.clear()

    def lister(self, kind: AnyKind) -> SimpleNamespace:
        if kind is kinds.NODE:
            return SimpleNamespace(get=self._nodes.get)
        return SimpleNamespace(get=lambda name, namespace: self._pods.get((name, namespace)))


async def _pre_bind(cluster: _Cluster) -> tuple[Code, str]:
    handle = cast("Handle", SimpleNamespace(clock=cluster, lister=cluster.lister))
    status = await SlowPreBind({}, handle).pre_bind(CycleState(), PodInfo(cluster.pod), "n1")
    return (Code.Success, "") if status is None else (status.code, status.message())


async def test_the_delay_is_shortened() -> None:
    shorter = pod("p")
    shorter.metadata.annotations[DELAY] = "0s"
    assert await _pre_bind(_Cluster(shorter)) == (Code.Success, "")


@pytest.mark.parametrize("replaced", [False, True])
async def test_the_pod_is_gone(replaced: bool) -> None:
    other = pod("p")
    other.metadata.uid = "other"
    cluster = _Cluster(other if replaced else None)
    assert await _pre_bind(cluster) == (Code.Error, 'pod "default/p" is gone')


async def test_the_node_is_gone() -> None:
    assert await _pre_bind(_Cluster(node("n1"))) == (Code.Error, 'node "n1" is gone')
