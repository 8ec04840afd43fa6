"""The resource claim controller over a fake API server, when its watch lags behind its own writes."""

from __future__ import annotations

from nominee.controllers.devices.shell.claims import Key, ResourceClaimController
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import pod
from tests.controllers.contexts import context_of, synced
from tests.support.devices import template, using
from tests.support.fake_api import FakeApi

KEY = Key("pod", ObjectKey("default", "p"))


async def claims(api: FakeApi) -> list[str]:
    return [each.metadata.name for each in (await api.list(kinds.RESOURCE_CLAIM)).items]


async def test_a_claim_that_the_watch_does_not_show_yet_is_not_created_again() -> None:
    api = FakeApi.of(template(), using(pod("p", uid="uid-p"), template="one-gpu"))
    context = context_of(api, FakeClock())
    controller = ResourceClaimController(context)
    async with synced(context):
        pass
    # No watch runs now.
    await controller.reconcile(KEY)
    await controller.reconcile(KEY)
    (name,) = await claims(api)
    await api.delete(kinds.RESOURCE_CLAIM, name, "default")
    async with synced(context):
        # The watch has passed its creation, and it is gone.
        await controller.reconcile(KEY)
        (again,) = await claims(api)
    assert again != name
