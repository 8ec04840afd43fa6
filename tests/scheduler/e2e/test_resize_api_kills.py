"""SIGKILL of the API server at each write on the path of a deferred resize, over real processes.

A pod of high priority grows into the room of a victim. Wherever the API server dies, the resize is done once,
no other pod is evicted, and no watch event shows more than the node has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import anyio
import pytest
from anyio.abc import TaskGroup

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import retry_unavailable
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.resources.pod_resources import CPU, amount
from tests.kubelet.e2e.support import KUBELET, Lab, condition, in_force, is_ready, lab, pod, runs
from tests.scheduler.e2e.resizing import GATE, create_priorities, entry
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

NODE_CPU: Final = 3000
"""Cpu of the node in milli-units: it is full."""
RESIZED: Final = 2
"""The generation of a pod that was resized once."""
KILLS_MAX: Final = 10
"""Writes of events may come first; the API server dies at them, too."""
QUIET_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Write:
    """A write, as the failpoint logs it.

    `process` is held before it, at the failpoint `held`, which it has passed `passed` times before.
    """

    logged: str
    process: str = ""
    held: str = ""
    passed: int = 0


WRITES: Final = {
    "resize": Write("verb=PATCH resource=pods object=default/growing"),
    "status: deferred": Write(
        "verb=PATCH resource=pods object=default/growing", KUBELET, "kubelet.status.before"
    ),
    "mark": Write("verb=PATCH resource=pods object=default/victim", "scheduler", "scheduler.preempt.before"),
    "eviction": Write(
        "verb=DELETE resource=pods object=default/victim", "scheduler", "scheduler.preempt.victim.marked"
    ),
    "status: victim stopped": Write(
        "verb=PATCH resource=pods object=default/victim", KUBELET, "kubelet.status.before", 1
    ),
    "removal": Write("verb=DELETE resource=pods object=default/victim", KUBELET, "kubelet.delete.before"),
    "status: in progress": Write(
        "verb=PATCH resource=pods object=default/growing", KUBELET, "kubelet.status.before", 2
    ),
    "status: done": Write(
        "verb=PATCH resource=pods object=default/growing", KUBELET, "kubelet.status.before", 3
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["apiserver.write.before", "apiserver.write.after"])
@pytest.mark.parametrize("name", WRITES)
async def test_a_kill_at_a_write(cluster: Cluster, name: str, point: str) -> None:
    """KEP-5836, "Processing Deferred Resizes in the Scheduling Cycle"; KEP-1287, "Resize Status"."""
    write = WRITES[name]
    cluster.arguments("scheduler", GATE)
    kubelet = (
        "--node-cpu",
        f"{NODE_CPU}m",
        "--node-lease-duration",
        "3600s",
        "--actuation-delay",
        "300ms",
        GATE,
    )
    async with lab(cluster, *kubelet, apiserver=(GATE,)) as here, anyio.create_task_group() as tasks:
        await cluster.start("scheduler")
        before = await _run_pods(here)
        room = Informer(here.client, kinds.POD, namespace="default")
        used: list[int] = []
        room.add_batch_handler(lambda: used.append(_used(room.list())))
        tasks.start_soon(room.run)
        await room.wait_synced()
        if write.held:
            action = f"{write.passed}*off->pause" if write.passed else "pause"
            here.failpoint(write.held, action, process=write.process)
            await here.resize("growing", cpu="2")
        await _kill(here, point, write, tasks)
        after = await here.pod("growing", _is_resized)
        await eventually(lambda: entry(cluster, "growing"), lambda found: not found)
        await here.gone("victim")
        assert runs(after) == runs(before)
        assert after.metadata.generation == RESIZED
        _check_disruptions(here.history.events)
        assert max(used) <= NODE_CPU
        tasks.cancel_scope.cancel()


async def _run_pods(here: Lab) -> core.Pod:
    """Fill the node; return the pod of high priority that will grow from 1 cpu to 2."""
    await create_priorities(here.client)
    for name, priority in (("victim", "low"), ("other", "middle"), ("growing", "high")):
        made = pod(name, {"cpu": "1"}, priorityClassName=priority, nodeName="node-0")
        made.spec.terminationGracePeriodSeconds = 1
        await here.client.create(made)
    return [await here.pod(name, is_ready) for name in ("victim", "other", "growing")][-1]


async def _kill(here: Lab, point: str, write: Write, tasks: TaskGroup) -> None:
    """Kill the API server at the write, and start it again.

    If another write comes first, it dies there, and the process that is held will try its write again.
    """
    for _ in range(KILLS_MAX):
        if write.held:
            await here.waits_at(write.held, process=write.process)
        await _quiet(here)
        here.failpoint(point, "crash", process="apiserver")
        if write.held:
            here.failpoint(write.held, "off", process=write.process)
        else:
            tasks.start_soon(retry_unavailable, lambda: here.resize("growing", cpu="2"))
        assert await here.cluster.exited("apiserver") == -9
        *_, line = (each for each in here.cluster.log("apiserver").splitlines() if f"name={point} " in each)
        if line.endswith(write.logged):
            await here.cluster.start("apiserver")
            return
        if write.held:
            here.failpoint(write.held, "pause", process=write.process)
        await here.cluster.start("apiserver")
    raise AssertionError(f"it never died at {write.logged}, last at {line}")


async def _quiet(here: Lab) -> None:
    """Return when no write has come for a while: those of other pods and of events are done."""
    last = -1

    async def is_quiet() -> bool:
        nonlocal last
        before = last
        state = json.loads(here.cluster.ask("apiserver", "/failpoints/apiserver.write.before").body)
        last = int(state["hits"])
        await anyio.sleep(QUIET_SECONDS)
        return last == before

    await eventually(is_quiet, bool)


def _is_resized(seen: core.Pod) -> bool:
    """Return whether the resize is in force and no condition of a resize is left."""
    left = [condition(seen, name) for name in ("PodResizePending", "PodResizeInProgress")]
    return (
        seen.status.observedGeneration == RESIZED and in_force(seen) == {"cpu": "2"} and left == [None, None]
    )


def _check_disruptions(events: Iterable[core.Pod]) -> None:
    """Check that only the victim was marked or deleted."""
    for event in events:
        disrupted = event.metadata.HasField("deletionTimestamp") or condition(event, "DisruptionTarget")
        assert not disrupted or event.metadata.name == "victim"


def _used(pods: Iterable[core.Pod]) -> int:
    """Return the cpu of running containers: allocated or in force, whichever is more, in milli-units."""
    return sum(
        max(amount(CPU, quantities[CPU]) for quantities in (row.allocatedResources, row.resources.requests))
        for one in pods
        if one.status.phase == "Running"
        for row in one.status.containerStatuses
    )
