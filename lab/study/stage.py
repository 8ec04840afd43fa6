"""The stage: a cluster of real processes, and the operations and conditions of a trial."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from nominee.localcluster.supervisor.client import call
from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import core
from nominee.machinery.client import api_client as client_module
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.informer import Informer
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.process.serving_client import HttpAnswer, ServingPort, request
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.wire.manifests import parse_manifests

NAMESPACE = "default"
WAIT_SECONDS_MAX = 60.0
_COMMAND_SECONDS_MAX = 60.0
_POLL_SECONDS = 0.02


class StageError(Exception):
    """A condition did not hold in time, or a process does not do what a trial asks for."""


class Stage:
    """A running cluster, seen through an informer."""

    def __init__(self, directory: Path, client: Client, clock: Clock) -> None:
        self.directory = directory
        self.client = client
        self.clock = clock
        self.pods: Informer[core.Pod] = Informer(client, kinds.POD, clock=clock)

    @classmethod
    @asynccontextmanager
    async def open(cls, directory: Path, clock: Clock) -> AsyncIterator[Stage]:
        """Connect to a running cluster; yield the stage when its informer has synced."""
        async with await client_module.connect(directory, user_agent="nominee-study") as client:
            stage = cls(directory, client, clock)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stage.pods.run)
                await stage.pods.wait_synced()
                yield stage
                tasks.cancel_scope.cancel()

    # --- objects ---

    async def apply(self, manifests: str) -> None:
        """Create the objects of a YAML stream; the namespace of those without one is `default`."""
        for obj in parse_manifests(manifests, strict=True):
            found: Any = obj
            if kinds.of(found).namespaced and not found.metadata.namespace:
                found.metadata.namespace = NAMESPACE
            await self.client.create(found)
            if kinds.of(found) is kinds.POD:
                # A trial may read the pod at once, so wait until the informer has it.
                name = found.metadata.name
                await self.until(f"{name} is seen", partial(self.pods.get, name, NAMESPACE))

    async def delete(self, kind: AnyKind, name: str, *, grace_period_seconds: int | None = None) -> None:
        """Delete an object if it exists."""
        namespace = NAMESPACE if kind.namespaced else ""
        try:
            await self.client.delete(kind, name, namespace, grace_period_seconds=grace_period_seconds)
        except StatusError as error:
            if not is_not_found(error):
                raise

    # --- waiting ---

    async def until(
        self,
        what: str,
        condition: Callable[[], Any],
        *,
        limit_seconds: float = WAIT_SECONDS_MAX,
        act: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:
        """Wait until the condition returns a true value, and return it.

        The condition may be a coroutine function. `act` runs before each further attempt.

        Raises:
            StageError: the condition did not hold within the limit.
        """
        deadline = self.clock.monotonic() + limit_seconds
        while True:
            looked = condition()
            found = await looked if isinstance(looked, Awaitable) else looked
            if found:
                return found
            if self.clock.monotonic() > deadline:
                raise StageError(f"not within {limit_seconds:g} s: {what}")
            if act is not None:
                await act()
            await self.clock.sleep(_POLL_SECONDS)

    # --- processes ---

    async def _ask(self, command: str, component: str, **more: object) -> None:
        def ask() -> None:
            call(
                StateDirectory(self.directory),
                command,
                timeout_seconds=_COMMAND_SECONDS_MAX,
                component=component,
                **more,
            )

        await anyio.to_thread.run_sync(ask)

    async def stop(self, component: str, *, kill: bool = False) -> None:
        """Stop a component, with SIGKILL if asked; it stays down."""
        await self._ask("stop", component, kill=kill)

    async def start(self, component: str, *arguments: str) -> None:
        """Start a component that is down, with additional arguments, and wait until it is ready."""
        await self._ask("start", component, arguments=list(arguments))

    async def restart(self, component: str, *arguments: str) -> None:
        """Restart a component with additional arguments."""
        await self._ask("restart", component, arguments=list(arguments))

    async def pause(self, component: str) -> None:
        """Stop a process with SIGSTOP, until `resume`."""
        await self._ask("pause", component)

    async def resume(self, component: str) -> None:
        """Continue a process that `pause` stopped."""
        await self._ask("resume", component)

    async def failpoint(self, component: str, name: str, action: str) -> None:
        """Arm a failpoint in a running process."""
        answer = await self._http(component, f"/failpoints/{name}", method="PUT", body=action)
        if answer.status != HTTPStatus.OK:
            raise StageError(f"{component} does not take failpoint {name}={action}: {answer.text}")

    async def waiting_at(self, component: str, name: str) -> int:
        """Return how many tasks of a process wait at a paused failpoint."""
        answer = await self._http(component, "/failpoints")
        return sum(point["waiting"] for point in json.loads(answer.body) if point["name"] == name)

    async def queued(self) -> dict[str, int]:
        """Return the number of pods by queue of the scheduler: active, backoff, unschedulable, gated."""
        answer = json.loads((await self._http("scheduler", "/debug/queue")).body)
        return {name: len(pods) for name, pods in answer.items() if isinstance(pods, list)}

    async def _http(self, component: str, path: str, *, method: str = "GET", body: str = "") -> HttpAnswer:
        found = RunFile.read(self.directory, component)
        if found is None:
            raise StageError(f"{component} does not run")
        port = ServingPort.of(found.http, self.directory)
        return await anyio.to_thread.run_sync(partial(request, port, path, method=method, body=body))
