"""The autoscaler's shell over an API server in memory: rivals, metrics, and any order of faults and loads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from nominee.controllers.horizontal_pod_autoscalers.replica_calculator import Settings
from nominee.controllers.horizontal_pod_autoscalers.shell.horizontal_pod_autoscalers import (
    HorizontalPodAutoscalerController,
)
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import ObjectKey, copy_of
from nominee.machinery.api.pb import autoscaling, autoscaling_v1
from nominee.machinery.client.api_client import ListResult
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import pod_metrics
from tests.controllers.contexts import context_of
from tests.controllers.horizontal_pod_autoscalers.builders import NOW, autoscaler, pod, row, scale
from tests.support.fake_api import FakeApi
from tests.support.patience import PATIENCE_SECONDS

PERIOD_SECONDS = 15.0
TARGET_MILLI = 50
"""Half of the pods' requests."""
LEAST, MOST = 1, 10
VERBS = ("get/scale", "patch/scale", "list", "update/status")


@dataclass
class Api(FakeApi):
    """A server with a Deployment `web`, whose pods share a load."""

    replicas: int = 2
    load_milli: int = 100

    async def list(self, kind: Kind[Any], namespace: str = "", **more: object) -> ListResult[Any]:
        if kind is not pod_metrics.KIND:
            return await super().list(kind, namespace, **more)
        await self._call("list", kind, ObjectKey(namespace, ""), None)
        each = self.load_milli / max(self.replicas, 1)
        return ListResult([row(f"p{number}", f"{each:.0f}m") for number in range(self.replicas)], "1")

    async def get_scale(self, kind: Kind[Any], name: str, namespace: str) -> autoscaling_v1.Scale:
        await self._call("get", kind, ObjectKey(namespace, name), None, subresource="scale")
        return scale(self.replicas)

    async def patch_scale(self, kind: Kind[Any], name: str, namespace: str, change: Any) -> None:
        await self._call("patch", kind, ObjectKey(namespace, name), change, subresource="scale")
        self.resize(change["spec"]["replicas"])

    def resize(self, replicas: int) -> None:
        for number in range(max(replicas, self.replicas)):
            if number >= self.replicas:
                self.put(pod(f"p{number}", started=-1000, ready_since=-900))
            elif number >= replicas:
                self.remove(kinds.POD, f"p{number}")
        self.replicas = replicas


@dataclass
class World:
    """A running controller; `restart` replaces it."""

    tasks: TaskGroup
    api: Api = field(default_factory=Api)
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOW))
    running: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def __post_init__(self) -> None:
        self.api.put(autoscaler(least=LEAST, most=MOST))
        self.api.replicas = 0
        self.api.resize(2)

    @property
    def hpa(self) -> autoscaling.HorizontalPodAutoscaler:
        return self.api.all_of(kinds.HORIZONTAL_POD_AUTOSCALER)[0]

    async def restart(self) -> None:
        self.running.cancel()
        self.running = anyio.CancelScope()
        self.tasks.start_soon(self._run, self.running)
        await self.clock.settle()

    async def _run(self, running: anyio.CancelScope) -> None:
        context = context_of(self.api, self.clock)
        controller = HorizontalPodAutoscalerController(context, Settings(), PERIOD_SECONDS)
        with running:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(context.informers.run)
                tasks.start_soon(context.recorders.run)
                await context.informers.wait_synced()
                tasks.start_soon(controller.run)

    def conditions(self) -> dict[str, tuple[str, str]]:
        return {each.type: (each.status, each.reason) for each in self.hpa.status.conditions}

    async def step(self, verb: str, argument: int) -> None:
        match verb:
            case "load":
                self.api.load_milli = argument
            case "scale":  # by another client
                self.api.resize(argument)
            case "touch":
                changed = copy_of(self.hpa)
                changed.metadata.labels["touched"] = str(argument)
                self.api.put(changed)
            case "refuse":
                name = VERBS[argument % len(VERBS)]
                self.api.rejections[name] = [errors.conflict(kinds.DEPLOYMENT, "web", "refused by the test")]
            case "restart":
                await self.restart()
            case "wait":
                await self.clock.advance(argument)


STEPS = st.one_of(
    st.tuples(st.just("load"), st.integers(0, 800)),
    st.tuples(st.just("scale"), st.integers(LEAST, MOST)),
    st.tuples(st.just("touch"), st.integers(0, 9)),
    st.tuples(st.just("refuse"), st.integers(0, len(VERBS) - 1)),
    st.tuples(st.just("restart"), st.just(0)),
    st.tuples(st.just("wait"), st.integers(1, 60)),
)


async def _play(steps: list[tuple[str, int]]) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            world = World(tasks)
            await world.restart()
            for verb, argument in steps:
                await world.step(verb, argument)
                assert LEAST <= world.api.replicas <= MOST
            world.api.rejections.clear()
            await world.clock.advance(Settings().downscale_stabilization + 20 * PERIOD_SECONDS)
            replicas, requests = world.api.replicas, len(world.api.requests)
            ratio = world.api.load_milli / replicas / TARGET_MILLI
            # A pod more or less than the usage asks for is one that the tolerance or a limit leaves.
            assert ratio <= 1.11 or replicas == MOST, (replicas, ratio)
            assert world.api.load_milli / max(replicas - 1, 1) / TARGET_MILLI >= 0.9 or replicas == LEAST
            status = world.hpa.status
            assert (status.currentReplicas, status.desiredReplicas) == (replicas, replicas)
            found = world.conditions()
            assert (found["AbleToScale"][0], found["ScalingActive"][0]) == ("True", "True")
            await world.clock.advance(10 * PERIOD_SECONDS)
            later = {each.verb for each in world.api.requests[requests:]}
            assert later == {"get/scale", "list"}  # nothing is written any more
            world.running.cancel()


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=15))
def test_any_order_of_loads_and_faults_ends_with_the_replicas_that_the_load_asks_for(
    steps: list[tuple[str, int]],
) -> None:
    anyio.run(_play, steps)


def _value(name: str, **labels: str) -> float:
    found = REGISTRY.get_sample_value(f"horizontal_pod_autoscaler_controller_{name}", labels)
    return found or 0.0


async def test_two_autoscalers_of_the_same_pods_scale_nothing() -> None:
    """validateAndParseSelector of pkg/controller/podautoscaler/horizontal.go."""
    async with anyio.create_task_group() as tasks:
        world = World(tasks)
        rival = autoscaler(most=5)
        rival.metadata.name, rival.metadata.uid = "rival", "uid-rival"
        world.api.put(rival)
        elsewhere = copy_of(rival)
        elsewhere.metadata.namespace, elsewhere.metadata.uid = "other", "uid-other"
        world.api.put(elsewhere)
        await world.restart()
        world.api.load_milli = 400
        await world.clock.advance(2 * PERIOD_SECONDS + 1)
        replicas = world.api.replicas
        text = "pods by selector app=web are controlled by multiple HPAs: [default/rival default/web]"
        await world.clock.advance(2 * PERIOD_SECONDS)
        assert world.api.replicas == replicas
        assert ("AmbiguousSelector", "web", text) in world.api.events
        assert ("FailedComputeMetricsReplicas", "rival", text) in world.api.events
        assert world.conditions()["ScalingActive"] == ("False", "AmbiguousSelector")
        world.api.remove(kinds.HORIZONTAL_POD_AUTOSCALER, "rival")
        await world.clock.advance(3 * PERIOD_SECONDS)
        assert world.conditions()["ScalingActive"] == ("True", "ValidMetricFound")
        assert world.api.replicas == 8
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(("moment", "replicas"), [("before", 2), ("after", 4)])
async def test_an_error_while_the_target_is_scaled_is_not_of_its_scale(moment: str, replicas: int) -> None:
    """`after`: the target is scaled, and the answer is lost."""
    point = f"controllers.horizontal_pod_autoscaler.rescale.{moment}"
    async with anyio.create_task_group() as tasks:
        world = World(tasks)
        await world.restart()
        world.api.load_milli = 200
        failpoints.arm(point, "1*error(503)")
        try:
            await world.clock.advance(PERIOD_SECONDS + 1)
        finally:
            failpoints.arm(point, "off")
        assert world.api.replicas == replicas
        assert world.conditions()["AbleToScale"] == ("False", "FailedUpdateScale")
        await world.clock.advance(PERIOD_SECONDS)
        assert world.api.replicas == 4
        assert world.conditions()["AbleToScale"][0] == "True"
        tasks.cancel_scope.cancel()


async def test_a_status_that_is_refused_leaves_an_event() -> None:
    async with anyio.create_task_group() as tasks:
        world = World(tasks)
        world.api.rejections["update/status"] = [errors.conflict(kinds.DEPLOYMENT, "web", "refused")]
        await world.restart()
        await world.clock.advance(PERIOD_SECONDS + 1)
        (text,) = (text for reason, name, text in world.api.events if reason == "FailedUpdateStatus")
        assert text.endswith("refused")
        tasks.cancel_scope.cancel()


async def test_reconciliations_are_measured() -> None:
    """pkg/controller/podautoscaler/monitor/metrics.go."""
    ups = _value("reconciliations_total", action="scale_up", error="none")
    broken = _value("reconciliations_total", action="none", error="internal")
    computed = _value("metric_computation_total", action="scale_up", error="none", metric_type="Resource")
    timed = _value("reconciliation_duration_seconds_count", action="scale_up", error="none")
    async with anyio.create_task_group() as tasks:
        world = World(tasks)
        await world.restart()
        world.api.load_milli = 200
        await world.clock.advance(PERIOD_SECONDS + 1)
        world.api.rejections["get/scale"] = [errors.not_found(kinds.DEPLOYMENT, "web")]
        await world.clock.advance(PERIOD_SECONDS)
        tasks.cancel_scope.cancel()
    assert _value("reconciliations_total", action="scale_up", error="none") == ups + 1
    assert _value("reconciliation_duration_seconds_count", action="scale_up", error="none") == timed + 1
    assert _value("reconciliations_total", action="none", error="internal") == broken + 1
    labels = {"action": "scale_up", "error": "none", "metric_type": "Resource"}
    assert _value("metric_computation_total", **labels) == computed + 1
