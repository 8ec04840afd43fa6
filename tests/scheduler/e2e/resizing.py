"""Pods that are resized on real processes; the test acts as their kubelet (KEP-5836)."""

from __future__ import annotations

from typing import Any

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core, policy, scheduling
from nominee.machinery.wire import codec
from tests.scheduler.e2e.objects import bound, debug_queue, node, pod, pod_when
from tests.support.cluster import Cluster
from tests.support.eventually import eventually
from tests.support.rest_client import ObjectClient

GATE = "--feature-gates=SchedulerPreemptionForPodResize=true"
NO_TAINTS = "--disable-admission-plugins=TaintNodesByCondition"
PRIORITIES = {"high": 1000, "middle": 500, "low": 100}
GRACE_SECONDS = 3600  # victims end when the test says so


async def start(cluster: Cluster, *options: str, api: tuple[str, ...] = (), scheduler: bool = True) -> None:
    """Start a control plane with the gate on; `options` are the scheduler's."""
    cluster.arguments("apiserver", NO_TAINTS, GATE, *api)
    cluster.arguments("scheduler", GATE, *options)
    await cluster.start("etcd", "apiserver", *(["scheduler"] if scheduler else []))


async def create_priorities(client: ObjectClient) -> None:
    for name, value in PRIORITIES.items():
        document = {"metadata": {"name": name}, "value": value}
        await client.create(codec.from_json(scheduling.PriorityClass, document))
    never = {"metadata": {"name": "never"}, "value": PRIORITIES["high"], "preemptionPolicy": "Never"}
    await client.create(codec.from_json(scheduling.PriorityClass, never))


async def run_pod(
    client: ObjectClient, name: str, cpu: str, *, on: str, priority: str = "low", **spec: Any
) -> core.Pod:
    """Create a pod on its node, and report that it runs with what it requests."""
    more = {"terminationGracePeriodSeconds": GRACE_SECONDS, **spec}
    await client.create(pod(name, cpu=cpu, nodeName=on, priorityClassName=priority, **more))
    return await report(client, name, cpu)


async def report(client: ObjectClient, name: str, allocated: str, **conditions: str) -> core.Pod:
    """Write the status as its kubelet would: what is allocated, and conditions by type with their reasons."""
    held = {"cpu": allocated}
    rows = [{"type": "PodScheduled", "status": "True"}]
    rows += [{"type": kind, "status": "True", "reason": reason} for kind, reason in conditions.items()]
    row = {"name": "c", "ready": True, "restartCount": 0, "image": "pause", "imageID": "pause",
           "allocatedResources": held, "resources": {"requests": held}}  # fmt: skip
    status = {"phase": "Running", "conditions": [{"$patch": "replace"}, *rows], "containerStatuses": [row]}
    return await client.patch(kinds.POD, name, "default", {"status": status}, subresource="status")


async def resize(client: ObjectClient, name: str, cpu: str) -> core.Pod:
    """Ask for another request of the pod's container."""
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    return await client.patch(kinds.POD, name, "default", {"spec": spec}, subresource="resize")


async def defer(client: ObjectClient, name: str, cpu: str, *, allocated: str) -> core.Pod:
    """Ask for a resize that the kubelet defers."""
    await resize(client, name, cpu)
    return await report(client, name, allocated, PodResizePending="Deferred")


async def set_policy(client: ObjectClient, name: str, *owners: str) -> None:
    policy = {"podPreemptionPolicy": {"disableResizePreemption": list(owners)} if owners else None}
    await client.patch(kinds.NODE, name, "", {"spec": policy})


async def label(client: ObjectClient, name: str, **labels: str) -> dict[str, str]:
    """Give a pod labels, and return them."""
    await client.patch(kinds.POD, name, "default", {"metadata": {"labels": labels}})
    return labels


def budget(labels: dict[str, str]) -> policy.PodDisruptionBudget:
    """A budget that allows no disruption: no controller has set its status."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": labels}}
    metadata = {"name": "budget", "namespace": "default"}
    return codec.from_json(policy.PodDisruptionBudget, {"metadata": metadata, "spec": spec})


async def is_evicted(client: ObjectClient, name: str) -> bool:
    found = await client.get(kinds.POD, name, "default")
    return found.metadata.HasField("deletionTimestamp")


async def evicted(client: ObjectClient, name: str) -> core.Pod:
    return await pod_when(client, name, lambda found: found.metadata.HasField("deletionTimestamp"))


async def end(client: ObjectClient, name: str) -> None:
    """Let a terminating pod end, as its kubelet would."""
    await client.delete(kinds.POD, name, "default", grace_period_seconds=0)


def entry(cluster: Cluster, name: str) -> dict[str, Any]:
    """Return the place of a pod in the scheduler's queues, with its attempts and who rejected it; or {}."""
    queues = debug_queue(cluster.port("scheduler"))
    for place in ("active", "backoff", "unschedulable", "gated"):
        for found in queues[place]:
            if found["pod"] == f"default/{name}":
                return {"place": place, **found}
    return {}


async def waits(cluster: Cluster, name: str, plugin: str = "NodeResourcesFit") -> dict[str, Any]:
    """Wait until the pod is unschedulable because of the plugin."""
    return await eventually(
        lambda: entry(cluster, name),
        lambda found: found.get("place") == "unschedulable" and found["plugins"] == [plugin],
    )


async def settle(client: ObjectClient, number: int) -> None:
    """Return when the scheduler has seen all earlier changes of nodes and pods.

    A new pod is bound to a new node: both watches are past what came before.
    """
    name = f"mark-{number}"
    await client.create(node(name, labels={"mark": name}))
    await client.create(pod(name, cpu="100m", nodeSelector={"mark": name}))
    await bound(client, name)
