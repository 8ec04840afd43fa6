"""The stage: a cluster of real processes, and the operations and conditions of a story."""

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

from machinery.api import kinds
from machinery.api.errors import StatusError, is_not_found
from machinery.api.kinds import AnyKind
from machinery.api.pb import core
from machinery.client import api_client as client_module
from machinery.client.api_client import Client
from machinery.client.informer import Informer
from machinery.process.run_files import RunFile
from machinery.process.serving_client import HttpAnswer, ServingPort, request
from machinery.runtime.clock import Clock
from machinery.wire.manifests import parse_manifests
from nominee.demo.narration import Narrator, StoryError, Watching
from nominee.supervisor.client import call
from nominee.supervisor.directory import StateDirectory

NAMESPACE = "default"
WAIT_SECONDS_MAX = 60.0
_COMMAND_SECONDS_MAX = 60.0
_POLL_SECONDS = 0.02


class Stage:
    """A running cluster, seen through informers."""

    def __init__(self, directory: Path, client: Client, clock: Clock, narrator: Narrator) -> None:
        self.directory = directory
        self.client = client
        self.clock = clock
        self.narrator = narrator
        self.pods: Informer[core.Pod] = Informer(client, kinds.POD, clock=clock)
        self.nodes: Informer[core.Node] = Informer(client, kinds.NODE, clock=clock)
        self.claims: Informer[core.PersistentVolumeClaim] = Informer(
            client, kinds.PERSISTENT_VOLUME_CLAIM, clock=clock
        )
        self.volumes: Informer[core.PersistentVolume] = Informer(client, kinds.PERSISTENT_VOLUME, clock=clock)
        watching = Watching(narrator)
        for informer, changed in (
            (self.pods, watching.pod_changed),
            (self.nodes, watching.node_changed),
            (self.claims, watching.claim_changed),
        ):
            # Each handler takes its informer's kind, which the type of the tuple does not say.
            handler: Any = changed
            informer.add_handler(on_add=partial(handler, None), on_update=handler)
        self.pods.add_handler(on_delete=lambda pod, _stale: watching.pod_gone(pod))
        self.nodes.add_handler(on_delete=lambda node, _stale: watching.node_gone(node))

    @classmethod
    @asynccontextmanager
    async def open(cls, directory: Path, clock: Clock, narrator: Narrator) -> AsyncIterator[Stage]:
        """Connect to a running cluster; yield the stage when its informers have synced."""
        async with await client_module.connect(directory, user_agent="nominee-demo") as client:
            stage = cls(directory, client, clock, narrator)
            async with anyio.create_task_group() as tasks:
                for informer in (stage.pods, stage.nodes, stage.claims, stage.volumes):
                    tasks.start_soon(informer.run)
                for informer in (stage.pods, stage.nodes, stage.claims, stage.volumes):
                    await informer.wait_synced()
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
            for informer in (self.pods, self.claims):
                # A story may read the object at once, so wait until the informer has it.
                if informer.kind is kinds.of(found):
                    name = found.metadata.name
                    await self.until(f"{name} is seen", partial(informer.get, name, NAMESPACE))

    async def delete(self, kind: AnyKind, name: str, *, grace_period_seconds: int | None = None) -> None:
        """Delete an object if it exists."""
        namespace = NAMESPACE if kind.namespaced else ""
        try:
            await self.client.delete(kind, name, namespace, grace_period_seconds=grace_period_seconds)
        except StatusError as error:
            if not is_not_found(error):
                raise

    def pod(self, name: str) -> core.Pod:
        """Return a pod from the informer.

        Raises:
            StoryError: the pod does not exist.
        """
        found = self.pods.get(name, NAMESPACE)
        if found is None:
            raise StoryError(f"pod {name} is gone")
        return found

    def pod_of(self, owner: str) -> core.Pod | None:
        """Return the first pod that a ReplicaSet owns."""
        for pod in self.pods.list(NAMESPACE):
            if any(reference.name == owner for reference in pod.metadata.ownerReferences):
                return pod
        return None

    async def clear(self) -> None:
        """Delete the ReplicaSets, pods and claims of a story, and wait until they are gone."""
        for item in (await self.client.list(kinds.REPLICA_SET, NAMESPACE)).items:
            await self.delete(kinds.REPLICA_SET, item.metadata.name)
        await self.until(
            "no replica set is left",
            lambda: not any(pod.metadata.ownerReferences for pod in self.pods.list(NAMESPACE)),
            act=self._delete_pods,
        )
        await self._delete_pods()
        await self.until("no pod is left", lambda: not self.pods.list(NAMESPACE))
        for claim in self.claims.list(NAMESPACE):
            await self.delete(kinds.PERSISTENT_VOLUME_CLAIM, claim.metadata.name)
        await self.until(
            "no volume is left", lambda: not self.claims.list(NAMESPACE) and not self.volumes.list()
        )

    async def _delete_pods(self) -> None:
        for pod in self.pods.list(NAMESPACE):
            await self.delete(kinds.POD, pod.metadata.name, grace_period_seconds=0)

    # --- waiting and checking ---

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
            StoryError: the condition did not hold within the limit.
        """
        deadline = self.clock.monotonic() + limit_seconds
        while True:
            looked = condition()
            found = await looked if isinstance(looked, Awaitable) else looked
            if found:
                return found
            if self.clock.monotonic() > deadline:
                raise StoryError(f"not within {limit_seconds:g} s: {what}")
            if act is not None:
                await act()
            await self.clock.sleep(_POLL_SECONDS)

    async def until_runs(self, name: str) -> None:
        """Wait until a pod is Running."""
        await self.until(f"{name} runs", lambda: self.pod(name).status.phase == "Running")

    async def stays(self, what: str, condition: Callable[[], object], seconds: float) -> None:
        """Check that the condition holds for some seconds.

        Raises:
            StoryError: it does not hold.
        """
        deadline = self.clock.monotonic() + seconds
        while self.clock.monotonic() < deadline:
            self.check(condition(), what, silent=True)
            await self.clock.sleep(_POLL_SECONDS)
        self.narrator.held(what)

    def check(self, holds: object, what: str, *, silent: bool = False) -> None:
        """Check a condition once, and print it.

        Raises:
            StoryError: it does not hold.
        """
        if not holds:
            raise StoryError(what)
        if not silent:
            self.narrator.held(what)

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
            raise StoryError(f"{component} does not take failpoint {name}={action}: {answer.text}")

    async def waits_at(self, component: str, name: str) -> bool:
        """Return whether a process waits at a paused failpoint."""
        return await self.waiting_at(component, name) > 0

    async def waiting_at(self, component: str, name: str) -> int:
        """Return how many tasks of a process wait at a paused failpoint."""
        answer = await self._http(component, "/failpoints")
        return sum(point["waiting"] for point in json.loads(answer.body) if point["name"] == name)

    async def queued(self) -> dict[str, int]:
        """Return the number of pods by queue of the scheduler: active, backoff, unschedulable, gated."""
        answer = json.loads((await self._http("scheduler", "/debug/queue")).body)
        return {name: len(pods) for name, pods in answer.items() if isinstance(pods, list)}

    async def autoscaler_loop(self) -> dict[str, Any]:
        """Return the autoscaler's report on its last loop."""
        found: dict[str, Any] = json.loads((await self._http("autoscaler", "/debug/loop")).body)
        return found

    async def _http(self, component: str, path: str, *, method: str = "GET", body: str = "") -> HttpAnswer:
        found = RunFile.read(self.directory, component)
        if found is None:
            raise StoryError(f"{component} does not run")
        port = ServingPort.of(found.http, self.directory)
        return await anyio.to_thread.run_sync(partial(request, port, path, method=method, body=body))
