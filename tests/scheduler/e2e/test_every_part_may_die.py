"""KEP-5278, story 2, with every component killed in its middle: the placement is the same in the end.

One cluster sees all the deaths, each with a pod and a claim of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_already_exists
from nominee.machinery.api.pb import storage
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.wire import codec
from tests.scheduler.e2e.objects import SELECTED_NODE, arm, claim, pod, pod_when
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

pytestmark = pytest.mark.slow

PARTS = ("etcd", "apiserver", "scheduler", "controllers", "kubelet-0")
POINT = "scheduler.prebind.before"
DELAY = "nominee.dev/provisioning-delay"


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """All parts; a test starts those that do not run."""
    made = Cluster(tmp_path_factory.mktemp("every-part") / "cluster")
    made.arguments("kubelet-0", "--nodes=3")
    yield made
    made.close()


async def ensure_class(client: Client) -> None:
    made = codec.from_json(
        storage.StorageClass,
        {
            "metadata": {"name": "wffc"},
            "provisioner": "delayed.nominee.dev",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    try:
        await client.create(made)
    except StatusError as error:
        if not is_already_exists(error):
            raise


async def set_delay(client: Client, name: str, delay: str) -> None:
    """How long the claim's volume takes."""
    patch = {"metadata": {"annotations": {DELAY: delay}}}
    await retry_unavailable(lambda: client.patch(kinds.PERSISTENT_VOLUME_CLAIM, name, "default", patch))


@pytest.mark.parametrize("moment", ["nominated", "provisioning"])
@pytest.mark.parametrize("victim", PARTS)
async def test_killed_and_restarted(everything: Cluster, victim: str, moment: str) -> None:
    """Killed after the nomination and before the claim is touched, or while the volume is made."""
    cluster, name = everything, f"{victim}-{moment}"
    await cluster.start(*(part for part in PARTS if part not in cluster.processes))
    async with cluster.client() as client:
        await ensure_class(client)
        made = claim(name)
        made.metadata.annotations[DELAY] = "0s" if moment == "nominated" else "1h"
        await client.create(made)
        arm(cluster.port("scheduler"), POINT, "pause" if moment == "nominated" else "off")
        volumes = [{"name": "v0", "persistentVolumeClaim": {"claimName": name}}]
        await client.create(pod(name, volumes=volumes))
        nominated = await pod_when(client, name, lambda p: bool(p.status.nominatedNodeName))
        wanted = nominated.status.nominatedNodeName

        async def selected() -> str:
            found = await retry_unavailable(
                lambda: client.get(kinds.PERSISTENT_VOLUME_CLAIM, name, "default")
            )
            return found.metadata.annotations.get(SELECTED_NODE, "")

        if moment == "nominated":
            assert await selected() == ""
        else:
            await eventually(selected, lambda node: node == wanted)
        cluster.kill(victim)
        await cluster.start(victim)
        if moment == "nominated":
            arm(cluster.port("scheduler"), POINT, "off")
        else:
            await set_delay(client, name, "0s")
        running = await pod_when(client, name, lambda p: p.status.phase == "Running")
        assert running.spec.nodeName == wanted
        assert running.status.nominatedNodeName == ""
        made_for = [v.spec.claimRef.name for v in (await client.list(kinds.PERSISTENT_VOLUME)).items]
        assert made_for.count(name) == 1
