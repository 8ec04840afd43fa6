"""A pod's life on a node, over real processes."""

from __future__ import annotations

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import from_time
from tests.kubelet.e2e.support import KUBELET, condition, generation, is_ready, lab, pod, runs
from tests.support.cluster import Cluster
from tests.support.eventually import eventually


async def test_a_node_is_registered_with_lease_and_status(cluster: Cluster) -> None:
    async with lab(cluster, "--node-zones", "a,b", "--node-labels", "disk=ssd", nodes=3) as here:
        nodes = (await here.client.list(kinds.NODE)).items
        assert [node.metadata.name for node in nodes] == ["node-0", "node-1", "node-2"]
        node = nodes[1]
        assert node.metadata.labels["topology.kubernetes.io/zone"] == "b"
        assert node.metadata.labels["disk"] == "ssd"
        assert node.metadata.labels["kubernetes.io/hostname"] == "node-1"
        assert node.status.allocatable["memory"].string == "32Gi"
        assert {row.type: row.status for row in node.status.conditions} == {
            "MemoryPressure": "False",
            "DiskPressure": "False",
            "PIDPressure": "False",
            "Ready": "True",
        }

        # A kubelet is ready before its nodes' leases are written.
        async def holders() -> set[str]:
            leases = (await here.client.list(kinds.LEASE, "kube-node-lease")).items
            return {lease.spec.holderIdentity for lease in leases}

        await eventually(holders, lambda seen: seen == {"node-0", "node-1", "node-2"})


async def test_a_pod_runs_and_is_ready(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        await here.create(pod("a", {"cpu": "1"}))
        seen = await here.pod("a", is_ready)
        assert seen.status.phase == "Running"
        assert seen.status.podIP.startswith("10.")
        assert [row.type for row in seen.status.conditions] == [
            "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled",
        ]  # fmt: skip
        assert generation(seen, "Ready") == 1
        assert seen.status.containerStatuses[0].state.running.startedAt.seconds > 0
        assert await here.event_reasons("a", until="Started") == ["Pulled", "Created", "Started"]
        for event in (await here.client.list(kinds.EVENT, "default")).items:
            assert (event.source.component, event.source.host) == ("kubelet", seen.spec.nodeName)
            assert (event.reportingComponent, event.reportingInstance) == ("kubelet", seen.spec.nodeName)
            assert event.count == 1
        await here.client.delete(kinds.POD, "a", "default")
        assert (await here.event_reasons("a", until="Killing"))[-1] == "Killing"


async def test_a_pod_that_does_not_fit_is_rejected(cluster: Cluster) -> None:
    async with lab(cluster, "--node-cpu", "2") as here:
        await here.create(pod("a", {"cpu": "1500m"}))
        await here.pod("a", is_ready)
        await here.create(pod("b", {"cpu": "1"}))
        seen = await here.pod("b", lambda one: one.status.phase == "Failed")
        assert seen.status.reason == "OutOfcpu"
        assert seen.status.message == (
            "Pod was rejected: Node didn't have enough resource: cpu, "
            "requested: 1000, used: 1500, capacity: 2000"
        )
        await here.create(_selective())
        seen = await here.pod("c", lambda one: one.status.phase == "Failed")
        assert seen.status.reason == "NodeAffinity"
        await here.client.delete(kinds.POD, "b", "default")
        await here.gone("b")


def _selective() -> core.Pod:
    made = pod("c", {"cpu": "100m"})
    made.spec.nodeSelector["disk"] = "ssd"
    return made


async def test_a_deleted_pod_stops_in_its_grace(cluster: Cluster) -> None:
    async with lab(cluster, "--stop-delay", "1s") as here:
        await here.create(pod("a", {"cpu": "1"}))
        await here.pod("a", is_ready)
        here.failpoint("kubelet.delete.before", "pause")
        assert not await here.client.delete(kinds.POD, "a", "default", grace_period_seconds=30)
        seen = await here.pod("a", lambda one: one.status.phase == "Succeeded")
        ended = seen.status.containerStatuses[0].state.terminated
        assert ended.reason == "Completed"
        here.failpoint("kubelet.delete.before", "off")
        await here.gone("a")


async def test_a_slow_container_is_killed_when_its_grace_is_over(cluster: Cluster) -> None:
    async with lab(cluster, "--stop-delay", "1h") as here:
        await here.create(pod("a", {"cpu": "1"}))
        before = await here.pod("a", is_ready)
        await here.client.delete(kinds.POD, "a", "default", grace_period_seconds=1)
        await here.gone("a")
        assert from_time(before.status.startTime) > 0


async def test_delays_show_pending_then_running_then_ready(cluster: Cluster) -> None:
    async with lab(cluster, "--start-delay", "200ms", "--ready-delay", "200ms") as here:
        await here.create(pod("a", {"cpu": "1"}))
        seen = await here.pod("a", lambda one: bool(one.status.containerStatuses))
        assert seen.status.phase == "Pending"
        assert seen.status.containerStatuses[0].state.waiting.reason == "ContainerCreating"
        seen = await here.pod("a", lambda one: one.status.phase == "Running")
        assert [row.reason for row in seen.status.conditions if row.type == "Ready"] == ["ContainersNotReady"]
        await here.pod("a", is_ready)


async def test_an_annotated_pod_ends_by_itself(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        made = pod("job", {"cpu": "1"}, restartPolicy="Never")
        made.metadata.annotations["nominee.dev/run-duration"] = "300ms"
        made.metadata.annotations["nominee.dev/exit-code"] = "3"
        await here.create(made)
        seen = await here.pod("job", lambda one: one.status.phase == "Failed")
        assert seen.status.containerStatuses[0].state.terminated.exitCode == 3
        counted = (
            'kubelet_terminated_containers_total{container_type="container",exit_code="3",reason="Error"} 1.0'
        )
        assert counted in cluster.ask(KUBELET, "/nodes/node-0/metrics").text.splitlines()


@pytest.mark.parametrize(("policy", "code"), [("OnFailure", 3), ("Always", 0)])
async def test_a_container_that_ends_is_run_again_and_then_waits(
    cluster: Cluster, policy: str, code: int
) -> None:
    async with lab(cluster) as here:
        made = pod("loop", {"cpu": "1"}, restartPolicy=policy)
        made.metadata.annotations["nominee.dev/run-duration"] = "100ms"
        made.metadata.annotations["nominee.dev/exit-code"] = str(code)
        await here.create(made)

        def waits(one: core.Pod) -> bool:
            return any(row.state.waiting.reason == "CrashLoopBackOff" for row in one.status.containerStatuses)

        seen = await here.pod("loop", waits)
        (row,) = seen.status.containerStatuses
        assert seen.status.phase == "Running"
        assert row.state.waiting.message == (
            f"back-off 10s restarting failed container=main pod=loop_default({seen.metadata.uid})"
        )
        assert (row.restartCount, row.ready, row.lastState.terminated.exitCode) == (1, False, code)
        assert "BackOff" in await here.event_reasons("loop", until="BackOff")
        await here.client.delete(kinds.POD, "loop", "default")
        await here.gone("loop")


async def test_a_restarted_kubelet_keeps_running_containers(cluster: Cluster) -> None:
    async with lab(cluster, nodes=2) as here:
        for number in range(4):
            await here.create(pod(f"p{number}", {"cpu": "1"}), f"node-{number % 2}")
        before = {f"p{number}": await here.pod(f"p{number}", is_ready) for number in range(4)}
        for kill in (True, False):
            await here.restart_kubelet(kill=kill)
            await here.create(pod(f"new-{kill}".lower(), {"cpu": "1"}))
            await here.pod(f"new-{kill}".lower(), is_ready)
        for name, old in before.items():
            seen = await here.get(name)
            assert seen is not None
            assert runs(seen) == runs(old)
            assert seen.status == old.status, "a restart writes nothing"


async def test_pods_deleted_while_the_kubelet_is_down_are_finished(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        await here.create(pod("a", {"cpu": "1"}))
        await here.pod("a", is_ready)
        cluster.kill("kubelet-0")
        await here.client.delete(kinds.POD, "a", "default")
        await cluster.start("kubelet-0")
        await here.gone("a")


async def test_a_critical_pod_makes_room(cluster: Cluster) -> None:
    async with lab(cluster, "--node-cpu", "2") as here:
        await here.create(pod("a", {"cpu": "1500m"}))
        await here.pod("a", is_ready)
        critical = pod("k", {"cpu": "1"}, priorityClassName="system-node-critical")
        critical.metadata.namespace = "default"
        await here.create(critical)
        await here.pod("k", is_ready)
        seen = await here.pod("a", lambda one: one.status.phase == "Failed")
        assert (seen.status.reason, seen.status.message) == (
            "Preempting",
            "Preempted in order to admit critical pod",
        )
        disrupted = condition(seen, "DisruptionTarget")
        assert disrupted is not None
        assert disrupted.reason == "TerminationByKubelet"


async def test_a_failing_api_server_only_delays(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        here.failpoint("kubelet.status.before", "3*error(503)")
        await here.create(pod("a", {"cpu": "1"}))
        await here.pod("a", is_ready)
        cluster.kill("apiserver")
        await cluster.start("apiserver")
        await here.create(pod("b", {"cpu": "1"}))
        await here.pod("b", is_ready)


async def test_a_pod_is_ended_after_its_active_deadline(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        made = pod("late", {"cpu": "1"}, activeDeadlineSeconds=3600)
        made.metadata.annotations["nominee.dev/stop-delay"] = "300ms"
        await here.create(made)
        running = await here.pod("late", is_ready)
        # On a slow machine a second may pass before the pod is ready, so the short deadline comes now.
        await here.client.patch(kinds.POD, "late", "default", {"spec": {"activeDeadlineSeconds": 1}})
        seen = await here.pod("late", lambda one: one.status.phase == "Failed")
        assert (seen.status.reason, seen.status.message) == (
            "DeadlineExceeded",
            "Pod was active on the node longer than the specified deadline",
        )
        assert seen.status.containerStatuses[0].state.HasField("terminated")
        assert seen.status.startTime == running.status.startTime
        assert "DeadlineExceeded" in await here.event_reasons("late", until="DeadlineExceeded")


async def test_a_deadline_that_passes_while_the_kubelet_is_down_is_kept(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        await here.create(pod("late", {"cpu": "1"}))
        await here.pod("late", is_ready)
        cluster.kill(KUBELET)
        await here.client.patch(kinds.POD, "late", "default", {"spec": {"activeDeadlineSeconds": 1}})
        await cluster.start(KUBELET)
        seen = await here.pod("late", lambda one: one.status.phase == "Failed")
        assert seen.status.reason == "DeadlineExceeded"


async def test_a_deadline_may_be_set_later_and_comes_before_the_start(cluster: Cluster) -> None:
    async with lab(cluster, "--start-delay", "1h") as here:
        await here.create(pod("late", {"cpu": "1"}))
        await here.pod("late", lambda one: bool(one.status.containerStatuses))
        await here.client.patch(kinds.POD, "late", "default", {"spec": {"activeDeadlineSeconds": 1}})
        seen = await here.pod("late", lambda one: one.status.phase == "Failed")
        assert seen.status.reason == "DeadlineExceeded"


async def test_a_pod_of_the_host_network_has_its_nodes_address(cluster: Cluster) -> None:
    async with lab(cluster, "--start-delay", "200ms") as here:
        await here.create(pod("host", {"cpu": "1"}, hostNetwork=True))
        await here.create(pod("own", {"cpu": "1"}))
        waits = await here.pod("host", lambda one: bool(one.status.hostIP))
        assert (waits.status.phase, waits.status.podIP) == ("Pending", waits.status.hostIP)
        seen = await here.pod("host", is_ready)
        node = await here.client.get(kinds.NODE, "node-0")
        assert seen.status.podIP == seen.status.hostIP == node.status.addresses[0].address
        assert [one.ip for one in seen.status.podIPs] == [seen.status.hostIP]
        own = await here.pod("own", is_ready)
        assert own.status.podIP != own.status.hostIP
