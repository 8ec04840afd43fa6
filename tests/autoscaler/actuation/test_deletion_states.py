"""The table of a node's deletion, and the deletions that it drives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from nominee.autoscaler.actuation.deletion_states import (
    TRANSITIONS,
    DeletionEvent,
    DeletionState,
    Effect,
    transition_of,
)
from nominee.autoscaler.actuation.node_deletion import NodeDeletion
from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.objects.annotation_keys import (
    CONFIG_MIRROR,
    DAEMONSET_POD,
    DELAY_DELETION_PREFIX,
)
from nominee.machinery.api import errors
from nominee.machinery.runtime.clock import FakeClock, to_time
from nominee.machinery.runtime.failpoints import REGISTRY
from nominee.machinery.runtime.state_table import InvalidTransitionError
from tests.autoscaler.builders import Started, autoscaler, new_world, node, pod
from tests.autoscaler.harness import Harness
from tests.autoscaler.world import World

DESIGN = Path(__file__).parents[3] / "docs" / "design" / "005-autoscaler.md"


def test_every_state_is_reached_and_every_effect_used() -> None:
    transitions = [transition for row in TRANSITIONS.values() for transition in row.values()]
    assert {transition.to for transition in transitions} | {DeletionState.TAINTED} == set(DeletionState)
    assert {effect for transition in transitions for effect in transition.effects} == set(Effect)
    assert {event for row in TRANSITIONS.values() for event in row} == set(DeletionEvent)


def test_an_unknown_transition_is_an_error_with_the_events_before() -> None:
    with pytest.raises(InvalidTransitionError, match=r"event failed in state deleted.*: started"):
        transition_of(DeletionState.DELETED, DeletionEvent.FAILED, (DeletionEvent.STARTED,))


def test_the_design_page_has_the_diagram_of_the_table() -> None:
    assert TRANSITIONS.diagram() in DESIGN.read_text(encoding="utf-8")


class Deletion:
    """One deletion of the node n1, with or without a pod to drain."""

    def __init__(self, *, drain: bool, **flags: Any) -> None:
        self.world: World = new_world(FakeClock(), target=1)
        node(self.world, "n1")
        if drain:
            pod(self.world, "p", "100m", on="n1")
        self.started: Started = []
        self.autoscaler: Harness = autoscaler(self.world, Compat.V1_36, self.started, **flags)
        self.autoscaler.state.deletions.start_deletion("n1", "ng1", drain=drain)
        self.deletion = NodeDeletion(self.autoscaler.state, self.world.nodes["n1"], "ng1", drain=drain)

    async def run(self, seconds: float = 700.0) -> None:
        """Run it for so long."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.autoscaler.executor.run, self.deletion.run())
            await self.world.clock.advance(seconds)
            tasks.cancel_scope.cancel()

    @property
    def messages(self) -> list[str]:
        """Messages of the events about the node."""
        nodes = [event for event in self.world.events if event.reason == "ScaleDownFailed"]
        return [event.message for event in nodes]


@pytest.mark.parametrize("drain", [True, False])
async def test_a_deletion_ends_in_deleted(drain: bool) -> None:
    it = Deletion(drain=drain)
    await it.run(seconds=10.0)
    assert it.deletion.state is DeletionState.DELETED
    assert (it.world.cloud_deleted, it.world.evicted) == (["n1"], ["p"] if drain else [])
    assert it.autoscaler.state.deletions.nodes() == frozenset()


@pytest.mark.parametrize("jump_seconds", [-86_400.0, 86_400.0])
async def test_a_jump_of_the_wall_clock_does_not_change_a_time_limit(
    jump_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Deletion(drain=False, node_deletion_delay_timeout=60.0)
    it.world.nodes["n1"].metadata.annotations[f"{DELAY_DELETION_PREFIX}x"] = "true"
    clock = it.world.clock
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(it.autoscaler.executor.run, it.deletion.run())
        await clock.advance(30)
        now = clock.now
        monkeypatch.setattr(clock, "now", lambda: now() + jump_seconds)
        states = []
        for seconds in (20, 30):
            await clock.advance(seconds)
            states.append(it.deletion.state)
        assert states == [DeletionState.DELAYED, DeletionState.DELETED]
        tasks.cancel_scope.cancel()


async def test_an_annotation_delays_the_deletion_until_it_is_removed_or_the_timeout() -> None:
    it = Deletion(drain=False, node_deletion_delay_timeout=60.0)
    it.world.nodes["n1"].metadata.annotations[f"{DELAY_DELETION_PREFIX}x"] = "true"
    await it.run(seconds=50.0)
    assert it.deletion.state is DeletionState.DELAYED
    it = Deletion(drain=False, node_deletion_delay_timeout=60.0)
    it.world.nodes["n1"].metadata.annotations[f"{DELAY_DELETION_PREFIX}x"] = "true"
    await it.run(seconds=71.0)
    assert it.deletion.state is DeletionState.DELETED


async def test_events_of_evictions_are_recorded_while_the_drain_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = Deletion(drain=True, max_pod_eviction_time=25.0)

    async def refuses(pod: object, grace_seconds: int) -> None:
        raise errors.too_many_requests("no", retry_after_seconds=0)

    monkeypatch.setattr(it.world, "evict", refuses)
    seen = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(it.autoscaler.executor.run, it.deletion.run())
        for _ in range(2):
            await it.world.clock.advance(20.0)
            seen.append([event.reason for event in it.world.events])
        tasks.cancel_scope.cancel()
    assert seen == [["ScaleDown"], ["ScaleDown", "ScaleDownFailed", "ScaleDownFailed"]]


async def test_the_removal_of_a_node_names_all_pods_that_it_evicts() -> None:
    """A pod that terminates for long needs no place, but is evicted. Pods of DaemonSets are not named."""
    world = new_world(FakeClock(), target=2)
    for name in ("n1", "n2"):
        node(world, name)
        pod(world, f"on-{name}", "900m" if name == "n2" else "100m", on=name)
    pod(world, "terminating", "10m", on="n1").metadata.deletionTimestamp.CopyFrom(
        to_time(world.clock.now() - 3600)
    )
    for name, annotation in (("daemon", DAEMONSET_POD), ("mirror", CONFIG_MIRROR)):
        pod(world, name, "10m", on="n1").metadata.annotations[annotation] = "true"
    it = autoscaler(world, Compat.V1_36, scale_down_utilization_threshold=0.2)
    await it.run_once()
    await world.clock.advance(61.0)
    assert (await it.run_once()).drained == ["n1"]
    (text,) = [e.message for e in world.events if "removing node" in e.message]
    assert text.endswith("pods to reschedule: on-n1,terminating")


async def test_pods_that_do_not_terminate_end_the_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Deletion(drain=True, max_graceful_termination_sec=60)

    async def stays(pod: object, node: str) -> bool:
        return True

    monkeypatch.setattr(it.world, "is_on_node", stays)
    await it.run(seconds=80.0)
    assert it.deletion.state is DeletionState.TERMINATING
    it = Deletion(drain=True, max_graceful_termination_sec=60)
    monkeypatch.setattr(it.world, "is_on_node", stays)
    await it.run(seconds=100.0)
    assert it.deletion.state is DeletionState.FAILED
    assert it.messages == [
        "failed to drain and delete node: Failed to drain node /n1: pods remaining after timeout"
    ]


async def test_pods_that_cannot_be_read_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Deletion(drain=True)
    answers: list[bool | errors.StatusError] = [errors.service_unavailable("no"), True, False]

    async def is_on_node(pod: object, node: str) -> bool:
        answer = answers.pop(0)
        if isinstance(answer, errors.StatusError):
            raise answer
        return answer

    monkeypatch.setattr(it.world, "is_on_node", is_on_node)
    await it.run(seconds=30.0)
    assert (it.deletion.state, it.messages, answers) == (DeletionState.DELETED, [], [])


@pytest.mark.parametrize(
    ("point", "drain", "message"),
    [
        ("autoscaler.scaledown.recheck.before", False, "failed to delete empty node: no"),
        ("autoscaler.delete.before", True, "failed to drain and delete node: no"),
        ("autoscaler.delete.after", True, "failed to drain and delete node: no"),
    ],
)
async def test_a_failpoint_ends_the_deletion_and_the_node_loses_its_taint(
    point: str, drain: bool, message: str
) -> None:
    it = Deletion(drain=drain)
    await it.world.taint_to_be_deleted("n1", it.world.clock.now())
    REGISTRY.arm(point, 'error("no")')
    try:
        await it.run(seconds=10.0)
    finally:
        REGISTRY.disarm_all()
    assert it.deletion.state is DeletionState.FAILED
    assert it.messages == [message]
    assert it.world.taints() == {}
    assert it.autoscaler.state.deletions.nodes() == frozenset()


async def test_a_taint_that_cannot_be_removed_is_in_doubt() -> None:
    it = Deletion(drain=False)
    await it.world.taint_to_be_deleted("n1", it.world.clock.now())
    points = "autoscaler.scaledown.recheck.before", "autoscaler.scaledown.untaint.before"
    try:
        for point in points:
            REGISTRY.arm(point, 'error("no")')
        await it.run(seconds=10.0)
    finally:
        REGISTRY.disarm_all()
    assert it.deletion.state is DeletionState.FAILED
    assert it.autoscaler.state.doubtful_taints == {"n1"}
