"""Whatever happens to the queue, a pod is in one place, and none is forgotten."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.scheduler.event_handlers import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE
from nominee.scheduler.framework.api.events import ActionType, ClusterEvent, EventResource
from nominee.scheduler.framework.interface import NominatingInfo, NominatingMode
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.queue.hints import Registration
from tests.scheduler.builders import node, pod
from tests.scheduler.queue.replay import World

NAMES = st.sampled_from(["a", "b", "c", "d"])
NODES = st.sampled_from(["", "n1", "n2"])
PLUGINS = st.sets(st.sampled_from(["Frees", "Waits"]), max_size=2)
UNGATED = ClusterEvent(EventResource.Pod, ActionType.UpdatePodSchedulingGatesEliminated)


class QueueMachine(RuleBasedStateMachine):
    """Pods come, change, are tried, rejected, bound and deleted, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(
            [
                Registration("Frees", ASSIGNED_POD_DELETE),
                Registration("Waits", ASSIGNED_POD_ADD),
                Registration("SchedulingGates", UNGATED),
            ]
        )
        self.versions = 0

    def manifest(self, name: str, priority: int, gated: bool, nominated: str) -> core.Pod:
        spec: dict[str, Any] = {"schedulingGates": [{"name": "x"}]} if gated else {}
        made = pod(name, priority=priority, nominated=nominated, **spec).pod
        self.versions += 1
        made.metadata.resourceVersion = str(self.versions)
        return made

    @rule(name=NAMES, priority=st.integers(0, 2), gated=st.booleans(), nominated=NODES)
    def put(self, name: str, priority: int, gated: bool, nominated: str) -> None:
        world = self.world
        key = ObjectKey("default", name)
        old = world.pods.get(key)
        if old is not None and not old.spec.schedulingGates:
            gated = False  # gates cannot be added
        made = self.manifest(name, priority, gated, nominated)
        world.pods[key] = made
        if old is None:
            world.handlers.pod_added(made, world.now)
        else:
            world.handlers.pod_updated(old, made, world.now)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        found = self.world.pods.pop(ObjectKey("default", name), None)
        if found is not None:
            self.world.handlers.pod_deleted(found, False, self.world.now)

    @rule()
    def pop(self) -> None:
        self.world._pop({})

    @rule(name=NAMES, plugins=PLUGINS, pending=PLUGINS, nominated=NODES)
    def fail(self, name: str, plugins: set[str], pending: set[str], nominated: str) -> None:
        if name in self.world.popped:
            nominating = {"mode": "Override", "node": nominated} if nominated else None
            step = {"pod": name, "nominate": nominating}
            self.world._fail(step, plugins=plugins, pending=pending - plugins, fit=True)

    @rule(name=NAMES)
    def bind(self, name: str) -> None:
        world = self.world
        info = world.popped.pop(name, None)
        if info is None:
            return
        world.queue.done(info.pod_info.uid)
        current = world.pods.get(info.pod_info.key)
        if current is not None:
            # The watch shows it bound, and a moment later it has run to its end.
            bound = core.Pod()
            bound.CopyFrom(current)
            bound.spec.nodeName = "n1"
            world.handlers.pod_updated(current, bound, world.now)
            del world.pods[info.pod_info.key]
            world.handlers.pod_deleted(bound, False, world.now)

    @rule(name=NAMES)
    def activate(self, name: str) -> None:
        found = self.world.pods.get(ObjectKey("default", name))
        if found is not None:
            self.world.queue.activate([found], self.world.now)

    @rule(name=NAMES, nominated=NODES)
    def nominate(self, name: str, nominated: str) -> None:
        found = self.world.pods.get(ObjectKey("default", name))
        if found is not None:
            info = NominatingInfo(NominatingMode.Override, nominated)
            self.world.queue.nominate(PodInfo(found), info)

    @rule(number=st.integers(1, 2))
    def node_comes(self, number: int) -> None:
        name = f"n{number}"
        if name not in self.world.nodes:
            self.world.nodes[name] = node(name)
            self.world.handlers.node_added(self.world.nodes[name], self.world.now)

    @rule(seconds=st.floats(0.01, 400))
    def time_passes(self, seconds: float) -> None:
        self.world.move_to(self.world.now + seconds)

    @invariant()
    def each_pod_is_in_one_place(self) -> None:
        self.world.queue.validate()

    @invariant()
    def no_pod_is_forgotten(self) -> None:
        queue = self.world.queue
        for key, found in self.world.pods.items():
            assert queue.get(key) is not None or found.metadata.uid in queue.in_flight, f"{key} is nowhere"

    @invariant()
    def nothing_that_is_gone_is_kept(self) -> None:
        queue, world = self.world.queue, self.world
        for info in [*queue.active(), *queue.backing_off(), *queue.error_backing_off()]:
            assert info.pod_info.key in world.pods
        for pods in world.nominator.by_node.values():
            for nominated in pods.values():
                assert nominated.key in world.pods

    def teardown(self) -> None:
        """In the end every pod that nothing holds gets another try."""
        world = self.world
        for name in list(world.popped):
            self.fail(name, {"Frees"}, set(), "")
        world.move_to(world.now + 700)
        tried = {info.pod_info.key for info in world.queue.active()}
        for key, found in world.pods.items():
            assert found.spec.schedulingGates or key in tried, f"{key} waits for ever"


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestQueue = QueueMachine.TestCase
