"""The stateful set controller over an API server in memory, with a kubelet that the test moves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc

from nominee.controllers.stateful_sets.shell.stateful_sets import StatefulSetController
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import copy_of, key_of, metadata_of
from nominee.machinery.api.pb import apps, core
from nominee.machinery.client.api_client import WatchEvent
from nominee.machinery.runtime.clock import FakeClock, to_time
from tests.controllers.contexts import context_of
from tests.support.fake_api import FakeApi, M


@dataclass
class Api(FakeApi):
    """Names are unique, uids are not used again, and pods end gracefully."""

    behind: set[str] = field(default_factory=set)
    """The kinds whose watch shows nothing for now."""

    async def create(self, obj: M, **more: object) -> M:
        made = copy_of(obj)
        if metadata_of(made).name and self.find(kinds.of(made), *reversed(key_of(made))) is not None:
            raise errors.already_exists(kinds.of(made), metadata_of(made).name)
        metadata_of(made).uid = f"uid-{self.revision}"
        if isinstance(made, core.Pod):
            made.status.phase = "Pending"
        return await super().create(made, **more)

    async def delete(self, kind: Kind[M], name: str, namespace: str = "", **options: object) -> bool:
        if kind is not kinds.POD:
            return await super().delete(kind, name, namespace, **options)
        await self._call("delete", kind, key_of(self._current(kind, name, namespace)), None, options=options)
        pod = copy_of(self.pod(name))
        if pod.metadata.uid != options.get("uid", pod.metadata.uid):
            raise errors.conflict(kind, name)
        self.end(pod)
        return False

    def end(self, pod: core.Pod) -> None:
        """Mark a pod as terminating."""
        if not pod.metadata.HasField("deletionTimestamp"):
            ending = copy_of(pod)
            ending.metadata.deletionTimestamp.CopyFrom(to_time(1.0))
            self.put(ending)

    async def watch_batches(
        self, kind: Kind[M], namespace: str = "", *, resource_version: str, **more: object
    ) -> AsyncGenerator[Sequence[WatchEvent[M]], None]:
        async for batch in super().watch_batches(kind, namespace, resource_version=resource_version, **more):
            while kind.plural in self.behind:
                await anyio.lowlevel.checkpoint()
            yield batch


@dataclass
class Play:
    """A running controller; `restart` replaces it, `advance` moves the clock."""

    api: Api
    clock: FakeClock
    tasks: anyio.abc.TaskGroup
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def restart(self) -> None:
        self.scope.cancel()
        self.scope = anyio.CancelScope()
        started = anyio.Event()
        self.tasks.start_soon(self._run, self.scope, started)
        await started.wait()

    async def _run(self, scope: anyio.CancelScope, started: anyio.Event) -> None:
        with scope:
            context = context_of(self.api, self.clock)
            controller = StatefulSetController(context)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(context.informers.run)
                tasks.start_soon(context.recorders.run)
                started.set()
                await context.informers.wait_synced()
                tasks.start_soon(controller.run)

    async def advance(self, seconds: float = 1.0) -> None:
        await self.clock.advance(seconds)

    @property
    def set(self) -> apps.StatefulSet:
        (found,) = self.api.all_of(kinds.STATEFUL_SET)
        return found

    def change(self, change: Callable[[apps.StatefulSet], None]) -> None:
        """Change the set's spec, as a user does."""
        new = copy_of(self.set)
        change(new)
        new.metadata.generation += 1
        self.api.put(new)

    def pods(self) -> list[core.Pod]:
        return sorted(self.api.all_of(kinds.POD), key=lambda pod: pod.metadata.name)

    def step(self, pod: core.Pod) -> None:
        """Bring a pod one state further, as its kubelet does."""
        if pod.metadata.HasField("deletionTimestamp"):
            self.api.remove(kinds.POD, pod.metadata.name)
        elif pod.status.phase == "Pending":
            new = copy_of(pod)
            new.status.phase = "Running"
            new.status.conditions.add(
                type="Ready", status="True", lastTransitionTime=to_time(self.clock.now())
            )
            self.api.put(new)

    async def settle(self, rounds: int) -> None:
        """Bring all pods so many states further."""
        self.api.behind.clear()
        for _ in range(rounds):
            for pod in self.pods():
                self.step(pod)
            await self.advance(5.0)

    async def rest(self) -> None:
        """Bring all pods to their last state, until nothing is written for longer than any back-off here."""
        quiet = 0
        while quiet < 4:
            before = self.api.revision
            await self.settle(1)
            quiet = quiet + 1 if self.api.revision == before else 0


@asynccontextmanager
async def playing(api: Api) -> AsyncIterator[Play]:
    async with anyio.create_task_group() as tasks:
        play = Play(api, FakeClock(), tasks)
        await play.restart()
        await play.advance()
        yield play
        tasks.cancel_scope.cancel()
