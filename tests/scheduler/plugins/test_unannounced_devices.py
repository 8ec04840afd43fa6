"""Devices that come free, and no event wakes the pods that wait for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import devices
from nominee.scheduler.plugins.dynamic_resources.tracker import (
    ClaimTracker,
    manager_of,
    unannounced_devices,
)
from tests.scheduler.plugins.claim_stage import S1, Stage, allocated, mine, user


class Informer:
    """Passes the changes of one claim on."""

    def __init__(self) -> None:
        self.add: Callable[[Any], None] = lambda claim: None
        self.update: Callable[[Any, Any], None] = lambda old, new: None
        self.delete: Callable[[Any, bool], None] = lambda claim, stale: None

    def add_handler(self, *, on_add: Any, on_update: Any, on_delete: Any) -> None:
        self.add, self.update, self.delete = on_add, on_update, on_delete

    def get(self, name: str, namespace: str = "") -> devices.ResourceClaim | None:
        return None

    def list(self, namespace: str = "") -> list[devices.ResourceClaim]:
        return []


def _tracker() -> tuple[ClaimTracker, Informer]:
    informer = Informer()
    return ClaimTracker(cast("Any", informer)), informer


def _device(claim: devices.ResourceClaim) -> str:
    (result,) = claim.status.allocation.devices.results
    return f"{result.driver}/{result.pool}/{result.device}"


def test_an_update_announces_that_devices_are_free() -> None:
    tracker, informer = _tracker()
    informer.add(allocated("n1", "p"))
    informer.update(allocated("n1", "p"), mine())
    informer.delete(mine(), False)
    assert tracker.unannounced_devices() == ()


def test_the_removal_of_an_allocated_claim_announces_nothing() -> None:
    tracker, informer = _tracker()
    used = allocated("n1", "p")
    informer.add(used)
    informer.delete(used, True)
    assert tracker.unannounced_devices() == (_device(used),)


def test_a_device_that_is_in_use_again_is_not_free() -> None:
    tracker, informer = _tracker()
    used = allocated("n1", "p")
    informer.add(used)
    informer.delete(used, True)
    informer.add(used)
    assert tracker.unannounced_devices() == ()


def test_the_next_announcement_is_for_all_devices() -> None:
    """It wakes every pod that waits for some."""
    tracker, informer = _tracker()
    used = allocated("n1", "p")
    informer.add(used)
    informer.delete(used, True)
    informer.add(used)
    informer.update(used, mine())
    assert tracker.unannounced_devices() == ()


def test_an_allocation_that_is_given_up_before_it_is_written_announces_nothing() -> None:
    stage, who = Stage(mine(), S1), user()
    assert stage.feasible(who) == ["n1"]
    assert stage.reserve(who, "n1") is None
    lister = stage.framework.lister(kinds.RESOURCE_CLAIM)
    assert unannounced_devices(lister) == ()
    stage.plugin.unreserve(stage.state, who, "n1")
    assert len(unannounced_devices(lister)) == 1
    assert unannounced_devices(lister) == manager_of(stage.framework).claims.unannounced_devices()
    assert unannounced_devices(cast("Any", Informer())) == ()
