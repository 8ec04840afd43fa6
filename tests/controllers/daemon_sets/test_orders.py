"""Any order of changes, refusals and restarts ends in the same state: a current pod on each fitting node."""

from __future__ import annotations

from collections import Counter

import anyio
from anyio.abc import TaskGroup
from hypothesis import given, settings
from hypothesis import strategies as st

from nominee.controllers.daemon_sets.shell.daemon_sets import DaemonSetController
from nominee.controllers.owned_pods.readiness import is_active
from nominee.controllers.revisions.history import data_of
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import apps, core
from nominee.machinery.runtime.clock import FakeClock, to_time
from nominee.machinery.scheduling.daemons import target_node
from tests.controllers.builders import node
from tests.controllers.contexts import context_of
from tests.controllers.daemon_sets.builders import daemon_set
from tests.support.fake_api import FakeApi
from tests.support.patience import PATIENCE_SECONDS

NODES = ("n1", "n2", "n3")
ROUNDS_MAX = 60
STEPS = st.one_of(
    st.tuples(st.just("node"), st.sampled_from(NODES)),  # added, or removed with its pods
    st.tuples(st.just("taint"), st.sampled_from(NODES)),  # or untainted
    st.tuples(st.just("image"), st.sampled_from(("agent:1", "agent:2", "agent:3"))),
    st.tuples(st.just("run"), st.sampled_from(NODES)),
    st.tuples(st.just("fail"), st.sampled_from(NODES)),
    st.tuples(st.just("delete"), st.sampled_from(NODES)),
    st.tuples(st.just("strategy"), st.sampled_from(("surge", "delete first"))),
    st.tuples(
        st.just("refuse"), st.sampled_from(("create", "delete", "update", "update/status", "create twice"))
    ),
    st.tuples(st.just("restart"), st.just("")),
    st.tuples(st.just("wait"), st.sampled_from(("1", "30"))),
)


class World:
    """The API server, the other components, and the controller, which can be started again."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.api, self.clock = FakeApi(), FakeClock()
        self._tasks = tasks
        self._running = anyio.CancelScope()
        self._surged = False
        self.api.put(daemon_set())
        for name in NODES:
            self.api.put(node(name))

    async def _run(self, running: anyio.CancelScope) -> None:
        context = context_of(self.api, self.clock)
        controller = DaemonSetController(context)
        with running:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(context.informers.run)
                await context.informers.wait_synced()
                tasks.start_soon(controller.run)

    def restart(self) -> None:
        self.stop()
        self._running = anyio.CancelScope()
        self._tasks.start_soon(self._run, self._running)

    def stop(self) -> None:
        self._running.cancel()

    @property
    def owner(self) -> apps.DaemonSet:
        (owner,) = self.api.all_of(kinds.DAEMON_SET)
        return owner

    def pods(self, name: str) -> list[core.Pod]:
        return [each for each in self.api.all_of(kinds.POD) if target_node(each) == name]

    def run_pod(self, pod: core.Pod, phase: str = "Running") -> None:
        """Bind a pod, and report a phase, as scheduler and kubelet do."""
        new = copy_of(pod)
        new.spec.nodeName, new.status.phase = target_node(pod), phase
        del new.status.conditions[:]
        ready = "True" if phase == "Running" else "False"
        now = to_time(self.clock.now())
        new.status.conditions.add(type="Ready", status=ready, lastTransitionTime=now)
        self.api.put(new)

    def _change(self, image: str = "", strategy: str = "") -> None:
        new = copy_of(self.owner)
        new.metadata.generation += 1
        if image:
            new.spec.template.spec.containers[0].image = image
        if strategy:
            rolling = new.spec.updateStrategy.rollingUpdate
            rolling.maxSurge.intVal = int(strategy == "surge")
            rolling.maxUnavailable.intVal = 1 - rolling.maxSurge.intVal
        self.api.put(new)

    async def step(self, verb: str, argument: str) -> None:
        match verb:
            case "node":
                if self.api.find(kinds.NODE, argument) is None:
                    self.api.put(node(argument))
                else:
                    self.api.remove(kinds.NODE, argument)
                    for each in self.pods(argument):  # as the pod garbage collector does
                        if each.spec.nodeName:
                            self.api.remove(kinds.POD, each.metadata.name)
            case "taint":
                found = self.api.find(kinds.NODE, argument)
                if found is not None:
                    tainted = [] if found.spec.taints else [{"key": "x", "effect": "NoExecute"}]
                    self.api.put(node(argument, taints=tainted))
            case "image":
                self._change(image=argument)
            case "strategy":
                self._surged |= argument == "surge"
                self._change(strategy=argument)
            case "run" | "fail":
                for each in self.pods(argument):
                    if each.status.phase != "Failed":
                        self.run_pod(each, "Running" if verb == "run" else "Failed")
            case "delete":
                for each in self.pods(argument):
                    self.api.remove(kinds.POD, each.metadata.name)
            case "refuse":
                error = errors.conflict(kinds.POD, "x", "refused by the test")
                name, _, twice = argument.partition(" ")
                self.api.rejections[name] = [error] * (2 if twice else 1)
            case "restart":
                self.restart()
            case "wait":
                await self.clock.advance(float(argument))

    def check(self) -> None:
        """Check that no node has more running pods than a surge allows, after there was one."""
        most = 2 if self._surged else 1
        for name, count in Counter(map(target_node, filter(is_active, self.api.all_of(kinds.POD)))).items():
            assert count <= most, f"{name} has {count} pods"

    def is_done(self) -> bool:
        fits = [each.metadata.name for each in self.api.all_of(kinds.NODE) if not each.spec.taints]
        pods = self.api.all_of(kinds.POD)
        status = self.owner.status
        return (
            sorted(map(target_node, pods)) == sorted(fits)
            and all(each.status.phase == "Running" for each in pods)
            and all(each.spec.containers[0].image == self._image for each in pods)
            and status.observedGeneration == self.owner.metadata.generation
            and (status.desiredNumberScheduled, status.updatedNumberScheduled) == (len(fits), len(fits))
            and (status.numberAvailable, status.numberMisscheduled) == (len(fits), 0)
        )

    @property
    def _image(self) -> str:
        return self.owner.spec.template.spec.containers[0].image

    async def settle(self) -> None:
        """Let the others work, and time pass, until all pods run."""
        for _ in range(ROUNDS_MAX):
            for each in self.api.all_of(kinds.POD):
                if each.status.phase in ("", "Pending"):
                    self.run_pod(each)
            await self.clock.advance(20)
            self.check()
            if self.is_done():
                return
        raise AssertionError(f"it does not end: {self.owner.status}\n{self.api.all_of(kinds.POD)}")


async def _play(steps: list[tuple[str, str]]) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            world = World(tasks)
            world.restart()
            for verb, argument in steps:
                await world.step(verb, argument)
                await world.clock.advance(0.01)
                world.check()
            world.api.rejections.clear()
            await world.settle()
            revisions = world.api.all_of(kinds.CONTROLLER_REVISION)
            data = data_of(world.owner.spec.template)
            latest = max(revisions, key=lambda each: each.revision)
            assert latest.data.raw == data
            assert sum(each.data.raw == data for each in revisions) == 1
            world.stop()


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=20))
def test_any_order_ends_in_one_current_pod_on_each_fitting_node(steps: list[tuple[str, str]]) -> None:
    anyio.run(_play, steps)
