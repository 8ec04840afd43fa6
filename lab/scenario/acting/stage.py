"""What steps act on: a running cluster, its objects, and the objects that steps created."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from google.protobuf.message import Message

from nominee.lab.scenario.acting.errors import StepFailedError
from nominee.lab.scenario.acting.waiting import Waiting
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.observing.world import World
from nominee.localcluster.supervisor.model.states import COMING_UP
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import key_of, metadata_of, resource_version_of
from nominee.machinery.client.api_client import retry_unavailable

_LOOK_SECONDS: Final = 0.01
_SEEN_SECONDS_MAX: Final = 10.0
_STARTED_SECONDS_MAX: Final = 30.0
T = TypeVar("T")


class Stage:
    """A cluster for the steps of one scenario."""

    def __init__(self, cluster: ScenarioCluster, world: World, waiting: Waiting) -> None:
        self.cluster, self.world, self.waiting = cluster, world, waiting
        self.client, self.clock = cluster.client, cluster.clock
        self.created: dict[tuple[AnyKind, str, str], None] = {}
        """Objects that steps created: kind, namespace, name."""

    async def call(self, call: Callable[[], Awaitable[T]], rejected: str = "") -> T | None:
        """Make a call, again while the API server is not reachable; None if it was rejected as stated.

        Raises:
            StepFailedError: it was not rejected, or with another message.
            StatusError: it was rejected.
        """
        if not rejected:
            return await retry_unavailable(call, clock=self.clock)
        try:
            await call()
        except StatusError as error:
            if rejected in error.message:
                return None
            raise StepFailedError(f"rejected with another message: {error.message}") from None
        raise StepFailedError(f"the API server accepted it; expected an error with {rejected!r}")

    async def until_seen(self, *stored: Message, gone: Sequence[Message] = ()) -> None:
        """Wait until the watches show objects at least as new, so that the next step finds them.

        And until they do not show those that are gone. A watch that hangs is waited for
        _SEEN_SECONDS_MAX.
        """
        waits = [
            partial(is_seen, each)
            for is_seen, objects in ((self._shows, stored), (self._misses, gone))
            for each in objects
            if self.world.watches(kinds.of(each))
        ]
        deadline = self.clock.monotonic() + _SEEN_SECONDS_MAX
        for is_seen in waits:
            while not is_seen() and self.clock.monotonic() < deadline:
                await self.clock.sleep(_LOOK_SECONDS)

    def _shows(self, stored: Message) -> bool:
        kind, metadata, revision = kinds.of(stored), metadata_of(stored), resource_version_of(stored)
        found = self.world.get(kind, metadata.name, metadata.namespace)
        if found is not None and resource_version_of(found) >= revision:
            return True
        return self.world.last_deleted(kind, metadata.name, metadata.namespace) >= revision

    def _misses(self, before: Message) -> bool:
        kind, metadata = kinds.of(before), metadata_of(before)
        found = self.world.get(kind, metadata.name, metadata.namespace)
        is_there = found is not None and metadata_of(found).uid == metadata.uid
        return not is_there and self.world.revision_of(kind) >= resource_version_of(before)

    async def until_started(self, component: str) -> None:
        """Wait while processes of a component start again: until then they cannot be asked for anything."""
        deadline = self.clock.monotonic() + _STARTED_SECONDS_MAX
        while self.clock.monotonic() < deadline:
            processes = await self.cluster.processes()
            if not any(
                component in (each.name, each.component) and each.state in COMING_UP for each in processes
            ):
                return
            await self.clock.sleep(_LOOK_SECONDS)

    async def targets(self, kind: AnyKind, name: str, namespace: str, selector: str) -> list[tuple[str, str]]:
        """Return namespace and name of the objects of a name or a selector."""
        if name:
            return [(namespace if kind.namespaced else "", name)]
        found = map(metadata_of, await self.objects(kind, "", namespace, selector))
        return [(each.namespace, each.name) for each in found]

    async def objects(self, kind: AnyKind, name: str, namespace: str, selector: str) -> list[Message]:
        """Return the objects of a name, if there is one, or of a selector."""
        namespace = namespace if kind.namespaced else ""
        if name:
            found = await self.current(kind, namespace, name)
            return [] if found is None else [found]
        listed = await self.client.list(kind, namespace, label_selector=selector)
        return sorted(listed.items, key=key_of)

    async def current(self, kind: AnyKind, namespace: str, name: str) -> Message | None:
        """Return an object as it is now, None if it does not exist."""
        try:
            return await self.call(lambda: self.client.get(kind, name, namespace))
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    async def delete(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        grace: int | None = None,
        propagation_policy: str = "Background",
    ) -> None:
        """Delete an object, and what it owns according to the policy; it need not exist."""
        try:
            await retry_unavailable(
                lambda: self.client.delete(
                    kind, name, namespace, grace_period_seconds=grace, propagation_policy=propagation_policy
                ),
                clock=self.clock,
            )
        except StatusError as error:
            if not is_not_found(error):
                raise
