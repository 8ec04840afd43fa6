"""The volume controller: which volumes it looks at again."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from nominee.controllers.volumes.binding import RESYNC_SECONDS
from nominee.controllers.volumes.shell.binder import ClaimController, VolumeController
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.scheduling.volume_matching import BIND_COMPLETED, BOUND_BY_CONTROLLER
from tests.controllers.builders import claim, volume
from tests.controllers.contexts import context_of, synced
from tests.support.eventually import eventually
from tests.support.fake_api import FakeApi
from tests.support.patience import PATIENCE_SECONDS

MINE = {"namespace": "default", "name": "data", "uid": "u1"}


async def _becomes(
    api: FakeApi, name: str, phase: str, change: Callable[[], object]
) -> core.PersistentVolume | None:
    """Return a volume that is bound until a change, and then gets this phase."""
    context = context_of(api, FakeClock())
    controller = VolumeController(context)

    def stored() -> core.PersistentVolume | None:
        return api.find(kinds.PERSISTENT_VOLUME, name)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(context, controller.run):
            await anyio.wait_all_tasks_blocked()
            assert (found := stored()) is not None
            assert found.status.phase == "Bound"
            change()
            await eventually(stored, lambda found: found is not None and found.status.phase == phase)
    return stored()


async def test_a_volume_is_released_whose_claim_goes_before_it_names_the_volume() -> None:
    """A provisioned volume is bound first, its claim afterwards; the claim may be deleted in between."""
    api = FakeApi()
    api.put(claim(uid="u1"))
    bound = volume(phase="Bound", claim_ref=MINE, policy="Retain")
    api.put(bound)
    await _becomes(
        api, bound.metadata.name, "Released", lambda: api.remove(kinds.PERSISTENT_VOLUME_CLAIM, "data")
    )


async def test_a_claim_is_bound_whose_volume_comes_after_it() -> None:
    """A volume wakes only claims that name none; one that names it is looked at again after a while."""
    api = FakeApi()
    api.put(claim(uid="u1", volume="pv"))
    clock = FakeClock()
    context = context_of(api, clock)
    controller = ClaimController(context)

    def stored() -> core.PersistentVolumeClaim | None:
        return api.find(kinds.PERSISTENT_VOLUME_CLAIM, "data", "default")

    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(context, controller.run):
            await anyio.wait_all_tasks_blocked()
            api.put(volume("pv"))
            await anyio.wait_all_tasks_blocked()
            await clock.advance(RESYNC_SECONDS)
            await eventually(stored, lambda found: found is not None and found.status.phase == "Bound")


async def test_a_volume_whose_claim_gets_another_one_is_free_again() -> None:
    """The update of the claim wakes the volume: nothing else may happen to it."""
    api = FakeApi()
    api.put(claim(uid="u1"))
    chosen = volume("other", phase="Bound", claim_ref=MINE, policy="Retain")
    chosen.metadata.annotations[BOUND_BY_CONTROLLER] = "yes"
    api.put(chosen)
    found = await _becomes(api, "other", "Available", lambda: api.put(claim(uid="u1", volume="pv")))
    assert found is not None
    assert not found.spec.HasField("claimRef")


@pytest.mark.parametrize("lost", [False, True], ids=["without-claimRef", "created-again"])
async def test_a_bound_claim_gets_its_volume_again(lost: bool) -> None:
    """A volume without claimRef names no claim to wake: the claim that names it is looked at."""
    api = FakeApi()
    bound = claim(uid="u1", volume="pv", annotations={BIND_COMPLETED: "yes"}, phase="Bound")
    api.put(bound)
    if not lost:
        api.put(volume("pv", phase="Bound", claim_ref=MINE, policy="Retain"))
    context = context_of(api, FakeClock())
    controller = ClaimController(context)

    def phase() -> str:
        found = api.find(kinds.PERSISTENT_VOLUME_CLAIM, "data", "default")
        return "" if found is None else found.status.phase

    def owner() -> str:
        found = api.find(kinds.PERSISTENT_VOLUME, "pv")
        return "" if found is None else found.spec.claimRef.uid

    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(context, controller.run):
            await anyio.wait_all_tasks_blocked()
            assert phase() == ("Lost" if lost else "Bound")
            api.put(volume("pv", policy="Retain"))
            await eventually(owner, lambda uid: uid == "u1")
            await eventually(phase, lambda found: found == "Bound")
