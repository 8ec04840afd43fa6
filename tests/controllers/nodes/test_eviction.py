"""The controller of evictions by NoExecute taints, without its queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from google.protobuf.message import Message

from nominee.controllers.nodes.shell.eviction import TaintEviction
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import Context
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import get_condition, key_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.features.gates import DEFAULT, Gates
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import node, pod
from tests.controllers.contexts import context_of
from tests.support.fake_api import FakeApi

SILENT = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
BROKEN = {"key": "broken", "effect": "NoExecute"}
TOLERATION = {**SILENT, "operator": "Exists", "tolerationSeconds": 300}
CANCELLED, MARKED = "Cancelling deletion of Pod default/p", "Marking for deletion Pod default/p"


@pytest.mark.parametrize("gate", [True, False])
async def test_with_the_gate_a_toleration_compares_values(gate: bool) -> None:
    """Source: KEP-5471; kube-controller-manager 1.36, processPodOnNode."""
    gates = Gates("controllers", DEFAULT, {"TaintTolerationComparisonOperators": gate})
    api = FakeApi()
    context = replace(context_of(api, FakeClock()), gates=gates)
    pods, nodes = context.informers.of(kinds.POD), context.informers.of(kinds.NODE)
    tolerates = {"key": "sla", "operator": "Gt", "value": "900", "effect": "NoExecute"}
    stays = pod(uid="u", node="n1", tolerations=[tolerates])
    api.put(stays)
    pods._put(stays)
    nodes._put(node(taints=[{"key": "sla", "value": "950", "effect": "NoExecute"}]))
    await TaintEviction(context, pods).reconcile(key_of(stays))
    assert (api.find(kinds.POD, "p", "default") is not None) is gate


class Noting(TaintEviction):
    """Keeps the notes of its events."""

    def __init__(self, context: Context, pods: Informer[core.Pod]) -> None:
        super().__init__(context, pods)
        self.notes: list[str] = []

    def record(self, regarding: Message, event: PlannedEvent | None) -> None:
        self.notes.append(event.note if event else "")


class Case:
    """A controller and its pod `p`, whose API server answers a deletion with a pod that terminates."""

    def __init__(self) -> None:
        self.api, self.clock = FakeApi(deletes_gracefully=True), FakeClock()
        self.context = context_of(self.api, self.clock)
        self.pods = self.context.informers.of(kinds.POD)
        self.nodes = self.context.informers.of(kinds.NODE)
        self.controller = Noting(self.context, self.pods)
        self.notes = self.controller.notes

    def show_pod(self, *, deleted: bool = False, phase: str = "Running") -> core.Pod:
        shown = pod(uid="u", node="n1", tolerations=[TOLERATION], deleted=deleted, phase=phase)
        self.api.put(shown)
        self.pods._put(shown)
        return shown

    def show_node(self, *taints: Mapping[str, str]) -> None:
        self.nodes._put(node(taints=taints))

    async def reconcile(self) -> float | None:
        """Reconcile the pod if it is queued; return after how many seconds it is looked at again."""
        again = None
        while (key := self.controller.queue.get_nowait()) is not None:
            again = await self.controller.reconcile(key)
            self.controller.queue.done(key)
        if again is not None:
            self.controller.queue.add_after(key_of(pod()), again)
        return again

    def deletions(self) -> int:
        return sum(request.verb == "delete" for request in self.api.requests)


async def scheduled() -> Case:
    """Return a case whose pod must go in 300 s."""
    case = Case()
    case.show_pod()
    case.show_node(SILENT)
    assert await case.reconcile() == pytest.approx(300.0)
    return case


async def test_the_end_of_a_pod_cancels_its_eviction() -> None:
    case = await scheduled()
    case.pods._drop(key_of(pod()), pod(uid="u", node="n1"), stale=False)
    assert case.notes == [CANCELLED]
    assert case.controller._due == {}


async def test_a_pod_that_terminates_is_evicted_when_its_time_comes() -> None:
    """Its kubelet may be gone: it may have begun to terminate long ago."""
    case = await scheduled()
    case.show_pod(deleted=True)
    await case.clock.advance(300.0)
    assert await case.reconcile() is None
    assert case.notes == [MARKED]
    condition = get_condition(case.api.all_of(kinds.POD)[0].status.conditions, "DisruptionTarget")
    assert condition is not None
    assert condition.reason == "DeletionByTaintManager"
    assert case.deletions() == 1


async def test_a_taint_that_is_not_tolerated_replaces_the_scheduled_eviction() -> None:
    case = await scheduled()
    case.show_node(SILENT, BROKEN)
    assert await case.reconcile() is None
    assert case.notes == [CANCELLED, MARKED]


@pytest.mark.parametrize(
    ("taints", "again"),
    [
        ([SILENT, BROKEN], 1),
        ([SILENT, BROKEN, {"key": "full", "effect": "NoSchedule"}], 1),
        ([BROKEN], 2),
    ],
)
async def test_an_evicted_pod_is_evicted_again_only_for_other_taints(
    taints: Sequence[Mapping[str, str]], again: int
) -> None:
    """Neither its own changes nor the time for which it was scheduled before count."""
    case = await scheduled()
    case.show_node(SILENT, BROKEN)
    await case.reconcile()
    case.show_pod(deleted=True, phase="Failed")
    case.show_node(*taints)
    await case.clock.advance(301.0)
    await case.reconcile()
    assert case.notes.count(MARKED) == case.deletions() == again


async def test_the_end_of_a_node_object_cancels_nothing() -> None:
    case = await scheduled()
    case.nodes._drop(key_of(node()), node(), stale=False)
    await case.clock.advance(100.0)
    case.controller.queue.add(key_of(pod()))
    assert await case.reconcile() == pytest.approx(200.0)
    await case.clock.advance(200.0)
    assert await case.reconcile() is None
    assert case.notes == [MARKED]
    assert case.deletions() == 1


async def test_a_pod_of_an_unknown_node_stays() -> None:
    case = Case()
    case.show_pod()
    assert await case.reconcile() is None
    assert case.notes == []


async def test_a_node_without_the_taint_cancels_an_eviction() -> None:
    case = await scheduled()
    case.show_node()
    assert await case.reconcile() is None
    assert case.notes == [CANCELLED]
