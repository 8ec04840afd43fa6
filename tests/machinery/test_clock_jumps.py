"""Wall clocks that jump, each in one process: time stamps move, and what is timed does not."""

from __future__ import annotations

import json

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is
from nominee.machinery.api.pb import apps, coordination, core, meta
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime.clock import SystemClock, from_time
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

pytestmark = pytest.mark.slow

OFFSETS = {"scheduler": 3600, "controllers": 7200, "kubelet-0": 10800}
"""Seconds by which the clocks of the processes differ from the machine's."""
NEAR_SECONDS = 900


def deployment(name: str) -> apps.Deployment:
    """Return a Deployment of one pod."""
    made = apps.Deployment()
    made.metadata.namespace, made.metadata.name = "default", name
    made.spec.replicas = 1
    made.spec.selector.matchLabels["app"] = name
    made.spec.template.metadata.labels["app"] = name
    container = made.spec.template.spec.containers.add(name="c", image="pause")
    container.resources.requests["cpu"].string = "100m"
    return made


async def running_pod(client: Client, app: str) -> core.Pod:
    """Wait until the pod of a Deployment is ready, and return it."""

    async def pods() -> list[core.Pod]:
        return (await client.list(kinds.POD, "default", label_selector=f"app={app}")).items

    def ready(found: list[core.Pod]) -> bool:
        return any(condition_is(pod.status.conditions, "Ready") for pod in found)

    return (await eventually(pods, ready))[0]


def assert_shifted(stamp: meta.Time | meta.MicroTime, offset: int) -> None:
    assert abs(from_time(stamp) - SystemClock().now() - offset) < NEAR_SECONDS


async def check_stamps(client: Client, app: str, sign: int) -> None:
    """Check that a Deployment's pod runs, and that each process stamps with its own time."""
    stored = await client.create(deployment(app))
    assert_shifted(stored.metadata.creationTimestamp, 0)
    pod = await running_pod(client, app)
    assert_shifted(pod.status.startTime, sign * OFFSETS["kubelet-0"])

    async def complete() -> apps.Deployment:
        return await client.get(kinds.DEPLOYMENT, app, "default")

    done = await eventually(complete, lambda found: found.status.readyReplicas == 1)
    progressing = next(each for each in done.status.conditions if each.type == "Progressing")
    assert_shifted(progressing.lastUpdateTime, sign * OFFSETS["controllers"])

    await check_lease(client, sign * OFFSETS["scheduler"])
    node = await client.get(kinds.NODE, "node-0")
    assert condition_is(node.status.conditions, "Ready"), "a jump is not a silence of the kubelet"


async def check_lease(client: Client, offset: int) -> None:
    """Check that the scheduler renews its lease with its own time, and has never lost it."""

    async def lease() -> coordination.Lease:
        return await client.get(kinds.LEASE, "kube-scheduler", "kube-system")

    seen = (await lease()).spec.renewTime
    renewed = await eventually(lease, lambda found: found.spec.renewTime != seen)
    assert_shifted(renewed.spec.renewTime, offset)
    assert renewed.spec.leaseTransitions == 0


async def test_clocks_that_jump_forward_and_back(cluster: Cluster) -> None:
    cluster.arguments("scheduler", "--leader-elect")
    cluster.arguments("controllers", "--node-monitor-period", "200ms")
    cluster.arguments("kubelet-0", "--nodes", "1")
    await cluster.start("etcd", "apiserver", "scheduler", "controllers", "kubelet-0")
    async with cluster.client() as client:
        for app, sign in (("forward", 1), ("back", -1)):
            for name, offset in OFFSETS.items():
                body = json.dumps({"offsetSeconds": sign * offset})
                assert cluster.ask(name, "/clock", method="PUT", body=body).status == 200
            await check_stamps(client, app, sign)
