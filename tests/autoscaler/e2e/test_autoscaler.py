"""Real processes: scale-up, scale-down, budgets, crashes, and nominated pods."""

from __future__ import annotations

import json

import pytest

from nominee.autoscaler.planning.objects import taints
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import parse_rfc3339
from tests.autoscaler.e2e.lab import GROUPS, Lab, lab, usable
from tests.support.cluster import Cluster, pss_kib
from tests.support.devices import claim, device, device_class, resource_slice, using
from tests.support.eventually import eventually

MEMORY_KIB_MAX = 60 * 1024
LOOP = "autoscaler.loop.before"
RECHECK = "autoscaler.scaledown.recheck.before"
SLOW = "{demo.nominee.dev/pre-bind-delay: 1h}"
DONE = {"metadata": {"annotations": {"demo.nominee.dev/pre-bind-delay": "0s"}}}


def running(pods: list[core.Pod]) -> bool:
    return bool(pods) and all(pod.status.phase == "Running" for pod in pods)


async def test_scales_up_from_zero_and_down_to_zero(cluster: Cluster) -> None:
    async with lab(cluster) as it:
        await it.replica_set("web", "3", replicas=2)
        await it.wait_pods("both run", lambda pods: len(pods) == 2 and running(pods))
        assert len(await it.nodes()) == 2
        events = await it.wait_events(
            "the pods' events", lambda events: any(event.reason == "TriggeredScaleUp" for event in events)
        )
        (event, *_) = (event for event in events if event.reason == "TriggeredScaleUp")
        assert (event.source.component, event.count) == ("cluster-autoscaler", 1)
        await it.client.delete(kinds.REPLICA_SET, "web", "default")
        await it.wait_nodes("all nodes are gone", lambda nodes: not nodes)
        status = await it.client.get(kinds.CONFIG_MAP, "cluster-autoscaler-status", "kube-system")
        assert "autoscalerStatus: Running" in status.data["status"]
        # The nodes may be deleted before the autoscaler has the result.
        await eventually(
            lambda: 'cluster_autoscaler_scaled_down_nodes_total{reason="empty"} 2.0' in it.metrics(),
            explain=it.metrics,
        )
        text = it.metrics()
        assert "cluster_autoscaler_scaled_up_nodes_total 2.0" in text
        assert "cluster_autoscaler_cluster_safe_to_autoscale 1.0" in text
        assert pss_kib([cluster.run_file("autoscaler").pid]) < MEMORY_KIB_MAX
        await cluster.stop("autoscaler")
        config_maps = (await it.client.list(kinds.CONFIG_MAP, "kube-system")).items
        assert "cluster-autoscaler-status" not in [each.metadata.name for each in config_maps]


async def test_a_jump_of_the_clock_does_not_end_the_unneeded_time(cluster: Cluster) -> None:
    async with lab(cluster, "--scale-down-unneeded-time=10m", target=1) as it:
        (node,) = await it.nodes()
        kept = {node.metadata.name: "NotUnneededLongEnough"}
        await eventually(lambda: bool(it.loop()["at"]) and it.loop()["unremovable"] == kept, explain=it.loop)
        before = it.loop()["at"]
        body = json.dumps({"offsetSeconds": 3600})
        assert cluster.ask("autoscaler", "/clock", method="PUT", body=body).status == 200
        jumped = it.loops()
        await eventually(lambda: it.loops() >= jumped + 3, explain=it.loop)
        loop = it.loop()
        assert parse_rfc3339(loop["at"]) - parse_rfc3339(before) > 3000, "the process has the new time"
        assert (loop["scaleDown"], loop["deleting"]) == ("ScaleDownNoNodeDeleted", [])
        assert loop["unremovable"] == kept


@pytest.mark.slow
async def test_stops_at_the_maximum_and_records_the_reason(cluster: Cluster) -> None:
    async with lab(cluster, groups=1) as it:
        await it.replica_set("web", "3", replicas=2)
        await it.wait_nodes("one node", lambda nodes: usable(nodes) == 1)
        await it.wait_pods("one runs", lambda pods: any(p.status.phase == "Running" for p in pods))
        await it.wait_events(
            "the waiting pod's event",
            lambda events: any("max node group size reached" in event.message for event in events),
        )
        assert len(await it.nodes()) == 1
        # One event of a pod and reason in five minutes, however many loops there are. Which pod waits may
        # change: the scheduler may bind the other one to the new node.
        before = it.loops()
        await eventually(lambda: it.loops() > before + 10, explain=it.metrics)
        events = (await it.client.list(kinds.EVENT, "default")).items
        refused = [event for event in events if event.reason == "NotTriggerScaleUp"]
        assert len({event.involvedObject.name for event in refused}) == len(refused) > 0
        assert {event.count for event in refused} == {1}


@pytest.mark.slow
async def test_a_pod_with_a_claim_triggers_a_node_with_devices(cluster: Cluster) -> None:
    async with lab(cluster, "--scale-down-unneeded-time=1h", target=1) as it:
        (first,) = await it.nodes()
        await it.client.create(device_class())
        await it.client.create(resource_slice("s1", device("gpu-0"), node=first.metadata.name))
        for name in ("a", "b"):
            await it.client.create(claim(name))
            made = core.Pod()
            made.metadata.name, made.metadata.namespace = name, "default"
            container = made.spec.containers.add(name="c", image="app")
            container.resources.requests["cpu"].string = "100m"
            await it.client.create(using(made, claim=name))
        nodes = await it.wait_nodes("another node", lambda nodes: usable(nodes) == 2)
        (second,) = (node for node in nodes if node.metadata.name != first.metadata.name)
        await it.client.create(resource_slice("s2", device("gpu-0"), node=second.metadata.name))
        pods = await it.wait_pods("both run", running)
        assert {pod.spec.nodeName for pod in pods} == {first.metadata.name, second.metadata.name}
        assert len(await it.nodes()) == 2, "the new node was waited for until it had its devices"


BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: one, namespace: default}
spec: {minAvailable: 1, selector: {matchLabels: {app: one}}}
"""
STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: two, namespace: default}
spec:
  serviceName: two
  selector: {matchLabels: {app: two}}
  template:
    metadata: {labels: {app: two}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: c, image: app, resources: {requests: {cpu: "1"}}}]
"""


@pytest.mark.slow
async def test_a_pod_of_a_stateful_set_does_not_block_its_node(cluster: Cluster) -> None:
    async with lab(cluster, target=2, autoscaler=False) as it:
        await it.replica_set("one", "1")
        await it.apply(STATEFUL_SET + "---" + BUDGET)
        before = await it.wait_pods("both run", lambda pods: len(pods) == 2 and running(pods))
        by_name = {pod.metadata.name: pod.spec.nodeName for pod in before}
        assert len(set(by_name.values())) == 2, "the scheduler spreads them"
        await cluster.start("autoscaler")
        (kept,) = await it.wait_nodes("one node is left", lambda nodes: len(nodes) == 1)
        assert kept.metadata.name != by_name["two-0"]


async def test_drains_a_node_and_respects_budgets(cluster: Cluster) -> None:
    async with lab(cluster, target=2, autoscaler=False) as it:
        await it.replica_set("one", "1")
        await it.replica_set("two", "1")
        before = await it.wait_pods("both run", lambda pods: len(pods) == 2 and running(pods))
        assert len({pod.spec.nodeName for pod in before}) == 2, "the scheduler spreads them"
        await it.apply(BUDGET)
        await cluster.start("autoscaler")
        (kept,) = await it.wait_nodes("one node is left", lambda nodes: len(nodes) == 1)
        of_one = next(pod for pod in before if pod.metadata.labels["app"] == "one")
        assert kept.metadata.name == of_one.spec.nodeName, "the pod with the budget was not moved"
        await it.wait_pods("both run again", lambda pods: len(pods) == 2 and running(pods))


async def waiting_pod(it: Lab, cpu: str) -> core.Pod:
    """Create a pod that is being bound to a node, and would fit on another node."""
    await it.replica_set("other", "2500m")
    await it.wait_pods("the other runs", running)
    await it.replica_set("slow", cpu, annotations=SLOW)
    pods = await it.wait_pods("it is nominated", lambda pods: any(p.status.nominatedNodeName for p in pods))
    (pod,) = [pod for pod in pods if pod.metadata.labels["app"] == "slow"]
    (other,) = [pod for pod in pods if pod.metadata.labels["app"] == "other"]
    assert not pod.spec.nodeName
    assert not pod.status.conditions, "in PreBind a pod has no condition"
    assert other.spec.nodeName != pod.status.nominatedNodeName
    return pod


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compat", "cpu", "reason"),
    [
        pytest.param("1.35", "2500m", "", id="1.35 does not see it"),
        pytest.param("1.36", "2500m", "NotUnderutilized", id="1.36 counts it as load"),
        pytest.param("1.36", "1", "", id="1.36 would move it (H1)"),
        pytest.param("fixed", "1", "PodBinding", id="fixed waits for it (H1)"),
    ],
)
async def test_a_node_under_a_pod_that_is_being_bound(
    cluster: Cluster, compat: str, cpu: str, reason: str
) -> None:
    options = (f"--compat={compat}", f"--failpoints={LOOP}=pause")
    async with lab(cluster, *options, target=2) as it:
        pod = await waiting_pod(it, cpu)
        node = pod.status.nominatedNodeName
        it.failpoint("autoscaler", LOOP, "off")
        if not reason:
            await it.wait_nodes(
                "the node is gone", lambda nodes: node not in [n.metadata.name for n in nodes]
            )
            assert [p for p in await it.pods() if p.metadata.uid == pod.metadata.uid and not p.spec.nodeName]
            return
        await it.stays_for(node, reason)
        await it.client.patch(kinds.POD, pod.metadata.name, "default", DONE)
        pods = await it.wait_pods("it is bound", lambda pods: all(p.spec.nodeName for p in pods))
        assert {p.spec.nodeName for p in pods if p.metadata.uid == pod.metadata.uid} == {node}


@pytest.mark.parametrize(("compat", "stays"), [("1.36", False), ("fixed", True)])
async def test_a_nomination_after_the_decision(cluster: Cluster, compat: str, stays: bool) -> None:
    """H2: the node is already tainted when the pod is nominated to it."""
    options = (f"--compat={compat}", f"--failpoints={RECHECK}=pause")
    async with lab(cluster, *options, target=1) as it:
        (node,) = await it.wait_nodes(
            "the node is tainted", lambda nodes: taints.taint_time(nodes[0], taints.TO_BE_DELETED) is not None
        )
        # As a scheduler that decided before it received the taint.
        pod = core.Pod()
        pod.metadata.name, pod.metadata.namespace = "late", "default"
        pod.spec.schedulerName = "other-scheduler"
        pod.spec.containers.add(name="c", image="app")
        await it.client.create(pod)
        change = {"status": {"nominatedNodeName": node.metadata.name}}
        await it.client.patch(kinds.POD, "late", "default", change, subresource="status")
        it.failpoint("autoscaler", RECHECK, "off")
        if not stays:
            await it.wait_nodes("the node is gone", lambda nodes: not nodes)
            return
        await it.wait_events(
            "the deletion was cancelled",
            lambda events: any("is nominated to node" in event.message for event in events),
        )
        await it.wait_nodes("the taint is removed", lambda nodes: usable(nodes) == 1)


async def test_the_taint_of_an_interrupted_deletion_is_removed_at_the_next_start(cluster: Cluster) -> None:
    async with lab(cluster, "--failpoints=autoscaler.delete.before=crash", target=1) as it:
        assert await cluster.exited("autoscaler") == -9
        (node,) = await it.nodes()
        assert taints.taint_time(node, taints.TO_BE_DELETED) is not None
        assert node.spec.unschedulable
        cluster.arguments("autoscaler", "--scan-interval=100ms")
        await cluster.start("autoscaler")
        await it.wait_nodes("the node takes pods again", lambda nodes: usable(nodes) == 1)


async def test_a_node_that_cannot_be_deleted_is_untainted(cluster: Cluster) -> None:
    options = ('--failpoints=autoscaler.delete.before=1*error("no")->off',)
    async with lab(cluster, *options, target=1) as it:
        await it.wait_events(
            "the failure's event",
            lambda events: any("failed to delete empty node" in event.message for event in events),
        )
        await it.wait_nodes("the second attempt succeeds", lambda nodes: not nodes)


async def test_idles_without_node_groups(cluster: Cluster) -> None:
    cluster.arguments("kubelet-0", "--nodes", "1", "--cloud")
    cluster.arguments("autoscaler", "--scan-interval=100ms", "--scale-down-unneeded-time=200ms")
    await cluster.start("etcd", "apiserver", "controllers", "cloud", "kubelet-0", "autoscaler")
    async with cluster.client() as client:
        it = Lab(cluster, client)
        await it.wait_status(
            "it has looked", lambda text: "autoscalerStatus: Running" in text and "nodeGroups" not in text
        )
        assert it.loop()["error"] == ""
        assert len(await it.nodes()) == 1


@pytest.mark.slow
async def test_the_run_file_has_the_compat_in_effect(cluster: Cluster) -> None:
    await cluster.start("etcd", "apiserver", "cloud")
    for arguments, compat in (
        ((), "1.36"),
        (("--emulated-version=1.35",), "1.35"),
        (("--emulated-version=1.35", "--compat=fixed"), "fixed"),
    ):
        cluster.arguments("autoscaler", *arguments)
        await cluster.start("autoscaler")
        assert cluster.run_file("autoscaler").document["compat"] == compat
        await cluster.stop("autoscaler")


@pytest.mark.slow
async def test_with_the_cloud_in_the_same_process(cluster: Cluster) -> None:
    file = cluster.directory / "groups.yaml"
    file.write_text(GROUPS % {"max": 1, "target": 0}, encoding="utf-8")
    cluster.arguments("autoscaler", "--scan-interval=100ms", "--node-groups", str(file))
    cluster.arguments("kubelet-0", "--nodes", "0", "--cloud")
    await cluster.start("etcd", "apiserver", "scheduler", "controllers", "autoscaler", "kubelet-0")
    async with cluster.client() as client:
        it = Lab(cluster, client)
        await it.replica_set("web", "3")
        await it.wait_pods("it runs on a new node", running)
