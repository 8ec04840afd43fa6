"""A namespace that was deleted just now: objects may still be written that were let in before."""

from __future__ import annotations

import anyio

from nominee.controllers.garbage.shell.namespaces import GRACE_SECONDS, NamespaceController
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import pod
from tests.controllers.contexts import context_of, synced
from tests.support.fake_api import FakeApi


def _terminating() -> core.Namespace:
    found = core.Namespace()
    found.metadata.name = "default"
    found.metadata.deletionTimestamp.seconds = 1
    found.spec.finalizers.append("kubernetes")
    found.status.phase = "Terminating"
    return found


async def test_an_object_that_is_written_after_the_deletion_goes_with_its_namespace() -> None:
    api, clock = FakeApi.of(_terminating()), FakeClock()
    context = context_of(api, clock)
    controller = NamespaceController(context)
    async with synced(context, controller.run):
        await clock.advance(GRACE_SECONDS - 0.1)
        assert list((await api.get(kinds.NAMESPACE, "default")).spec.finalizers) == ["kubernetes"]
        api.put(pod())
        await clock.advance(0.2)
        await anyio.wait_all_tasks_blocked()
    assert not (await api.list(kinds.POD)).items


async def test_the_end_of_a_pod_is_awaited_once_the_namespace_is_being_emptied() -> None:
    namespace = _terminating()
    context = context_of(FakeApi.of(namespace), FakeClock())
    controller = NamespaceController(context)
    async with synced(context):
        controller._pod_gone(pod())
        assert not len(controller.queue)
        namespace.status.conditions.add(type="NamespaceContentRemaining", status="True")
        context.informers.of(kinds.NAMESPACE)._put(namespace)
        controller._pod_gone(pod())
        assert len(controller.queue) == 1
