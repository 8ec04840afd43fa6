"""The watch of pods may be behind the one of quotas."""

from __future__ import annotations

from typing import Any

import anyio

from controllers.workloads.quotas import COALESCE_SECONDS, RESYNC_SECONDS, QuotaController, is_charged
from machinery import kinds
from machinery.clock import FakeClock
from machinery.pb import core
from tests.controllers.builders import pod
from tests.controllers.contexts import context_of
from tests.scheduler.shell.fake_api import FakeApi


class Api(FakeApi):
    async def update(self, obj: Any, *, subresource: str = "", **_: Any) -> Any:
        return self.put(obj)

    def used(self) -> list[str]:
        return [found.status.used["pods"].string for found in self.objects[kinds.RESOURCE_QUOTA].values()]


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


async def test_a_pod_that_is_seen_after_a_younger_quota_is_counted() -> None:
    api, clock = Api(), FakeClock()
    context = context_of(api, clock)
    informers = context.informers
    api.put(_quota())
    controller = QuotaController(context)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informers.run)
        await informers.wait_synced()
        tasks.start_soon(controller.run)
        await api.until(lambda: api.used() == ["0"])
        api.put(_made(pod("p"), 99))
        await api.until(lambda: len(controller.informers[kinds.POD]) == 1)
        end = clock.monotonic() + RESYNC_SECONDS / 2
        while api.used() != ["1"] and clock.monotonic() < end:
            await clock.advance(COALESCE_SECONDS)
        assert api.used() == ["1"]
        tasks.cancel_scope.cancel()
