"""Node life cycle over real processes."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any

import anyio
import pytest

from nominee.controllers.nodes.zones import EXCLUDED
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import condition_is, get_condition
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import rfc3339, rfc3339_micro
from tests.controllers.builders import EPOCH, condition, lease, node, pod
from tests.controllers.e2e.support import QUICK, running
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

UNKNOWN = "controllers.node_unknown.before"
ALONE = {EXCLUDED: ""}
"""The labels of a node that is tainted although no other one is ready."""


def _taints(found: core.Node) -> set[tuple[str, str]]:
    return {(taint.key.rpartition("/")[2], taint.effect) for taint in found.spec.taints}


def _tolerations(seconds: int) -> list[dict[str, Any]]:
    return [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": seconds,
        }
        for key in ("not-ready", "unreachable")
    ]


async def test_a_new_node_loses_its_registration_taint_and_gets_its_metadata(cluster: Cluster) -> None:
    async with running(cluster, "--node-monitor-grace-period", "1h") as lab:
        labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}
        made = await lab.create(node(labels=labels))
        assert _taints(made) == {("not-ready", "NoSchedule")}
        found = await lab.object(
            kinds.NODE,
            "n1",
            lambda n: not n.spec.taints and "node.alpha.kubernetes.io/ttl" in n.metadata.annotations,
        )
        assert found.metadata.labels["beta.kubernetes.io/arch"] == "arm64"
        assert found.metadata.annotations["node.alpha.kubernetes.io/ttl"] == "0"
        event = await lab.event("RegisteredNode", "n1")
        assert event.note == "Node n1 event: Registered Node n1 in Controller"
        assert (event.reportingController, event.regarding.uid) == ("node-controller", made.metadata.uid)
        assert not event.regarding.resourceVersion


async def test_a_silent_node_is_unknown_and_its_pods_are_evicted_after_their_toleration(
    cluster: Cluster,
) -> None:
    # No kubelet renews this node's lease: the controller is held until the pods exist.
    async with running(cluster, "--failpoints", f"{UNKNOWN}=pause") as lab:
        conditions = [condition("Ready"), condition("MemoryPressure", "False")]
        await lab.create(node(conditions=conditions, labels=ALONE))
        await lab.object(kinds.NODE, "n1", lambda n: not n.spec.taints)
        stays = await lab.create(pod("stays", tolerations=[{"operator": "Exists"}]))
        goes = await lab.create(pod("goes", tolerations=_tolerations(1)))
        for each in (stays, goes):
            await lab.run_pod(each, "n1")
        lab.arm(UNKNOWN, "off")

        silent = await lab.object(
            kinds.NODE,
            "n1",
            lambda n: _taints(n) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")},
        )
        assert all(taint.HasField("timeAdded") for taint in silent.spec.taints)
        stopped = "Kubelet stopped posting node status."
        never = "Kubelet never posted node status."
        assert {(c.type, c.status, c.reason, c.message) for c in silent.status.conditions} == {
            ("Ready", "Unknown", "NodeStatusUnknown", stopped),
            ("MemoryPressure", "Unknown", "NodeStatusUnknown", stopped),
            ("DiskPressure", "Unknown", "NodeStatusNeverUpdated", never),
            ("PIDPressure", "Unknown", "NodeStatusNeverUpdated", never),
        }
        evicted = await lab.object(kinds.POD, "goes", lambda p: p.metadata.HasField("deletionTimestamp"))
        target = get_condition(evicted.status.conditions, "DisruptionTarget")
        assert target is not None
        assert (target.status, target.reason) == ("True", "DeletionByTaintManager")
        assert target.message == "Taint manager: deleting due to NoExecute taint"
        assert target.observedGeneration == 1
        assert evicted.metadata.generation == 2
        kept = await lab.object(
            kinds.POD, "stays", lambda p: condition_is(p.status.conditions, "Ready", "False")
        )
        assert not kept.metadata.HasField("deletionTimestamp")
        node_event = await lab.event("NodeNotReady", "n1")
        assert node_event.note == "Node n1 status is now: NodeNotReady"
        pod_event = await lab.event("NodeNotReady", "goes")
        assert (pod_event.type, pod_event.note) == ("Warning", "Node is not ready")
        marked = await lab.event("TaintManagerEviction", "goes")
        assert marked.note == "Marking for deletion Pod default/goes"
        assert not marked.regarding.uid
        assert not marked.regarding.resourceVersion


async def test_a_node_that_sends_heartbeats_again_keeps_its_pods(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        await lab.create(node(labels=ALONE))
        patient = await lab.create(pod("patient", tolerations=_tolerations(3600)))
        await lab.run_pod(patient, "n1")
        heartbeats = itertools.count(EPOCH)

        async def beat() -> set[str]:
            """Send a heartbeat when the node is Unknown; return the notes of the eviction's events."""
            found = await lab.get(kinds.NODE, "n1")
            assert found is not None
            if ("unreachable", "NoExecute") in _taints(found):
                beat = condition("Ready", lastHeartbeatTime=rfc3339(next(heartbeats)))
                await lab.client.patch(
                    kinds.NODE, "n1", "", {"status": {"conditions": [beat]}}, subresource="status"
                )
            recorded = await lab.all(kinds.EVENTS_EVENT)
            return {event.note for event in recorded if event.reason == "TaintManagerEviction"}

        await eventually(beat, lambda notes: "Cancelling deletion of Pod default/patient" in notes)
        found = await lab.get(kinds.POD, "patient")
        assert found is not None
        assert not found.metadata.HasField("deletionTimestamp")


@pytest.mark.slow  # and a machine that is slow too loses them rightly; the core is in ../test_node_health.py
async def test_nodes_stay_ready_while_the_api_server_is_down(cluster: Cluster) -> None:
    async with running(cluster, "--node-monitor-grace-period", "10s") as lab:
        await lab.create(node(), lease("n1", 0))

        async def renew() -> None:
            for seconds in range(10_000):
                patch = {"spec": {"renewTime": rfc3339_micro(float(EPOCH + seconds))}}
                with suppress(StatusError):
                    await lab.client.patch(kinds.LEASE, "n1", "kube-node-lease", patch)
                await anyio.sleep(0.2)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(renew)
            await lab.object(kinds.NODE, "n1", lambda n: not n.spec.taints)
            cluster.kill("apiserver")
            await anyio.sleep(12)  # longer than a silent kubelet is trusted
            await cluster.start("apiserver")
            with anyio.move_on_after(3):
                while True:  # what must not come
                    found = await lab.get(kinds.NODE, "n1")
                    assert found is not None
                    assert condition_is(found.status.conditions, "Ready")
                    await anyio.sleep(0.02)
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    "point",
    [
        "controllers.node_unknown.before",
        "controllers.taint_node.before",
        "controllers.taint_eviction.before",
        "controllers.pod_gc.mark.before",
        "controllers.pod_gc.delete.before",
    ],
)
async def test_a_controller_killed_anywhere_still_evicts_pods_of_a_lost_node(
    cluster: Cluster, point: str
) -> None:
    # The first taint that is changed is the one of the registration.
    action = "1*off->crash" if "taint_node" in point else "crash"
    trust = ("--node-monitor-grace-period", "1h") if "pod_gc" in point else ()
    async with running(cluster, "--failpoints", f"{point}={action}", *trust) as lab:
        await lab.create(node(labels=ALONE))
        await lab.run_pod(await lab.create(pod("lost", tolerations=_tolerations(0))), "n1")
        if "pod_gc" in point:
            await lab.client.delete(kinds.NODE, "n1")
        assert await cluster.exited("controllers") == -9
        cluster.arguments("controllers", *QUICK)
        await cluster.start("controllers")
        if "pod_gc" in point:
            await lab.gone(kinds.POD, "lost")
        else:
            await lab.object(kinds.POD, "lost", lambda p: p.metadata.HasField("deletionTimestamp"))
            # The controller that starts removes the taint, and adds it again.
            await lab.object(kinds.NODE, "n1", lambda n: ("unreachable", "NoExecute") in _taints(n))


async def test_pods_of_a_deleted_node_fail_and_are_deleted(cluster: Cluster) -> None:
    async with running(cluster, "--node-monitor-grace-period", "1h") as lab:
        await lab.create(node())
        await lab.event("RegisteredNode", "n1")
        await lab.run_pod(await lab.create(pod("lost")), "n1")
        await lab.run_pod(await lab.create(pod("ending")), "n1")
        await lab.client.delete(kinds.POD, "ending", "default")
        lab.arm("controllers.pod_gc.delete.before", "pause")
        await lab.client.delete(kinds.NODE, "n1")
        # Whichever is first: the other is ended after it.
        pods = await lab.listed(kinds.POD, lambda pods: any(p.status.phase == "Failed" for p in pods))
        failed = next(p for p in pods if p.status.phase == "Failed")
        target = get_condition(failed.status.conditions, "DisruptionTarget")
        assert target is not None
        assert (target.reason, target.message) == ("DeletionByPodGC", "PodGC: node no longer exists")
        lab.arm("controllers.pod_gc.delete.before", "off")
        await lab.gone(kinds.POD, "lost")
        await lab.gone(kinds.POD, "ending")
        event = await lab.event("RemovingNode", "n1")
        assert event.note == "Node n1 event: Removing Node n1 from Controller"
