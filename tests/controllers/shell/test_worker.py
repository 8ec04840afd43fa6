"""A worker reconciles the other objects when one raises an unexpected error."""

from __future__ import annotations

import anyio

from nominee.controllers.shell.controller import Context, Worker
from nominee.machinery.api import errors
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import pod
from tests.controllers.contexts import context_of
from tests.support.fake_api import FakeApi


class Breaking(Worker[str]):
    name = "breaking"
    workers = 1

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.done = anyio.Event()
        self.broken: list[str] = []

    async def reconcile(self, key: str) -> float | None:
        if key == "good":
            self.done.set()
            return None
        self.broken.append(key)
        if key == "ending":
            cause = errors.Cause("NamespaceTerminating", "namespace team is being terminated")
            raise errors.StatusError(403, "Forbidden", "forbidden", causes=[cause])
        raise ValueError(key)


async def test_an_object_that_cannot_be_reconciled_does_not_stop_the_others() -> None:
    worker = Breaking(context_of(FakeApi(), FakeClock()))
    worker.queue.add("bad")
    worker.queue.add("good")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        await worker.done.wait()
        tasks.cancel_scope.cancel()
    assert worker.broken == ["bad"]


async def test_an_object_whose_namespace_terminates_is_not_tried_again() -> None:
    clock = FakeClock()
    worker = Breaking(context_of(FakeApi(), clock))
    worker.queue.add("ending")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        await clock.advance(60)
        tasks.cancel_scope.cancel()
    assert worker.broken == ["ending"]


async def test_a_finalizer_is_removed_once() -> None:
    api = FakeApi()
    worker, of = Breaking(context_of(api, FakeClock())), pod()
    of.metadata.finalizers.extend(["x", "y"])
    api.put(of)
    await worker.drop_finalizer(of, "x")
    assert list(api.pod("p").metadata.finalizers) == ["y"]
    assert list(of.metadata.finalizers) == ["x", "y"]
    await worker.drop_finalizer(api.pod("p"), "x")
    assert len(api.requests) == 1
