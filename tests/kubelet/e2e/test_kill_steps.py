"""SIGKILL of the kubelet at every step of a resize, over real processes.

Two resizes: b shrinks, and a, one of whose containers restarts for memory, grows into b's room. Wherever the
kubelet dies, no allocation that the API has shown is lost, no container restarts more often than its policy
asks for, and no watch event shows more than the node has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest

from nominee.kubelet.checkpoint import Checkpoint, decode
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import CPU, MEMORY, amount
from tests.kubelet.e2e.support import KUBELET, Lab, condition, is_ready, lab, pod
from tests.support.cluster import Cluster

RESIZED: Final = 2
"""The generation of a resized pod."""
NODE: Final = {CPU: 4000, MEMORY: 4 << 30}
STEPS: Final = {
    "kubelet.checkpoint.before": (0, 1, 2),
    "kubelet.checkpoint.after": (0, 1, 2),
    "kubelet.actuate.before": (0, 1),
    "kubelet.actuate.between": (0, 1, 2, 3, 4, 5),
    "kubelet.actuate.after": (0, 1),
    "kubelet.status.before": (0, 1, 2),
    "kubelet.status.after": (0, 1, 2),
}
"""Failpoints on the path, and how often each is passed before the kubelet dies there."""


def growing() -> core.Pod:
    """Return a: `main` is resized in place, `restarted` restarts for memory."""
    made = pod("a", {"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"})
    other = made.spec.containers.add(name="restarted", image="registry.k8s.io/pause:3.10")
    for quantities in (other.resources.requests, other.resources.limits):
        quantities["cpu"].string, quantities["memory"].string = "500m", "512Mi"
    other.resizePolicy.add(resourceName="memory", restartPolicy="RestartContainer")
    return made


def resources(**quantities: str) -> dict[str, dict[str, str]]:
    return {"requests": quantities, "limits": quantities}


async def resize(here: Lab, name: str, **asked: dict[str, dict[str, str]]) -> None:
    """Ask for other resources of containers."""
    containers = [{"name": container, "resources": each} for container, each in asked.items()]
    await here.client.patch(
        kinds.POD, name, "default", {"spec": {"containers": containers}}, subresource="resize"
    )


def is_settled(seen: core.Pod) -> bool:
    """Return whether the resize is in force and no longer in progress.

    A PodResizePending that was written before the kill may stay, as upstream (docs/design/016).
    """
    if seen.metadata.generation < RESIZED or condition(seen, "PodResizeInProgress") is not None:
        return False
    asked = {one.name: one.resources for one in seen.spec.containers}
    return all(
        row.resources == asked[row.name] and row.allocatedResources == asked[row.name].requests
        for row in seen.status.containerStatuses
    )


def taken(pods: Iterable[core.Pod], resource: str) -> int:
    """Return what containers are allocated or have in force, whichever is more."""
    return sum(
        max(
            amount(resource, quantities[resource])
            for quantities in (row.allocatedResources, row.resources.requests)
        )
        for one in pods
        for row in one.status.containerStatuses
        if resource in row.allocatedResources
    )


def check_room(events: Iterable[core.Pod]) -> None:
    """Check that no watch event shows more than the node has."""
    newest: dict[str, core.Pod] = {}
    for event in events:
        newest[event.metadata.uid] = event
        for resource, capacity in NODE.items():
            assert taken(newest.values(), resource) <= capacity


def check_allocations(saved: Checkpoint, shown: Iterable[core.Pod]) -> None:
    """Check that an allocation that the API shows is on disk, unless a newer one is."""
    for one in shown:
        allocated = saved.allocations[one.metadata.uid]
        asked = {row.name: row.resources.requests for row in one.spec.containers}
        for row in one.status.containerStatuses:
            held = {name: quantity.string for name, quantity in asked[row.name].items()}
            if row.allocatedResources == asked[row.name]:
                assert allocated.of(row.name).requests.to_dict() == held


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "passed"), [(point, passed) for point, numbers in STEPS.items() for passed in numbers]
)
async def test_a_kill_at_any_step_of_a_resize(cluster: Cluster, point: str, passed: int) -> None:
    """KEP-1287, "Kubelet Restart Tolerance"."""
    async with lab(cluster, "--node-cpu", "4", "--node-memory", "4Gi") as here:
        await here.create(growing())
        await here.create(pod("b", {"cpu": "2", "memory": "1Gi"}, limits={"cpu": "2", "memory": "1Gi"}))
        await here.create(pod("c", {"cpu": "100m"}))
        before = {name: await here.pod(name, is_ready) for name in ("a", "b", "c")}
        here.failpoint(point, f"{passed}*off->crash" if passed else "crash")
        await resize(
            here, "a", main=resources(cpu="2", memory="1536Mi"), restarted=resources(cpu="500m", memory="1Gi")
        )
        if passed:  # the deferral is the first status that is written
            await here.pod("a", lambda one: condition(one, "PodResizePending") is not None)
        await resize(here, "b", main=resources(cpu="1", memory="1Gi"))
        assert await cluster.exited(KUBELET) == -9
        saved = decode((cluster.directory / "kubelet" / "node-0.json").read_bytes())
        shown = [await here.get(name) for name in before]
        check_allocations(saved, [one for one in shown if one is not None])
        await cluster.start(KUBELET)
        # What was not yet allocated is looked at again with the first removal, or after half a minute.
        await here.client.delete(kinds.POD, "c", "default")
        after = {name: await here.pod(name, is_settled) for name in ("a", "b")}
        check_room(here.history.events)
        assert restarts(after["a"]) == {"main": 0, "restarted": 1}
        assert restarts(after["b"]) == {"main": 0}
        main = next(row for row in after["a"].status.containerStatuses if row.name == "main")
        old = next(row for row in before["a"].status.containerStatuses if row.name == "main")
        assert (main.containerID, main.state) == (old.containerID, old.state)


def restarts(seen: core.Pod) -> dict[str, int]:
    return {row.name: row.restartCount for row in seen.status.containerStatuses}
