"""KEP-5278, story 2, with every component killed in its middle: the placement is the same in the end."""

from __future__ import annotations

import pytest

from machinery import kinds
from machinery.client import retry_unavailable
from machinery.pb import storage
from machinery.wire import codec
from tests.scheduler.e2e.objects import CLAIM_VOLUMES, SELECTED_NODE, arm, claim, pod, pod_when, until
from tests.support.cluster import Cluster

POINT = "scheduler.prebind.before"


def slow_class() -> storage.StorageClass:
    return codec.from_json(
        storage.StorageClass,
        {
            "metadata": {"name": "wffc"},
            "provisioner": "nominee.dev/delayed",
            "parameters": {"delay": "1s"},
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )


@pytest.mark.parametrize("moment", ["nominated", "provisioning"])
@pytest.mark.parametrize("victim", ["etcd", "apiserver", "scheduler", "controllers", "kubelet-0"])
async def test_killed_and_restarted(cluster: Cluster, victim: str, moment: str) -> None:
    """Killed after the nomination and before the claim is touched, or while the volume is made."""
    cluster.arguments("kubelet-0", "--nodes=3")
    *_, scheduler, _, _ = await cluster.start("etcd", "apiserver", "scheduler", "controllers", "kubelet-0")
    async with cluster.client() as client:
        await client.create(slow_class())
        await client.create(claim())
        if moment == "nominated":
            arm(scheduler.http, POINT, "pause")
        await client.create(pod("p", volumes=CLAIM_VOLUMES))
        nominated = await pod_when(client, "p", lambda p: bool(p.status.nominatedNodeName))
        wanted = nominated.status.nominatedNodeName

        async def selected() -> str:
            found = await retry_unavailable(
                lambda: client.get(kinds.PERSISTENT_VOLUME_CLAIM, "data", "default")
            )
            return found.metadata.annotations.get(SELECTED_NODE, "")

        if moment == "nominated":
            assert await selected() == ""
        else:
            await until(selected, lambda name: name == wanted)
        cluster.kill(victim)
        await cluster.start(victim)
        if moment == "nominated" and victim != "scheduler":
            arm(scheduler.http, POINT, "off")
        running = await pod_when(client, "p", lambda p: p.status.phase == "Running")
        assert running.spec.nodeName == wanted
        assert running.status.nominatedNodeName == ""
        volumes = (await client.list(kinds.PERSISTENT_VOLUME)).items
        assert [volume.spec.claimRef.name for volume in volumes] == ["data"]
