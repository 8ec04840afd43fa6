"""An event costs the controllers the same work in a small and in a large cluster: no pass over all pods.

Work is counted in Python's instructions, so that the load of the machine does not matter.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Final

import anyio
import pytest

from nominee.controllers.shell.manager import TABLE, Options
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import controller_of, copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock, to_time
from nominee.machinery.scheduling.daemons import target_node
from tests.controllers.builders import node, pod, replica_set
from tests.controllers.contexts import context_of
from tests.controllers.daemon_sets.builders import daemon_set
from tests.controllers.jobs.builders import job
from tests.controllers.stateful_sets.builders import stateful_set
from tests.controllers.stateful_sets.playing import Api

PODS: Final = 10
"""Of each workload but the DaemonSets."""
RATIO_MAX: Final = 1.05
QUIET: Final = Options(
    node_monitor_period=1e6,
    node_monitor_grace_period=1e6,
    terminated_pod_gc_period=1e6,
    pod_gc_quarantine=1e6,
)
"""No timer passes over all objects meanwhile."""


class Work:
    """The number of instructions of Nominee's code that were executed while it was counted."""

    def __init__(self) -> None:
        self.instructions = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if "/nominee/" not in name or "/tests/" in name:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._executed

    def _executed(self, frame: FrameType, event: str, _: Any) -> Any:
        self.instructions += event == "opcode"
        return self._executed


class Cluster:
    """All controllers over an API server in memory, with so many workloads of ten pods, and nodes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.api, self.clock = Api(), FakeClock()
        for number in range(size):
            self.api.put(node(f"n{number}"))
            self.api.put(replica_set(f"set-{number}", replicas=PODS, uid=f"set-uid-{number}"))
            work = job(f"job-{number}", completions=PODS, parallelism=PODS)
            work.metadata.uid = f"job-uid-{number}"
            self.api.put(work)
            ordered, name = stateful_set(replicas=PODS, policy="Parallel"), f"ordered-{number}"
            ordered.metadata.name, ordered.metadata.uid = name, f"{name}-uid"
            for labels in (ordered.spec.selector.matchLabels, ordered.spec.template.metadata.labels):
                labels["app"] = name
            self.api.put(ordered)
            self.api.put(pod(f"bare-{number}", uid=f"bare-uid-{number}", node=f"n{number}", phase="Running"))
        self.api.put(daemon_set())

    def of(self, owner: str) -> list[core.Pod]:
        return [
            each for each in self.api.all_of(kinds.POD) if (of := controller_of(each)) and of.name == owner
        ]

    def shown(self, each: core.Pod, *, ready: bool) -> core.Pod:
        """Return a pod that runs on its node, as its kubelet reports it."""
        new = copy_of(each)
        new.spec.nodeName = each.spec.nodeName or target_node(each) or "n0"
        new.status.phase = "Running"
        del new.status.conditions[:]
        status = "True" if ready else "False"
        new.status.conditions.add(type="Ready", status=status, lastTransitionTime=to_time(self.clock.now()))
        return new

    async def rest(self) -> None:
        """Let the controllers do what is due, also what they do a while later."""
        before = -1
        while before != self.api.revision:
            before = self.api.revision
            await self.clock.advance(5)

    async def play(self, event: Event) -> int:
        """Return the instructions that an event costs when all pods run."""
        context = context_of(self.api, self.clock)
        controllers = [make(context, QUIET) for make in TABLE.values()]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(context.informers.run)
            await context.informers.wait_synced()
            for controller in controllers:
                tasks.start_soon(controller.run)
            await self.rest()
            for each in self.api.all_of(kinds.POD):
                self.api.put(self.shown(each, ready=True))
            await self.rest()
            assert len(self.api.all_of(kinds.POD)) == self.size * (3 * PODS + 2)
            self.api.log.clear()
            work, change = Work(), event(self)
            with work.counted():
                change()
                await self.rest()
            tasks.cancel_scope.cancel()
        return work.instructions


Event = Callable[[Cluster], Callable[[], object]]
"""Prepares a change, which is not counted, and returns what makes it."""


def _not_ready(owner: str) -> Event:
    return lambda cluster: partial(cluster.api.put, cluster.shown(cluster.of(owner)[0], ready=False))


def _bare(cluster: Cluster) -> Callable[[], object]:
    return partial(cluster.api.put, cluster.shown(cluster.api.pod("bare-0"), ready=False))


def _gone(cluster: Cluster) -> Callable[[], object]:
    return partial(cluster.api.remove, kinds.POD, cluster.of("set-0")[0].metadata.name)


def _heartbeat(cluster: Cluster) -> Callable[[], object]:
    beats = copy_of(cluster.api.find(kinds.NODE, "n0") or node("n0"))
    beats.status.conditions[0].lastHeartbeatTime.CopyFrom(to_time(cluster.clock.now()))
    return partial(cluster.api.put, beats)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(_not_ready("set-0"), id="pod of a ReplicaSet"),
        pytest.param(_not_ready("job-0"), id="pod of a Job"),
        pytest.param(_not_ready("ordered-0"), id="pod of a StatefulSet"),
        pytest.param(_bare, id="pod of no workload"),
        pytest.param(_gone, id="pod that is deleted"),
        pytest.param(_heartbeat, id="node"),
    ],
)
async def test_the_work_for_an_event_does_not_grow_with_the_cluster(event: Event) -> None:
    small, large = await Cluster(2).play(event), await Cluster(8).play(event)
    assert large <= RATIO_MAX * small


async def test_the_work_for_events_of_a_daemon_sets_pods_grows_with_their_number_only() -> None:
    """A reconciliation looks at all nodes, and one comes for all events of a while."""

    def all_at_once(cluster: Cluster) -> Callable[[], object]:
        changed = [cluster.shown(each, ready=False) for each in cluster.of("agent")]
        return lambda: [cluster.api.put(each) for each in changed]

    small, large = await Cluster(4).play(all_at_once), await Cluster(12).play(all_at_once)
    assert large / 12 <= RATIO_MAX * small / 4
