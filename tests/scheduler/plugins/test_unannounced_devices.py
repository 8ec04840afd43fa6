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


def _removed() -> tuple[ClaimTracker, Informer, devices.ResourceClaim]:
    """Return a tracker whose claim, the third value, was removed while it was allocated."""
    tracker, informer = _tracker()
    used = allocated("n1", "p")
    informer.add(used)
    informer.delete(used, True)
    return tracker, informer, used


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
    tracker, _, used = _removed()
    assert tracker.unannounced_devices() == (_device(used),)


def test_a_device_that_is_in_use_again_is_not_free() -> None:
    tracker, informer, used = _removed()
    informer.add(used)
    assert tracker.unannounced_devices() == ()


def test_the_next_announcement_is_for_all_devices() -> None:
    """It wakes every pod that waits for some."""
    tracker, informer, used = _removed()
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


def _versions(*claims: devices.ResourceClaim) -> list[devices.ResourceClaim]:
    """Return the claims as states of one, in order."""
    for revision, each in enumerate(claims, 1):
        each.metadata.resourceVersion = str(revision)
    return list(claims)


class OneClaim(Informer):
    """Shows one claim."""

    shown: devices.ResourceClaim | None = None

    def get(self, name: str, namespace: str = "") -> devices.ResourceClaim | None:
        return self.shown

    def show(self, claim: devices.ResourceClaim) -> None:
        old, self.shown = self.shown, claim
        self.add(claim) if old is None else self.update(old, claim)


def _announcing() -> tuple[ClaimTracker, OneClaim, list[tuple[str, str]]]:
    """Return a tracker, its informer, and the revisions before and after each announced deallocation."""
    informer = OneClaim()
    tracker = ClaimTracker(cast("Any", informer))
    announced: list[tuple[str, str]] = []
    tracker.announce = lambda old, new: announced.append(
        (old.metadata.resourceVersion, new.metadata.resourceVersion)
    )
    return tracker, informer, announced


def test_an_allocation_that_the_watch_never_showed_is_announced_when_it_ends() -> None:
    tracker, informer, announced = _announcing()
    free, used, freed = _versions(mine(), allocated("n1", "p"), mine())
    informer.show(free)
    tracker.assume(used)
    assert not announced
    informer.show(freed)
    assert announced == [("2", "3")]


def test_what_the_watch_shows_is_not_announced_twice() -> None:
    tracker, informer, announced = _announcing()
    free, used, shown, freed = _versions(mine(), allocated("n1", "p"), allocated("n1", "p"), mine())
    informer.show(free)
    tracker.assume(used)
    informer.show(shown)
    informer.show(freed)
    assert not announced


def test_an_assumed_allocation_that_is_taken_back_is_announced() -> None:
    tracker, informer, announced = _announcing()
    free, used = _versions(mine(), allocated("n1", "p"))
    informer.show(free)
    tracker.assume(used)
    tracker.restore(free.metadata.name, free.metadata.namespace)
    tracker.restore(free.metadata.name, free.metadata.namespace)
    assert announced == [("2", "1")]


def test_an_answer_that_shows_the_end_of_an_allocation_is_announced() -> None:
    tracker, informer, announced = _announcing()
    used, freed = _versions(allocated("n1", "p"), mine())
    informer.show(used)
    tracker.assume(freed)
    assert announced == [("1", "2")]
