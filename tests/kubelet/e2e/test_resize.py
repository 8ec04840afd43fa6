"""In-place resize over real processes: deferral and retry, actuation, and kills between any two steps."""

from __future__ import annotations

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from tests.kubelet.e2e.support import KUBELET, Lab, condition, generation, in_force, is_ready, lab, pod, runs
from tests.support.cluster import Cluster


async def test_a_resize_is_done_without_a_restart(cluster: Cluster) -> None:
    async with lab(cluster, "--actuation-delay", "200ms") as here:
        await here.create(pod("a", {"cpu": "1"}))
        before = await here.pod("a", is_ready)
        await here.resize("a", cpu="2")
        seen = await here.pod("a", lambda one: condition(one, "PodResizeInProgress") is not None)
        assert generation(seen, "PodResizeInProgress") == 2
        assert in_force(seen) == {"cpu": "1"}
        assert seen.status.containerStatuses[0].allocatedResources["cpu"].string == "2"
        seen = await here.pod("a", lambda one: in_force(one) == {"cpu": "2"})
        assert condition(seen, "PodResizeInProgress") is None
        assert runs(seen) == runs(before)
        reasons = await here.event_reasons("a", until="ResizeCompleted")
        assert [reason for reason in reasons if reason.startswith("Resize")] == [
            "ResizeStarted", "ResizeCompleted",
        ]  # fmt: skip


async def test_a_deferred_resize_waits_for_room(cluster: Cluster) -> None:
    async with lab(cluster, "--node-cpu", "3") as here:
        await here.create(pod("a", {"cpu": "1"}))
        await here.create(pod("b", {"cpu": "2"}))
        await here.pod("b", is_ready)
        before = await here.pod("a", is_ready)
        await here.resize("a", cpu="2500m")
        seen = await here.pod("a", lambda one: condition(one, "PodResizePending") is not None)
        pending = condition(seen, "PodResizePending")
        assert pending is not None
        assert pending.reason == "Deferred"
        assert pending.message == (
            "Node didn't have enough resource: cpu, requested: 2500, used: 2000, capacity: 3000"
        )
        await here.client.delete(kinds.POD, "b", "default")
        seen = await here.pod("a", lambda one: in_force(one) == {"cpu": "2500m"})
        assert condition(seen, "PodResizePending") is None
        assert runs(seen) == runs(before)


async def test_a_shrinking_neighbour_makes_room(cluster: Cluster) -> None:
    async with lab(cluster, "--node-cpu", "3") as here:
        await here.create(pod("a", {"cpu": "1"}))
        await here.create(pod("b", {"cpu": "2"}))
        await here.pod("a", is_ready)
        await here.pod("b", is_ready)
        await here.resize("a", cpu="2")
        await here.pod("a", lambda one: condition(one, "PodResizePending") is not None)
        await here.resize("b", cpu="1")
        await here.pod("a", lambda one: in_force(one) == {"cpu": "2"})


async def test_a_pod_that_is_being_deleted_keeps_its_room_until_it_has_stopped(cluster: Cluster) -> None:
    async with lab(cluster, "--node-cpu", "3") as here:
        await here.create(pod("a", {"cpu": "1"}))
        await here.create(pod("b", {"cpu": "2"}))
        await here.pod("a", is_ready)
        await here.pod("b", is_ready)
        here.failpoint("kubelet.terminate.before", "pause")
        await here.client.delete(kinds.POD, "b", "default")
        await here.resize("a", cpu="2")
        await here.pod("a", lambda one: condition(one, "PodResizePending") is not None)
        here.failpoint("kubelet.terminate.before", "off")
        await here.pod("a", lambda one: in_force(one) == {"cpu": "2"})


async def test_a_container_restarts_where_its_policy_says_so(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        made = pod("a", {"cpu": "1", "memory": "1Gi"})
        made.spec.containers[0].resizePolicy.add(resourceName="memory", restartPolicy="RestartContainer")
        await here.create(made)
        before = await here.pod("a", is_ready)
        await here.resize("a", memory="2Gi")
        seen = await here.pod("a", lambda one: in_force(one)["memory"] == "2Gi")
        row = seen.status.containerStatuses[0]
        assert row.restartCount == 1
        assert row.containerID != before.status.containerStatuses[0].containerID
        assert row.lastState.terminated.containerID == before.status.containerStatuses[0].containerID


@pytest.mark.parametrize(
    "point",
    # The others in `make test-all`, where test_kill_steps.py kills at each step of more resizes, too.
    [
        pytest.param("kubelet.checkpoint.before", marks=pytest.mark.slow),
        "kubelet.checkpoint.after",
        "kubelet.actuate.before",
        pytest.param("kubelet.actuate.after", marks=pytest.mark.slow),
        pytest.param("kubelet.status.before", marks=pytest.mark.slow),
        pytest.param("kubelet.status.after", marks=pytest.mark.slow),
    ],
)
async def test_a_kill_in_the_middle_of_a_resize_loses_nothing(cluster: Cluster, point: str) -> None:
    async with lab(cluster, "--actuation-delay", "100ms") as here:
        await here.create(pod("a", {"cpu": "1"}))
        await here.create(pod("b", {"cpu": "1"}))
        before = await here.pod("a", is_ready)
        await here.pod("b", is_ready)
        here.failpoint(point, "crash")
        await here.resize("a", cpu="2")
        assert await cluster.exited(KUBELET) == -9
        await cluster.start(KUBELET)
        # What was not yet allocated is looked at again with the first removal, or after half a minute.
        await here.client.delete(kinds.POD, "b", "default")
        seen = await _settled(here, "2")
        assert runs(seen) == runs(before)
        assert here.allocations()["default/a"]["allocated"] == {
            "containers": [["main", {"requests": {"cpu": "2"}}]]
        }


async def _settled(here: Lab, cpu: str) -> core.Pod:
    return await here.pod(
        "a",
        lambda one: in_force(one) == {"cpu": cpu} and condition(one, "PodResizeInProgress") is None,
    )


async def test_an_allocation_survives_kill_9(cluster: Cluster) -> None:
    """Deferred before, deferred after: a restart must not grant what does not fit (README rule 14)."""
    async with lab(cluster, "--node-cpu", "3") as here:
        await here.create(pod("a", {"cpu": "1"}))
        await here.create(pod("b", {"cpu": "2"}))
        await here.pod("b", is_ready)
        await here.pod("a", is_ready)
        await here.resize("a", cpu="2")
        await here.pod("a", lambda one: condition(one, "PodResizePending") is not None)
        await here.restart_kubelet()
        assert here.allocations()["default/a"]["allocated"]["containers"] == [
            ["main", {"requests": {"cpu": "1"}}]
        ]
        await here.client.delete(kinds.POD, "b", "default")
        await here.pod("a", lambda one: in_force(one) == {"cpu": "2"})


async def test_a_corrupt_checkpoint_stops_the_kubelet_and_is_named(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        await here.create(pod("a", {"cpu": "1"}))
        before = await here.pod("a", is_ready)
        cluster.kill(KUBELET)
        path = cluster.directory / "kubelet" / "node-0.json"
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        cluster.spawn(KUBELET)
        assert await cluster.exited(KUBELET) == 1
        assert f"node node-0: checkpoint {path}: cannot be read" in cluster.log(KUBELET)
        assert path.read_bytes() == data[: len(data) // 2], "the file is left for a person to look at"
        path.unlink()
        await cluster.start(KUBELET)
        await here.resize("a", cpu="2")
        seen = await here.pod("a", lambda one: in_force(one) == {"cpu": "2"})
        assert runs(seen) == runs(before), "containers are taken over from the status"


@pytest.mark.slow
async def test_a_memory_limit_waits_until_less_is_used(cluster: Cluster) -> None:
    """KEP-1287, "Memory Limit Decreases"."""
    async with lab(cluster) as here:
        made = pod("a", {"memory": "1Gi"}, limits={"memory": "2Gi"})
        made.metadata.annotations["nominee.dev/memory-usage"] = "1536Mi"
        await here.create(made)
        await here.pod("a", is_ready)
        await here.resize("a", limits={"memory": "1Gi"}, memory="1Gi")
        seen = await here.pod("a", lambda one: condition(one, "PodResizeInProgress") is not None)
        held = condition(seen, "PodResizeInProgress")
        assert held is not None
        assert (held.reason, held.message) == (
            "Error",
            "cannot decrease memory limits: ["
            "attempting to set pod memory limit (1073741824) below current usage (1610612736), "
            'attempting to set container "main" memory limit (1073741824) below current usage (1610612736)]',
        )
        annotation = {"metadata": {"annotations": {"nominee.dev/memory-usage": "512Mi"}}}
        await here.client.patch(kinds.POD, "a", "default", annotation)
        await here.pod("a", lambda one: condition(one, "PodResizeInProgress") is None)


async def test_a_refused_actuation_is_tried_again(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        await here.create(pod("a", {"cpu": "1"}))
        await here.pod("a", is_ready)
        here.failpoint("kubelet.actuate.before", '1*error("runtime refused the update")')
        await here.resize("a", cpu="2")
        seen = await here.pod("a", lambda one: condition(one, "PodResizeInProgress") is not None)
        held = condition(seen, "PodResizeInProgress")
        assert held is not None
        assert (held.reason, held.message) == ("Error", "runtime refused the update")
        await here.resize("a", cpu="3")
        await here.pod("a", lambda one: in_force(one) == {"cpu": "3"})


async def test_before_1_33_the_status_field_shows_a_resize(cluster: Cluster) -> None:
    gates = ("--emulated-version", "1.32", "--feature-gates", "InPlacePodVerticalScaling=true")
    async with lab(cluster, "--node-cpu", "2", *gates) as here:
        await here.create(pod("a", {"cpu": "1"}))
        await here.create(pod("b", {"cpu": "1"}))
        await here.pod("a", is_ready)
        await here.pod("b", is_ready)
        await here.resize("a", cpu="2")
        seen = await here.pod("a", lambda one: one.status.resize not in ("", "Proposed"))
        assert seen.status.resize == "Deferred"
        assert condition(seen, "PodResizePending") is None
        assert not seen.status.observedGeneration


@pytest.mark.parametrize("version", ["1.33", "1.38"])
async def test_an_older_and_a_newer_kubelet_resize_too(cluster: Cluster, version: str) -> None:
    async with lab(cluster, "--actuation-delay", "100ms", "--emulated-version", version) as here:
        await here.create(pod("a", {"cpu": "1"}))
        await here.pod("a", is_ready)
        await here.resize("a", cpu="2")
        seen = await here.pod("a", lambda one: condition(one, "PodResizeInProgress") is not None)
        assert generation(seen, "PodResizeInProgress") == (0 if version == "1.33" else 2)
        await here.pod("a", lambda one: in_force(one) == {"cpu": "2"})


async def test_a_pod_level_resize_restarts_containers_that_inherit_the_limit(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        made = pod("a", {})
        made.spec.resources.requests["memory"].string = "100Mi"
        for name, text in (("cpu", "200m"), ("memory", "200Mi")):
            made.spec.resources.limits[name].string = text
        made.spec.containers[0].resizePolicy.add(resourceName="memory", restartPolicy="RestartContainer")
        own = made.spec.containers.add(name="own", image="registry.k8s.io/pause:3.10")
        own.resources.limits["memory"].string = "50Mi"
        own.resizePolicy.add(resourceName="memory", restartPolicy="RestartContainer")
        await here.create(made)
        await here.pod("a", is_ready)

        async def resize(name: str, text: str) -> dict[str, int]:
            """The restart counts once the limit is in force."""
            body = {"spec": {"resources": {"limits": {name: text}}}}
            await here.client.patch(kinds.POD, "a", "default", body, subresource="resize")
            seen = await here.pod("a", lambda one: one.status.resources.limits[name].string == text)
            return {row.name: row.restartCount for row in seen.status.containerStatuses}

        assert await resize("cpu", "400m") == {"main": 0, "own": 0}
        assert await resize("memory", "400Mi") == {"main": 1, "own": 0}
