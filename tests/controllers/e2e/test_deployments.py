"""Deployments over real processes: a controller that dies during a rollout, and its next start."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.controllers.deployments.sets import new_set
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import controller_of, get_condition
from nominee.machinery.api.pb import apps
from nominee.machinery.wire import codec
from tests.controllers.deployments.builders import deployment
from tests.controllers.e2e.support import Lab, running
from tests.support.cluster import Cluster


def _fresh(**more: Any) -> apps.Deployment:
    made = deployment(**more)
    made.metadata.uid = ""
    made.metadata.ClearField("creationTimestamp")
    return made


async def _sets(lab: Lab, count: int) -> list[apps.ReplicaSet]:
    return await lab.listed(kinds.REPLICA_SET, lambda found: len(found) == count)


@pytest.mark.parametrize("moment", [pytest.param("before", marks=pytest.mark.slow), "after"])
async def test_a_controller_killed_while_it_creates_the_new_set_creates_one(
    cluster: Cluster, moment: str
) -> None:
    async with running(cluster, "--node-monitor-grace-period", "60s") as lab:
        lab.arm(f"controllers.deployment.create.{moment}", "crash")
        await lab.create(_fresh(replicas=2))
        assert await cluster.exited("controllers") == -9
        await cluster.start("controllers")
        (made,) = await _sets(lab, 1)
        await lab.object(kinds.REPLICA_SET, made.metadata.name, lambda s: s.status.replicas == 2)
        reported = await lab.object(kinds.DEPLOYMENT, "web", lambda d: d.status.updatedReplicas == 2)
        owner = controller_of(made)
        assert owner is not None
        assert owner.uid == reported.metadata.uid
        progressing = get_condition(reported.status.conditions, "Progressing")
        assert progressing is not None
        assert progressing.status == "True"
        assert len(await lab.all(kinds.POD)) == 2


async def test_a_matching_orphan_is_adopted_and_a_name_collision_avoided(
    cluster: Cluster,
) -> None:
    async with running(cluster, "--node-monitor-grace-period", "60s") as lab:
        made = await lab.create(_fresh(replicas=0))
        (first,) = await _sets(lab, 1)
        await lab.client.delete(kinds.DEPLOYMENT, "web", "default", propagation_policy="Orphan")
        await lab.gone(kinds.DEPLOYMENT, "web")
        orphan = await lab.object(
            kinds.REPLICA_SET, first.metadata.name, lambda s: not s.metadata.ownerReferences
        )
        again = await lab.create(_fresh(replicas=0))
        assert again.metadata.uid != made.metadata.uid
        adopted = await lab.object(
            kinds.REPLICA_SET, orphan.metadata.name, lambda s: bool(s.metadata.ownerReferences)
        )
        assert adopted.metadata.ownerReferences[0].uid == again.metadata.uid
        # The name that the next template hashes to is taken by another owner's set.
        changed = _fresh(replicas=0, image="v2")
        stored = await lab.client.get(kinds.DEPLOYMENT, "web", "default")
        stored.spec.template.CopyFrom(changed.spec.template)
        # The controller may have written the status meanwhile.
        stored.metadata.ClearField("resourceVersion")
        dry = await lab.client.update(stored, dry_run=True)
        foreign = new_set(dry)
        del foreign.metadata.ownerReferences[:]
        foreign.metadata.labels.clear()
        labels = {"app": "stranger"}
        foreign.spec.CopyFrom(
            codec.from_json(
                apps.ReplicaSetSpec,
                {
                    "replicas": 0,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "c", "image": "x"}]},
                    },
                },
            )
        )
        await lab.create(foreign)
        await lab.client.patch(
            kinds.DEPLOYMENT,
            "web",
            "default",
            {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "v2"}]}}}},
        )
        collided = await lab.object(kinds.DEPLOYMENT, "web", lambda d: d.status.collisionCount == 1)
        assert collided.metadata.uid == again.metadata.uid
        sets = await _sets(lab, 3)
        names = {each.metadata.name for each in sets}
        assert foreign.metadata.name in names
