"""The node life cycle controller with a simulated clock: when a silent kubelet counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from nominee.controllers.nodes.health import ready_status
from nominee.controllers.nodes.shell.lifecycle import NodeLifecycle
from nominee.controllers.nodes.shell.tainting import NoExecuteTaints
from nominee.controllers.nodes.taints import NOT_READY, UNREACHABLE, has_no_execute
from nominee.controllers.nodes.zones import EXCLUDED, Rates
from nominee.controllers.shell.controller import Context
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import condition_is, copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import FakeClock, to_time
from tests.controllers.builders import condition, lease, node, pod, stamp
from tests.controllers.contexts import context_of, synced
from tests.support.fake_api import FakeApi
from tests.support.patience import PATIENCE_SECONDS

GRACE_SECONDS = 10.0
STARTUP_SECONDS = 20.0
ALONE = {EXCLUDED: ""}
"""The labels of a node that is tainted although no other one is ready."""


def controller_of(context: Context) -> NodeLifecycle:
    """Return a controller that looks at the nodes each second."""
    return NodeLifecycle(
        context,
        context.informers.of(kinds.POD),
        monitor_seconds=1.0,
        grace_seconds=GRACE_SECONDS,
        startup_grace_seconds=STARTUP_SECONDS,
    )


class Api(FakeApi):
    """An API server that can be unavailable."""

    away = False

    async def get(self, kind: Kind[Any], name: str, namespace: str = "", **more: Any) -> Any:
        if self.away:
            raise errors.service_unavailable("it was killed")
        return await super().get(kind, name, namespace, **more)

    @property
    def ready(self) -> bool:
        (found,) = self.all_of(kinds.NODE)
        return condition_is(found.status.conditions, "Ready")


@pytest.mark.parametrize("point", ["controllers.node_unknown.before", "controllers.taint_node.before"])
async def test_a_step_that_fails_is_tried_again(point: str) -> None:
    api, clock = Api(), FakeClock()
    api.put(node(labels=ALONE))
    api.put(lease("n1", 0))
    context = context_of(api, clock)
    controller = controller_of(context)
    failpoints.arm(point, '3*error("boom")')
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(context.informers.run)
                await context.informers.wait_synced()
                tasks.start_soon(controller.run)
                while not any(taint.effect == "NoExecute" for taint in api.all_of(kinds.NODE)[0].spec.taints):
                    await clock.advance(1)
                tasks.cancel_scope.cancel()
        found = failpoints.REGISTRY.get(point)
        assert found is not None
        assert found.fired == 3
    finally:
        failpoints.arm(point, "off")
    assert not api.ready


@pytest.mark.parametrize("conditions", [[condition("Ready")], []], ids=["was ready", "never reported"])
async def test_a_silent_node_is_tainted_with_its_condition(conditions: list[dict[str, str]]) -> None:
    api, clock = Api(), FakeClock()
    api.put(node(conditions=conditions, labels=ALONE))
    context = context_of(api, clock)
    controller = controller_of(context)

    def evicts() -> bool:
        return any(taint.effect == "NoExecute" for taint in api.all_of(kinds.NODE)[0].spec.taints)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(context, controller.run):
            while ready_status(api.all_of(kinds.NODE)[0]) != "Unknown":
                await clock.advance(1)
            await clock.advance(0.5)
            assert evicts()


async def test_a_node_without_a_status_has_its_time_from_its_creation_on() -> None:
    api, clock = Api(), FakeClock()
    made = node(conditions=[])
    made.metadata.creationTimestamp.CopyFrom(to_time(clock.now() - 5.0))
    api.put(made)
    context = context_of(api, clock)
    controller = controller_of(context)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(context, controller.run):
            for _ in range(14):
                await clock.advance(1)
            assert not ready_status(api.all_of(kinds.NODE)[0])
            for _ in range(2):
                await clock.advance(1)
            assert ready_status(api.all_of(kinds.NODE)[0]) == "Unknown"


async def test_pods_become_unready_where_the_controller_itself_gives_up_a_node() -> None:
    api, clock = Api(), FakeClock()
    api.put(node("lost"))
    api.put(node("says-so", conditions=[condition("Ready", "False")]))
    context = context_of(api, clock)
    controller = controller_of(context)

    def ready(name: str) -> bool:
        return condition_is(api.pod(name).status.conditions, "Ready")

    with anyio.fail_after(PATIENCE_SECONDS):
        for name in ("lost", "says-so"):
            api.put(pod(f"{name}-old", node=name, ready=True))
        api.put(pod("unassigned", ready=True))
        async with synced(context, controller.run):
            await clock.advance(5)
            assert ready("says-so-old"), "its kubelet reports it, and the controller has just started"
            api.put(pod("says-so-new", node="says-so", ready=True))
            await clock.advance(1)
            assert not ready("says-so-new"), "pods that a node gets while it is not ready"
            for _ in range(8):
                await clock.advance(1)
            assert ready_status(api.all_of(kinds.NODE)[0]) == "Unknown"
            assert not ready("lost-old")
            assert ready("says-so-old"), "it was not ready before it became Unknown"
            api.put(pod("unassigned", node="lost", ready=True))
            await clock.advance(1)
            assert not ready("unassigned"), "a pod that the scheduler assigns"


async def test_nodes_stay_ready_while_the_api_server_is_down() -> None:
    api, clock = Api(), FakeClock()
    api.put(node())
    api.put(lease("n1", 0))
    context = context_of(api, clock)
    controller = controller_of(context)

    async def pass_by(seconds: int) -> None:
        for _ in range(seconds):
            await clock.advance(1)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(context.informers.run)
            await context.informers.wait_synced()
            tasks.start_soon(controller.run)
            await pass_by(5)
            api.away = True
            await pass_by(40)
            assert api.ready, "no kubelet could renew while it was away"
            api.away = False
            await pass_by(8)
            assert api.ready, "the grace period started again"
            api.put(lease("n1", 1))
            await pass_by(8)
            assert api.ready, "it was heard of"
            await pass_by(12)
            assert not api.ready, "it is silent by its own doing"
            tasks.cancel_scope.cancel()


class Zone:
    """A zone of nodes n1, n2, ..., some of which send heartbeats."""

    def __init__(self, size: int) -> None:
        self.api, self.clock = Api(), FakeClock()
        for number in range(1, size + 1):
            self.put(node(f"n{number}"))
        self.context = context_of(self.api, self.clock)
        self._beats = 0

    def put(self, made: core.Node) -> None:
        made.metadata.uid = made.metadata.name
        self.api.put(made)

    def controller(self) -> NodeLifecycle:
        return NodeLifecycle(
            self.context,
            self.context.informers.of(kinds.POD),
            monitor_seconds=1.0,
            grace_seconds=GRACE_SECONDS,
            startup_grace_seconds=STARTUP_SECONDS,
        )

    async def pass_by(self, seconds: int, *, live: Sequence[str]) -> None:
        for _ in range(seconds):
            self._beats += 1
            for name in live:
                self.api.put(lease(name, self._beats))
            await self.clock.advance(1)

    def report(self, name: str) -> None:
        """Let a kubelet report that its node is ready."""
        found = copy_of(self.api.find(kinds.NODE, name) or node(name))
        found.status.CopyFrom(node(conditions=[condition("Ready", lastHeartbeatTime=stamp(1))]).status)
        self.api.put(found)

    def unknown(self) -> list[str]:
        return [each.metadata.name for each in self.api.all_of(kinds.NODE) if ready_status(each) == "Unknown"]

    def tainted(self) -> list[str]:
        found = self.api.all_of(kinds.NODE)
        return [each.metadata.name for each in found if has_no_execute(each, UNREACHABLE)]


async def test_the_nodes_of_a_zone_are_tainted_one_after_the_other() -> None:
    zone = Zone(5)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(zone.context, zone.controller().run):
            await zone.pass_by(13, live=["n3", "n4", "n5"])
            assert zone.unknown() == ["n1", "n2"]
            assert zone.tainted() == ["n1"]
            await zone.pass_by(7, live=["n3", "n4", "n5"])
            assert zone.tainted() == ["n1"]
            await zone.pass_by(4, live=["n3", "n4", "n5"])
            assert zone.tainted() == ["n1", "n2"]


async def test_no_node_of_a_small_zone_is_tainted_while_most_are_not_ready() -> None:
    zone = Zone(4)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(zone.context, zone.controller().run):
            await zone.pass_by(60, live=["n4"])
            assert zone.unknown() == ["n1", "n2", "n3"]
            assert zone.tainted() == []


async def test_no_node_is_tainted_while_none_is_ready() -> None:
    zone = Zone(2)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(zone.context, zone.controller().run):
            await zone.pass_by(20, live=["n2"])
            assert zone.tainted() == ["n1"]
            await zone.pass_by(20, live=[])
            assert zone.unknown() == ["n1", "n2"]
            assert zone.tainted() == [], "the taint goes, too"
            zone.report("n2")
            await zone.pass_by(8, live=["n2"])
            assert zone.unknown() == ["n1"]
            assert zone.tainted() == []
            await zone.pass_by(8, live=["n2"])
            assert zone.tainted() == ["n1"]


async def test_a_controller_that_starts_removes_taints_until_their_turn_comes() -> None:
    zone = Zone(3)
    gone = {"key": UNREACHABLE, "effect": "NoExecute"}
    for name in ("n1", "n2"):
        zone.put(node(name, conditions=[condition("Ready", "Unknown")], taints=[gone]))
    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(zone.context, zone.controller().run):
            await zone.pass_by(2, live=["n3"])
            assert zone.tainted() == ["n1"]
            await zone.pass_by(12, live=["n3"])
            assert zone.tainted() == ["n1", "n2"]


class SlowApi(Api):
    """Reads of leases and writes of nodes take some time."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.clock = clock

    async def get(self, kind: Kind[Any], name: str, namespace: str = "", **more: Any) -> Any:
        await self.clock.sleep(0.05)
        return await super().get(kind, name, namespace, **more)

    async def update(self, obj: Any, **more: Any) -> Any:
        await self.clock.sleep(0.05)
        return await super().update(obj, **more)


@pytest.mark.parametrize("live", [["n5"], []], ids=["most are silent", "all are silent"])
async def test_no_node_is_tainted_before_a_look_is_over(live: Sequence[str]) -> None:
    """The rate is 0 when all nodes were looked at, which takes longer than a turn of the queue of taints."""
    zone = Zone(5)
    zone.api = SlowApi(zone.clock)
    for number in range(1, 6):
        zone.put(node(f"n{number}"))
    zone.context = context_of(zone.api, zone.clock)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(zone.context, zone.controller().run):
            await zone.pass_by(60, live=live)
            assert len(zone.unknown()) == 5 - len(live)
    assert not [request for request in zone.api.requests if "NoExecute" in str(request.body)]


async def test_a_node_whose_lease_cannot_be_read_counts_as_it_was() -> None:
    """It is the only other node: without it none would be ready, and the taints would go."""
    zone = Zone(2)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(zone.context, zone.controller().run):
            await zone.pass_by(13, live=["n2"])
            assert zone.tainted() == ["n1"]
            zone.api.away = True
            await zone.pass_by(13, live=[])
            assert (zone.unknown(), zone.tainted()) == (["n1"], ["n1"])


class Racing(FakeClock):
    """A second passes between any two looks."""

    def monotonic(self) -> float:
        self._looks = getattr(self, "_looks", 0.0) + 1.0
        return self._looks


async def test_a_failed_taint_is_left_for_later_at_any_rate() -> None:
    """Other tasks have their turn between two tries."""
    api = Api()
    api.put(node("n1", conditions=[condition("Ready", "False")]))
    taints = NoExecuteTaints(context_of(api, Racing()), Rates(normal=1e6))
    failpoints.arm("controllers.taint_node.before", '5*error("boom")')
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with synced(taints.context, anyio.sleep_forever):
                (present,) = taints.nodes.list()
                taints.zones.begin([present], 0)
                await taints.follow(present, "False")
                seconds = await taints.reconcile(("", ""))
    finally:
        failpoints.arm("controllers.taint_node.before", "off")
    assert seconds
    assert not api.all_of(kinds.NODE)[0].spec.taints


@pytest.mark.parametrize("status", ["Maybe", ""])
async def test_a_node_with_another_status_waits_for_no_taint(status: str) -> None:
    zone = Zone(3)
    zone.put(node("n1", conditions=[condition("Ready", status)]))
    zone.put(node("n2", conditions=[condition("Ready", "False")]))
    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(zone.context, zone.controller().run):
            await zone.pass_by(3, live=["n1", "n2", "n3"])
    tainted = [has_no_execute(each, NOT_READY) for each in zone.api.all_of(kinds.NODE)]
    assert tainted == [False, True, False]
