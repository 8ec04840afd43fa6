"""Stateful sets over real processes: a controller that dies at a step, and its next start."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import apps, core
from tests.controllers.builders import node, storage_class
from tests.controllers.e2e.support import Lab, running
from tests.controllers.stateful_sets.builders import stateful_set
from tests.support.cluster import Cluster

SLOW = pytest.mark.slow
POINTS = [
    pytest.param("create.before", marks=SLOW),
    "create.after",
    pytest.param("claim.after", marks=SLOW),
    pytest.param("revision.after", marks=SLOW),
    pytest.param("delete.before", marks=SLOW),
]


def _fresh(**more: Any) -> apps.StatefulSet:
    made = stateful_set(claims=["data"], **more)
    made.metadata.uid = ""
    (claim,) = made.spec.volumeClaimTemplates
    claim.spec.accessModes.append("ReadWriteOnce")
    claim.spec.storageClassName = "slow"
    claim.spec.resources.requests["storage"].string = "1Gi"
    return made


async def _run_all(lab: Lab, image: str) -> None:
    """Run the pods of two ordinals, as scheduler and kubelet do, until both are of an image."""
    for ordinal in range(2):
        pod = await lab.object(kinds.POD, f"web-{ordinal}", lambda pod: _is(pod, image))
        await lab.run_pod(pod, "n1")


def _is(pod: core.Pod, image: str) -> bool:
    return pod.spec.containers[0].image == image and not pod.metadata.HasField("deletionTimestamp")


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
async def test_a_controller_killed_at_a_step_goes_on(cluster: Cluster, point: str) -> None:
    async with running(cluster, "--node-monitor-grace-period", "1h") as lab:
        lab.arm(f"controllers.stateful_set.{point}", "crash")
        await lab.create(node())
        await lab.create(storage_class())
        await lab.create(_fresh(replicas=2, image="v1"))
        if point != "delete.before":
            assert await cluster.exited("controllers") == -9
            await cluster.start("controllers")
        await _run_all(lab, "v1")
        await lab.object(kinds.STATEFUL_SET, "web", lambda of: of.status.availableReplicas == 2)
        if point == "delete.before":
            await lab.client.patch(kinds.STATEFUL_SET, "web", "default", {"spec": {"replicas": 1}})
            assert await cluster.exited("controllers") == -9
            await cluster.start("controllers")
            await lab.object(kinds.POD, "web-1", lambda pod: pod.metadata.HasField("deletionTimestamp"))
        reported = await lab.object(kinds.STATEFUL_SET, "web", lambda of: bool(of.status.updateRevision))
        assert reported.status.currentRevision == reported.status.updateRevision
        assert reported.status.collisionCount == 0
        assert len(await lab.all(kinds.CONTROLLER_REVISION)) == 1
        names = [each.metadata.name for each in await lab.all(kinds.PERSISTENT_VOLUME_CLAIM)]
        assert sorted(names) == ["data-web-0", "data-web-1"]
