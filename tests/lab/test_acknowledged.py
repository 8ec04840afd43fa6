"""A client's acknowledged writes are looked for in the history."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import Acknowledged, ComponentSettings
from nominee.lab.history.verification.acknowledged import AcknowledgedWrites
from nominee.lab.history.verification.verification import Verification, verify
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.runtime.clock import SystemClock
from tests.lab.invariants.histories import pod
from tests.support.cluster import Cluster

NAMES = {"acknowledged-writes-are-kept"}


async def _verify(cluster: Cluster, writes: tuple[Acknowledged, ...]) -> Verification:
    settings = ComponentSettings(records_acknowledged=True)
    return await verify(cluster.directory, SystemClock(), names=NAMES, settings=settings, acknowledged=writes)


async def test_writes_of_a_client_are_found_in_etcd(cluster: Cluster) -> None:
    await cluster.start("etcd", "apiserver")
    acknowledged = AcknowledgedWrites()
    async with cluster.client() as client:
        client.write_observer = acknowledged
        new = pod("p", cpu="1")
        new.metadata.ClearField("uid")
        new.ClearField("status")
        new.spec.containers[0].image = "pause"
        await client.create(new)
        await client.patch(kinds.POD, "p", "default", {"metadata": {"labels": {"a": "b"}}})
        await client.patch(kinds.POD, "p", "default", {"metadata": {"labels": {"a": "b"}}})
        await client.patch(kinds.POD, "p", "default", {"metadata": {"labels": {"a": "c"}}}, dry_run=True)
        with pytest.raises(StatusError, match="already exists"):
            await client.create(new)
        await client.delete(kinds.POD, "p", "default")
    created, patched, unchanged, deleted = acknowledged.writes
    assert created.resource_version < patched.resource_version == unchanged.resource_version
    assert (deleted.deleted, deleted.uid) == (True, created.uid)
    (result,) = (await _verify(cluster, acknowledged.writes)).results
    assert (result.checked, result.violations) == (4, ())
    lost = Acknowledged(
        kind=kinds.POD, namespace="default", name="p", uid=created.uid, resource_version=10**6
    )
    (result,) = (await _verify(cluster, (lost,))).results
    assert [violation.objects for violation in result.violations] == [("Pod default/p",)]


@pytest.mark.parametrize(("before", "count"), [("uid-1", 0), ("uid-2", 1), ("", 0)])
def test_a_deletion_that_an_object_of_the_name_overtakes_is_not_kept(before: str, count: int) -> None:
    acknowledged = AcknowledgedWrites()
    for uid in ("uid-1", "uid-2"):
        acknowledged.wrote(pod("p", uid=uid))
    acknowledged.deleted(kinds.POD, "default", "p", before)
    assert [each.uid for each in acknowledged.writes if each.deleted] == ["uid-2"] * count
