"""Binding and provisioning of volumes over real processes, with the controllers killed in between."""

from __future__ import annotations

import anyio
import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core, storage
from nominee.machinery.client.watches.informer import Informer
from tests.controllers.builders import claim, node, pod, storage_class, volume
from tests.controllers.e2e.support import Lab, running
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

SELECTED = {"volume.kubernetes.io/selected-node": "n1"}
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


async def _select(lab: Lab, name: str = "data") -> None:
    """Select the claim's node, as the scheduler does."""
    await lab.client.patch(
        kinds.PERSISTENT_VOLUME_CLAIM, name, "default", {"metadata": {"annotations": SELECTED}}
    )


async def _bound(lab: Lab, name: str = "data") -> core.PersistentVolumeClaim:
    return await lab.object(kinds.PERSISTENT_VOLUME_CLAIM, name, lambda c: c.status.phase == "Bound")


async def test_an_external_provisioners_volume_is_bound_in_the_recorded_order(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        await lab.create(storage_class("wffc", provisioner="example.com/none"))
        writes: list[tuple[str, ...]] = []
        claims: Informer[core.PersistentVolumeClaim] = Informer(lab.client, kinds.PERSISTENT_VOLUME_CLAIM)
        made = await lab.create(claim(class_name="wffc"))
        event = await lab.event("WaitForFirstConsumer", "data")
        assert event.reportingController == "persistentvolume-controller"
        assert event.note == "waiting for first consumer to be created before binding"
        await _select(lab)
        await lab.object(
            kinds.PERSISTENT_VOLUME_CLAIM,
            "data",
            lambda c: c.metadata.annotations.get(PROVISIONER) == "example.com/none",
        )
        event = await lab.event("ExternalProvisioning", "data")
        assert event.note.startswith(
            "Waiting for a volume to be created either by the external provisioner '"
        )

        def claim_written(old: core.PersistentVolumeClaim, new: core.PersistentVolumeClaim) -> None:
            added = {key.rpartition("/")[2] for key in new.metadata.annotations} - {
                key.rpartition("/")[2] for key in old.metadata.annotations
            }
            if added:
                writes.append(("claim", *sorted(added), new.spec.volumeName))
            if new.status.phase != old.status.phase:
                writes.append(("claim status", new.status.phase))

        claims.add_handler(on_update=claim_written)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(claims.run)
            await claims.wait_synced()
            await lab.create(
                volume(
                    "pv-data",
                    class_name="wffc",
                    phase="",
                    claim_ref={"name": "data", "uid": made.metadata.uid},
                    node="n1",
                )
            )
            await _bound(lab)
            await eventually(lambda: _value(len(writes)), lambda count: count >= 2)
            tasks.cancel_scope.cancel()
        assert writes == [
            ("claim", "bind-completed", "bound-by-controller", "pv-data"),
            ("claim status", "Bound"),
        ]
        found = await lab.object(kinds.PERSISTENT_VOLUME, "pv-data", lambda v: v.status.phase == "Bound")
        bound = await _bound(lab)
        # The volume's status was written before the claim.
        assert int(found.metadata.resourceVersion) < int(bound.metadata.resourceVersion)
        assert bound.status.capacity["storage"].string == "1Gi"
        assert list(bound.status.accessModes) == ["ReadWriteOnce"]
        assert BOUND_BY_CONTROLLER not in found.metadata.annotations


async def _value(value: int) -> int:
    return value


async def test_a_free_volume_is_bound_and_released_when_its_claim_is_deleted(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        await lab.create(storage_class("static", wait=False, provisioner="kubernetes.io/no-provisioner"))
        for name, size in (("big", "10Gi"), ("small", "2Gi"), ("tiny", "500Mi")):
            await lab.create(volume(name, class_name="static", size=size, phase="", policy="Retain"))
            await lab.object(kinds.PERSISTENT_VOLUME, name, lambda v: v.status.phase == "Available")
        await lab.create(claim(class_name="static"))
        bound = await _bound(lab)
        assert bound.spec.volumeName == "small"
        found = await lab.object(kinds.PERSISTENT_VOLUME, "small", lambda v: v.status.phase == "Bound")
        assert found.metadata.annotations[BOUND_BY_CONTROLLER] == "yes"
        assert found.spec.claimRef.uid == bound.metadata.uid
        await lab.client.delete(kinds.PERSISTENT_VOLUME_CLAIM, "data", "default")
        await lab.object(kinds.PERSISTENT_VOLUME, "small", lambda v: v.status.phase == "Released")


async def test_a_claim_gets_the_default_class_that_is_created_later(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        await lab.create(claim(class_name=None))
        event = await lab.event("FailedBinding", "data")
        assert event.note == "no persistent volumes available for this claim and no storage class is set"
        fast = storage_class("fast", wait=False)
        made = await lab.create(fast)
        made.metadata.annotations["storageclass.kubernetes.io/is-default-class"] = "true"
        await lab.client.update(made)
        assert (await _bound(lab)).spec.storageClassName == "fast"


async def test_a_claim_in_use_outlives_its_deletion(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        await lab.create(node(), storage_class(wait=False, topology="none"), claim())
        await _bound(lab)
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        await lab.run_pod(await lab.create(pod("user", volumes=volumes)), "n1")
        await lab.client.delete(kinds.PERSISTENT_VOLUME_CLAIM, "data", "default")
        await lab.create(pod("later"))  # events of one watch are in order
        kept = await lab.object(
            kinds.PERSISTENT_VOLUME_CLAIM, "data", lambda c: c.metadata.HasField("deletionTimestamp")
        )
        assert "kubernetes.io/pvc-protection" in kept.metadata.finalizers
        await lab.client.delete(kinds.POD, "user", "default", grace_period_seconds=0)
        await lab.gone(kinds.PERSISTENT_VOLUME_CLAIM, "data")
        # Reclaim policy Delete: the volume that was made for it goes as well.
        await lab.listed(kinds.PERSISTENT_VOLUME, lambda volumes: not volumes)


async def test_the_provisioner_fails_as_often_as_its_class_requires(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        await lab.create(node(), storage_class(failures="1", delay="50ms"), claim())
        await _select(lab)
        bound = await _bound(lab)
        volumes = await lab.all(kinds.PERSISTENT_VOLUME)
        assert [v.metadata.name for v in volumes] == [f"pvc-{bound.metadata.uid}"]
        term = volumes[0].spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0]
        assert (term.key, list(term.values)) == ("kubernetes.io/hostname", ["n1"])
        # The claim may have been seen before its class, which is a failure too.
        await lab.event("ProvisioningFailed", "data", "failed to provision volume")
        assert (await lab.event("ProvisioningSucceeded", "data")).type == "Normal"


async def test_a_claim_whose_node_is_deleted_is_given_back(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        await lab.create(node(), storage_class(delay="1h"), claim())
        await _select(lab)
        await lab.event("Provisioning", "data")
        await lab.client.delete(kinds.NODE, "n1")
        given = await lab.object(
            kinds.PERSISTENT_VOLUME_CLAIM, "data", lambda c: not set(SELECTED) & set(c.metadata.annotations)
        )
        assert given.status.phase == "Pending"
        failed = await lab.event("ProvisioningFailed", "data", "target node")
        assert failed.note == 'failed to get target node: node "n1" not found'
        assert not await lab.all(kinds.PERSISTENT_VOLUME)


@pytest.mark.parametrize(
    "point",
    [
        "controllers.provision.before",
        "controllers.provision.during",
        "controllers.provision.after",
        "controllers.bind_volume.before",
        "controllers.bind_volume.after",
    ],
)
async def test_a_provisioner_killed_anywhere_creates_one_volume(cluster: Cluster, point: str) -> None:
    async with running(cluster) as lab:
        await lab.create(node(), storage_class(delay="20ms"), claim())
        lab.arm(point, "crash")
        await _select(lab)
        assert await cluster.exited("controllers") == -9
        await cluster.start("controllers")
        bound = await _bound(lab)
        volumes = await lab.all(kinds.PERSISTENT_VOLUME)
        assert [v.metadata.name for v in volumes] == [bound.spec.volumeName]
        assert volumes[0].spec.claimRef.uid == bound.metadata.uid
        assert bound.metadata.annotations[BIND_COMPLETED] == "yes"


async def test_a_claim_takes_the_attributes_class_of_its_volume(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        attributes = storage.VolumeAttributesClass(driverName="test", parameters={"iops": "100"})
        attributes.metadata.name = "gold"
        static = volume("pv", class_name="", phase="", claim_ref={"name": "data"})
        static.spec.volumeAttributesClassName = "gold"
        asks = claim(class_name="", volume="pv")
        asks.spec.volumeAttributesClassName = "gold"
        await lab.create(attributes)
        await lab.create(static)
        await lab.create(asks)
        bound = await _bound(lab)
        assert bound.status.currentVolumeAttributesClassName == "gold"
