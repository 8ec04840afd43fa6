"""A claim that is reserved for a pod which no watch shows is looked at again: the pod's end has no event."""

from __future__ import annotations

from nominee.controllers.devices.shell.claims import Key, ResourceClaimController
from nominee.controllers.shell.controller import UNSEEN_SECONDS
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import devices
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import pod
from tests.controllers.contexts import context_of, synced
from tests.support.fake_api import FakeApi

KEY = Key("claim", ObjectKey("default", "gpu"))


def reserved_claim() -> devices.ResourceClaim:
    claim = devices.ResourceClaim()
    claim.metadata.name, claim.metadata.namespace, claim.metadata.uid = "gpu", "default", "c"
    claim.status.allocation.devices.results.add(driver="d", pool="p", device="0")
    claim.status.reservedFor.add(resource="pods", name="p", uid="u")
    return claim


async def test_a_pod_that_came_and_went_unseen_keeps_no_device() -> None:
    api = FakeApi.of(reserved_claim())
    context = context_of(api, FakeClock())
    controller = ResourceClaimController(context)
    async with synced(context):
        pass
    # No watch runs now.
    api.put(pod("p", uid="u", node="n1"))
    assert await controller.reconcile(KEY) == UNSEEN_SECONDS
    await api.delete(kinds.POD, "p", "default", grace_period_seconds=0)
    assert await controller.reconcile(KEY) is None
    claim = await api.get(kinds.RESOURCE_CLAIM, "gpu", "default")
    assert not claim.status.reservedFor
