"""Checks of conditions whose watches lag, in a simulation: each is made on a state that the cluster had."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from nominee.lab.scenario.acting.errors import StepFailedError
from nominee.lab.scenario.acting.stage import Stage
from nominee.lab.scenario.acting.waiting import Waiting
from nominee.lab.scenario.clusters.simulated_cluster import SimulatedCluster
from nominee.lab.scenario.format.reading import read_text
from nominee.lab.scenario.observing.base import Condition
from nominee.lab.scenario.observing.world import World
from nominee.lab.scenario.play.simulate import simulate, with_cluster
from nominee.lab.scenario.steps.objects.delete import Delete
from nominee.lab.scenario.steps.objects.drain import Drain
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.simulation.simulation import Simulation

LAG_SECONDS = 2.0
TEXT = """\
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
  cluster: {nodes: 0, without: [autoscaler, cloud, controllers, scheduler]}
  steps:
  - expect: {now: CONDITION}
"""
OLD = "{object: {kind: ConfigMap, name: a, jsonPath: {.data.x: '1'}}}"
NEW = "{object: {kind: ConfigMap, name: a, jsonPath: {.data.x: '2'}}}"
SECRET_FIRST = "{any: [" + OLD + ", {object: {kind: Secret, name: s, jsonPath: {.type: new}}}]}"
BOTH_OLD = "{all: [" + OLD + ", {object: {kind: Secret, name: s, jsonPath: {.type: old}}}]}"


def condition(text: str) -> Condition:
    (scenario,) = read_text(TEXT.replace("CONDITION", text), "s.yaml")
    (found,) = scenario.steps[0].action.conditions
    return found


class Here:
    """A cluster, the view of a scenario of it, and another client that writes."""

    def __init__(self, waiting: Waiting, world: World, other: Client, cluster: SimulatedCluster) -> None:
        self.waiting, self.world, self.other, self.clock = waiting, world, other, cluster.clock
        self.stage = Stage(cluster, world, waiting)

    async def write(self, x: str) -> None:
        """Create or replace the ConfigMap."""
        made = core.ConfigMap()
        made.metadata.namespace, made.metadata.name = "default", "a"
        made.data["x"] = x
        if x == "1":
            await self.other.create(made)
        else:
            await self.other.patch(kinds.CONFIG_MAP, "a", "default", {"data": {"x": x}})

    async def replace_secret(self, kind: str) -> None:
        """Delete the Secret, if there is one, and create it with this type."""
        if kind != "old":
            await self.other.delete(kinds.SECRET, "s", "default")
        made = core.Secret(type=kind)
        made.metadata.namespace, made.metadata.name = "default", "s"
        await self.other.create(made)

    async def create_later(self) -> None:
        """Create another Secret."""
        made = core.Secret()
        made.metadata.namespace, made.metadata.name = "default", "later"
        await self.other.create(made)

    async def until_seen(self, kind: AnyKind, name: str) -> None:
        with anyio.fail_after(60.0):
            while self.world.get(kind, name, "default") is None:
                await self.world.wait_changed(60.0)


def play(
    monkeypatch: pytest.MonkeyPatch, late: AnyKind | None, use: Callable[[Here], Awaitable[None]]
) -> None:
    """Use a cluster; the scenario's watch of a kind lags."""
    simulation, watch_batches = Simulation(1), Client.watch_batches

    async def main(cluster: SimulatedCluster) -> None:
        async def lagging(client: Client, kind: Any, *args: Any, **options: Any) -> AsyncGenerator[Any, None]:
            async for batch in watch_batches(client, kind, *args, **options):
                if client is cluster.client and kind is late:
                    await anyio.sleep(LAG_SECONDS)
                yield batch

        monkeypatch.setattr(Client, "watch_batches", lagging)
        async with await simulation.client("other") as other, anyio.create_task_group() as tasks:
            world = World(
                cluster.client, cluster.clock, [kinds.CONFIG_MAP, kinds.NODE, kinds.POD, kinds.SECRET]
            )
            await world.open(tasks)
            here = Here(Waiting(world, cluster, 100.0, anyio.lowlevel.checkpoint), world, other, cluster)
            await here.write("1")
            await here.replace_secret("old")
            await here.until_seen(kinds.CONFIG_MAP, "a")
            await here.until_seen(kinds.SECRET, "s")
            await use(here)
            tasks.cancel_scope.cancel()

    (scenario,) = read_text(TEXT.replace("CONDITION", OLD), "s.yaml")
    with_cluster(scenario.cluster, simulation, main)


async def change(here: Here) -> None:
    """Change the ConfigMap twice, and let the scenario see another object that was created after it."""
    await here.other.patch(kinds.CONFIG_MAP, "a", "default", {"data": {"y": "1"}})
    await here.write("2")
    await here.create_later()
    await here.until_seen(kinds.SECRET, "later")


def test_a_check_that_is_made_on_an_old_copy_is_made_on_the_state_that_the_scenario_has_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def use(here: Here) -> None:
        await change(here)
        assert not here.world.evaluate(condition(NEW)).holds
        assert (await here.waiting.now(condition(NEW))).holds
        await here.waiting.throughout(condition(NEW), 5.0, must_hold=True)

    play(monkeypatch, kinds.CONFIG_MAP, use)


def test_what_was_before_a_step_does_not_count_for_never(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(here: Here) -> None:
        await change(here)
        await here.waiting.throughout(condition(OLD), 5.0, must_hold=False)

    play(monkeypatch, kinds.CONFIG_MAP, use)


@pytest.mark.parametrize(("text", "must_hold"), [(OLD, True), (NEW, False)])
def test_a_state_that_was_broken_before_a_step_is_found_when_the_watch_shows_it(
    text: str, must_hold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(here: Here) -> None:
        await change(here)
        with pytest.raises(StepFailedError):
            await here.waiting.throughout(condition(text), 8.0, must_hold=must_hold)

    play(monkeypatch, kinds.CONFIG_MAP, use)


@pytest.mark.parametrize("late", [None, kinds.CONFIG_MAP, kinds.SECRET])
def test_a_state_that_changes_while_it_is_read_counts_as_it_was(
    late: AnyKind | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server answers late, and by then the condition holds."""
    lists = Client.list

    async def slow(client: Client, *args: Any, **options: Any) -> Any:
        await anyio.sleep(LAG_SECONDS)
        return await lists(client, *args, **options)

    async def use(here: Here) -> None:
        await here.create_later()
        await here.until_seen(kinds.SECRET, "later")
        monkeypatch.setattr(Client, "list", slow)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(here.write, "2")
            assert not (await here.waiting.now(condition(NEW))).holds
        with pytest.raises(StepFailedError):
            await here.waiting.throughout(condition(NEW), 5.0, must_hold=False)

    play(monkeypatch, late, use)


@pytest.mark.parametrize("late", [None, kinds.CONFIG_MAP, kinds.SECRET])
def test_two_kinds_are_compared_at_one_revision(
    late: AnyKind | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(here: Here) -> None:
        async with anyio.create_task_group() as tasks:

            async def write() -> None:
                await here.clock.sleep(1.0)
                await here.replace_secret("new")
                await here.write("2")

            tasks.start_soon(write)
            await here.waiting.throughout(condition(SECRET_FIRST), 8.0, must_hold=True)

    play(monkeypatch, late, use)


@pytest.mark.parametrize("late", [None, kinds.CONFIG_MAP, kinds.SECRET])
@pytest.mark.parametrize(("text", "must_hold"), [(BOTH_OLD, True), (NEW, False), (OLD, True)])
def test_a_violation_in_the_middle_is_found(
    text: str, must_hold: bool, late: AnyKind | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that lasts a moment."""

    async def use(here: Here) -> None:
        async with anyio.create_task_group() as tasks:

            async def write() -> None:
                await here.clock.sleep(1.0)
                await here.write("2")
                await here.write("3")
                await here.other.patch(kinds.CONFIG_MAP, "a", "default", {"data": {"x": "1"}})
                await here.create_later()

            tasks.start_soon(write)
            with pytest.raises(StepFailedError):
                await here.waiting.throughout(condition(text), 8.0, must_hold=must_hold)

    play(monkeypatch, late, use)


CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/kept]}}"
POD = (
    "{apiVersion: v1, kind: Pod, metadata: {name: p}, "
    "spec: {containers: [{name: c, image: app}], nodeName: none}}"
)
DEPLOYMENT = (
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, "
    "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: app}]}}}}"
)
WRITES = {
    "deleted": """\
  - apply: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]
  - delete: {kind: ConfigMap, name: a}
  - expect: {now: {object: {kind: ConfigMap, name: a, exists: false}}}
""",
    "being deleted": f"""\
  - apply: [{CONFIG_MAP}]
  - delete: {{kind: ConfigMap, name: a}}
  - expect:
      now:
        object: {{kind: ConfigMap, name: a, jsonPath: {{.metadata.deletionTimestamp: {{present: true}}}}}}
""",
    "deleted again": f"""\
  - apply: [{POD}]
  - delete: {{kind: Pod, name: p, gracePeriodSeconds: 30}}
  - delete: {{kind: Pod, name: p, gracePeriodSeconds: 0}}
  - expect: {{now: {{object: {{kind: Pod, name: p, exists: false}}}}}}
""",
    "scaled": f"""\
  - apply: [{DEPLOYMENT}]
  - patch: {{kind: Deployment, name: d, subresource: scale, patch: {{spec: {{replicas: 3}}}}}}
  - expect: {{now: {{object: {{kind: Deployment, name: d, jsonPath: {{.spec.replicas: 3}}}}}}}}
""",
}


@pytest.mark.parametrize("written", WRITES)
def test_a_step_sees_what_the_one_before_wrote(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    watch_batches = Client.watch_batches

    async def lagging(*args: Any, **options: Any) -> AsyncGenerator[Any, None]:
        async for batch in watch_batches(*args, **options):
            await anyio.sleep(LAG_SECONDS)
            yield batch

    monkeypatch.setattr(Client, "watch_batches", lagging)
    head, _, _ = TEXT.partition("  - expect")
    (scenario,) = read_text(head + WRITES[written], "s.yaml")
    result = simulate(scenario, 1)
    assert result.held, result.reason


def test_an_object_that_the_scenario_has_not_seen_is_deleted_and_seen_to_be_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def use(here: Here) -> None:
        await here.create_later()
        await Delete(kind="Secret", name="later").perform(here.stage)
        for _ in range(10):
            assert here.world.get(kinds.SECRET, "later", "default") is None
            await here.clock.sleep(LAG_SECONDS / 2)

    play(monkeypatch, kinds.SECRET, use)


def test_a_drain_evicts_pods_that_the_scenario_has_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(here: Here) -> None:
        node, pod = core.Node(), core.Pod()
        node.metadata.name = pod.spec.nodeName = "n"
        pod.metadata.namespace, pod.metadata.name = "default", "p"
        pod.spec.containers.add(name="c", image="app")
        await here.other.create(node)
        await here.other.create(pod)
        with pytest.raises(StepFailedError, match="not drained within 5 s: p"):
            await Drain(node="n", seconds=5.0).perform(here.stage)
        assert is_terminating(await here.other.get(kinds.POD, "p", "default"))

    play(monkeypatch, kinds.POD, use)
