"""The provisioner's shell: which claims it looks at again."""

from __future__ import annotations

import anyio
import pytest

from nominee.controllers.volumes import annotations as names
from nominee.controllers.volumes.shell.provisioner import Provisioner
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import claim, storage_class
from tests.controllers.contexts import context_of, synced
from tests.support.eventually import eventually
from tests.support.fake_api import FakeApi
from tests.support.patience import PATIENCE_SECONDS


async def test_a_volume_that_goes_before_it_is_bound_is_created_again() -> None:
    """No event of the claim follows: its provisioner was asked before."""
    api = FakeApi()
    api.put(storage_class(wait=False))
    api.put(claim(uid="u1", annotations={names.STORAGE_PROVISIONER: names.DELAYED_PROVISIONER}))
    context = context_of(api, FakeClock())

    def stored() -> core.PersistentVolume | None:
        return api.find(kinds.PERSISTENT_VOLUME, "pvc-u1")

    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(context, Provisioner(context).run):
            first = await eventually(stored, lambda found: found is not None)
            assert first is not None
            await anyio.wait_all_tasks_blocked()
            api.remove(kinds.PERSISTENT_VOLUME, "pvc-u1")
            await eventually(stored, lambda found: found is not None)


async def test_a_refused_claim_gets_its_volume_once_its_class_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is tried again, less and less often; a class that comes is tried at once."""
    api, clock = FakeApi(), FakeClock()
    wrong, right = storage_class(wait=False), storage_class(wait=False)
    wrong.parameters["delay"] = "soon"
    asked = claim(uid="u1", annotations={names.STORAGE_PROVISIONER: names.DELAYED_PROVISIONER})
    context = context_of(api, clock)
    controller = Provisioner(context)
    notes = list[str]()
    monkeypatch.setattr(controller, "record", lambda _, event: notes.append(event.reason))
    controller.claims._put(asked)
    controller.classes._put(wrong)
    key = key_of(asked)
    assert [await controller.reconcile(key) for _ in range(3)] == [1, 2, 4]
    assert notes == 3 * ["ProvisioningFailed"]
    taken = controller.queue.get_nowait()
    assert taken == key
    controller.queue.done(key)
    controller.classes._put(right)
    assert controller.queue.get_nowait() == key
    await controller.reconcile(key)
    assert api.find(kinds.PERSISTENT_VOLUME, "pvc-u1") is not None
    assert controller._refusals == {}
