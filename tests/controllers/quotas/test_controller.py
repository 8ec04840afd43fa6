"""What makes the controller count a quota again; the watch of pods may be behind the one of quotas."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from nominee.controllers.quotas.shell.quotas import COALESCE_SECONDS, RESYNC_SECONDS, QuotaController
from nominee.controllers.quotas.usage import is_charged
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import codec
from tests.controllers.builders import claim, pod
from tests.controllers.contexts import context_of
from tests.support.fake_api import FakeApi


class Api(FakeApi):
    def used(self, name: str = "pods") -> list[str]:
        return [found.status.used[name].string for found in self.all_of(kinds.RESOURCE_QUOTA)]


def _made(obj: Any, second: int) -> Any:
    obj.metadata.namespace, obj.metadata.creationTimestamp.seconds = "default", second
    return obj


def _quota() -> Any:
    bounds = core.ResourceQuota()
    bounds.metadata.name = "q"
    bounds.spec.hard["pods"].string = "1"
    return _made(bounds, 100)


def test_what_admission_has_charged() -> None:
    assert [is_charged(_quota(), _made(pod("p"), second)) for second in (99, 100, 101)] == [
        False,
        False,
        True,
    ]


@asynccontextmanager
async def _counting(
    api: Api, clock: FakeClock | None = None
) -> AsyncIterator[Callable[[list[str], str], Awaitable[None]]]:
    """Run the controller; yields what waits for the quotas' usage, well within a resync."""
    clock = clock or FakeClock()
    context = context_of(api, clock)
    controller = QuotaController(context)

    async def becomes(used: list[str], name: str) -> None:
        end = clock.monotonic() + RESYNC_SECONDS / 2
        while api.used(name) != used and clock.monotonic() < end:
            await clock.advance(COALESCE_SECONDS)
        assert api.used(name) == used

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(context.informers.run)
        await context.informers.wait_synced()
        tasks.start_soon(controller.run)
        yield becomes
        tasks.cancel_scope.cancel()


def _scoped(name: str, hard: str, **scope: Any) -> core.ResourceQuota:
    document = {"metadata": {"name": name}, "spec": {"hard": {hard: "9"}, **scope}}
    found: core.ResourceQuota = _made(codec.from_json(core.ResourceQuota, document), 100)
    return found


async def test_a_pod_that_changes_its_scope_is_recounted_in_both_quotas() -> None:
    api = Api()
    api.put(_scoped("ends", "pods", scopes=["Terminating"]))
    api.put(_scoped("lasts", "pods", scopes=["NotTerminating"]))
    api.put(_made(pod("p"), 99))
    async with _counting(api) as becomes:
        await becomes(["0", "1"], "pods")
        api.put(_made(pod("p", activeDeadlineSeconds=9), 99))
        await becomes(["1", "0"], "pods")
        api.put(_made(pod("p", activeDeadlineSeconds=9, phase="Failed"), 99))
        await becomes(["0", "0"], "pods")


async def test_a_claim_that_changes_its_attributes_class_is_recounted() -> None:
    api = Api()
    for name in ("gold", "silver"):
        terms = [{"scopeName": "VolumeAttributesClass", "operator": "In", "values": [name]}]
        api.put(_scoped(name, "persistentvolumeclaims", scopeSelector={"matchExpressions": terms}))

    def classes(desired: str, current: str) -> core.PersistentVolumeClaim:
        of = claim()
        of.spec.volumeAttributesClassName, of.status.currentVolumeAttributesClassName = desired, current
        made: core.PersistentVolumeClaim = _made(of, 99)
        return made

    api.put(classes("gold", "gold"))
    async with _counting(api) as becomes:
        await becomes(["1", "0"], "persistentvolumeclaims")
        api.put(classes("silver", "gold"))
        await becomes(["1", "1"], "persistentvolumeclaims")
        api.put(classes("silver", "silver"))
        await becomes(["0", "1"], "persistentvolumeclaims")


async def test_a_pod_that_is_seen_after_a_younger_quota_is_counted() -> None:
    api = Api()
    api.put(_quota())
    async with _counting(api) as becomes:
        await becomes(["0"], "pods")
        api.put(_made(pod("p"), 99))
        await becomes(["1"], "pods")


async def test_a_pod_that_is_stuck_in_its_deletion_is_not_counted_at_the_next_resync() -> None:
    api = Api()
    api.put(_quota())
    clock = FakeClock()
    stuck = _made(pod("p"), 99)
    stuck.metadata.deletionTimestamp.seconds = int(clock.now()) + 30
    stuck.metadata.deletionGracePeriodSeconds = 30
    api.put(stuck)
    async with _counting(api, clock) as becomes:
        await becomes(["1"], "pods")
        await clock.advance(RESYNC_SECONDS - COALESCE_SECONDS)
        await becomes(["0"], "pods")
