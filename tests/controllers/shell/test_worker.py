"""A worker reconciles the other objects when one raises an unexpected error."""

from __future__ import annotations

import anyio

from nominee.controllers.shell.controller import Context, Worker
from nominee.machinery.runtime.clock import FakeClock
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
