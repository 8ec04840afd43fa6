"""Invariants of the core, over random sequences of events: a state machine."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nominee.kubelet.checkpoint import Checkpoint, decode, encode
from tests.kubelet.golden_player import Player

CAPACITY = {"cpu": "4", "memory": "4Gi", "pods": "6"}
CPU = st.integers(1, 8).map(lambda halves: f"{halves * 500}m")
MEMORY = st.integers(1, 8).map(lambda halves: f"{halves * 512}Mi")
QOS = "Burstable"


class Allocation(RuleBasedStateMachine):
    """Pods come, resize, are actuated, end; the kubelet restarts. Limits are as requests where set."""

    def __init__(self) -> None:
        super().__init__()
        self.player = Player({"node": {"allocatable": CAPACITY}})
        self.number = 0

    def names(self) -> list[str]:
        return sorted(self.player.api)

    def step(self, op: str, **fields: Any) -> None:
        self.player.step({"op": op, **fields})

    @rule(cpu=CPU, memory=MEMORY, priority=st.sampled_from([None, 0, 1000]))
    def add(self, cpu: str, memory: str, priority: int | None) -> None:
        self.number += 1
        name = f"p{self.number}"
        row: dict[str, Any] = {
            "name": name,
            "created": self.number,
            "qos": QOS,
            "containers": [{"name": f"{name}-c", "requests": {"cpu": cpu, "memory": memory}}],
        }
        if priority is not None:
            row["priority"] = priority
        self.step("add", pods=[row])

    @precondition(lambda self: self.player.api)
    @rule(data=st.data(), cpu=CPU, memory=MEMORY)
    def resize(self, data: st.DataObject, cpu: str, memory: str) -> None:
        name = data.draw(st.sampled_from(self.names()))
        requests = {"cpu": cpu, "memory": memory}
        self.step("resize", pod=name, containers={f"{name}-c": {"requests": requests}})

    @precondition(lambda self: self.player.api)
    @rule(data=st.data(), op=st.sampled_from(["sync", "actuate"]))
    def work(self, data: st.DataObject, op: str) -> None:
        name = data.draw(st.sampled_from(self.names()))
        if f"uid-{name}" in self.player.runtime.sandboxes:
            self.step(op, names=[name])

    @precondition(lambda self: self.player.api)
    @rule(data=st.data())
    def terminate(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.names()))
        if f"uid-{name}" in self.player.runtime.sandboxes:
            self.step("terminate", pod=name, phase="Failed")

    @precondition(lambda self: self.player.api)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        self.step("remove", names=[data.draw(st.sampled_from(self.names()))])

    @rule()
    def tick(self) -> None:
        self.step("tick")

    @rule()
    def restart(self) -> None:
        node = self.player.node
        saved = decode(encode(Checkpoint(node="node", allocations=node.allocations)))
        assert saved.allocations == node.allocations
        self.step("restart")

    @invariant()
    def allocations_fit(self) -> None:
        node = self.player.node
        for resource in ("cpu", "memory"):
            total = sum(
                node.requests(record, node.allocated(record)).get(resource, 0)
                for record in node.active_pods()
            )
            assert total <= node.allocatable(resource)
        assert len(node.active_pods()) <= node.allocatable("pods")

    @invariant()
    def every_active_pod_is_allocated(self) -> None:
        node = self.player.node
        assert all(record.uid in node.allocations for record in node.active_pods())

    @invariant()
    def deferred_resizes_are_queued(self) -> None:
        """A deferred resize of a pod that runs would otherwise never be tried again."""
        node = self.player.node
        for record in node.active_pods():
            if record.pending is not None and record.pending.reason == "Deferred" and node.differs(record):
                assert record.uid in node.queue

    @invariant()
    def the_queue_has_each_pod_once(self) -> None:
        assert len(set(self.player.node.queue)) == len(self.player.node.queue)


Allocation.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestAllocation = Allocation.TestCase
