"""Perform the actions of steps that change a cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar, cast

from google.protobuf.message import Message

from nominee.lab.scenario.clusters.cluster import ScenarioCluster
from nominee.lab.scenario.format import names
from nominee.lab.scenario.format.condition import DEFAULT_NAMESPACE
from nominee.lab.scenario.format.model import (
    Action,
    Apply,
    ArmFailpoint,
    Control,
    Cordon,
    DamageCheckpoint,
    Delete,
    Drain,
    InjectFault,
    Patch,
    ResizeGroup,
    ShiftClock,
    Verb,
)
from nominee.lab.scenario.play.world import World
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import condition_is, metadata_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import retry_unavailable
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.wire.manifests import parse_object
from nominee.machinery.wire.scalars import DecodeError, Json

GROUP_LABEL = "nominee.dev/node-group"
_POLL_SECONDS = 0.05
_TOO_MANY_REQUESTS = 429
T = TypeVar("T")


class StepFailedError(Exception):
    """A step did not lead to what it states; the message has the observation."""


class Actions:
    """Performs actions on a cluster."""

    def __init__(self, cluster: ScenarioCluster, world: World) -> None:
        self._cluster, self._world = cluster, world
        self.created: dict[tuple[AnyKind, str, str], None] = {}
        """Objects that steps created: kind, namespace, name."""

    async def perform(self, action: Action) -> str:
        """Perform an action; return what was observed.

        Raises:
            StepFailedError: the result is not the stated one.
            StatusError, ClusterError: the cluster refused.
        """
        match action:
            case Apply():
                return await self._apply(action)
            case Patch():
                return await self._patch(action)
            case Delete():
                return await self._delete(action)
            case Control():
                return await self._control(action)
            case ArmFailpoint():
                await self._cluster.arm_failpoint(action.component, action.name, action.action)
            case InjectFault():
                await self._cluster.inject_fault(action)
            case ShiftClock():
                await self._cluster.shift_clock(action.component, action.offset_seconds)
            case Cordon():
                await self._cordon(action.node, unschedulable=action.unschedulable)
            case Drain():
                return await self._drain(action)
            case ResizeGroup():
                return await self._resize_group(action)
            case DamageCheckpoint():
                await self._cluster.damage_checkpoint(action.node, action.how)
            case _:
                raise TypeError(f"{type(action).__name__} changes nothing")
        return ""

    async def _call(self, call: Callable[[], Awaitable[T]], rejected: str = "") -> T | None:
        """Make a call, again while the API server is not reachable; None if it was rejected as stated.

        Raises:
            StepFailedError: it was not rejected, or with another message.
            StatusError: it was rejected.
        """
        if not rejected:
            return await retry_unavailable(call, clock=self._cluster.clock)
        try:
            await call()
        except StatusError as error:
            if rejected in error.message:
                return None
            raise StepFailedError(f"rejected with another message: {error.message}") from None
        raise StepFailedError(f"the API server accepted it; expected an error with {rejected!r}")

    # Objects

    async def _apply(self, action: Apply) -> str:
        said = []
        for manifest in action.manifests:
            try:
                obj = parse_object(manifest, strict=True)
            except DecodeError as error:
                raise ClusterError(f"the manifest is invalid: {error}") from None
            kind, metadata = kinds.of(obj), metadata_of(obj)
            if kind.namespaced and not metadata.namespace:
                metadata.namespace = DEFAULT_NAMESPACE
            stored = await self._call(partial(self._create, obj, manifest), action.rejected)
            if stored is None:
                said.append(f"{kind.kind.lower()}/{metadata.name} is rejected")
                continue
            self.created[kind, metadata.namespace, metadata.name] = None
            await self._until_seen(stored)
        return ", ".join(said)

    async def _create(self, obj: Message, manifest: Mapping[str, Json]) -> Message:
        """Create an object, or merge the manifest into the one that exists."""
        kind, metadata = kinds.of(obj), metadata_of(obj)
        client = self._cluster.client
        try:
            return await client.create(obj)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
        patch = {key: value for key, value in manifest.items() if key != "status"}
        return await client.patch(kind, metadata.name, metadata.namespace, patch)

    async def _until_seen(self, stored: Message) -> None:
        """Wait until the watches show an object at least as new, so that the next step finds it."""
        kind, metadata = kinds.of(stored), metadata_of(stored)
        if not self._world.watches(kind):
            return
        deadline = self._cluster.clock.monotonic() + 10.0
        while self._cluster.clock.monotonic() < deadline:
            found = self._world.get(kind, metadata.name, metadata.namespace)
            if found is not None and _revision(found) >= _revision(stored):
                return
            if self._world.last_deleted(kind, metadata.name, metadata.namespace) >= _revision(stored):
                return
            await self._cluster.clock.sleep(_POLL_SECONDS / 5)

    async def _names(self, kind: AnyKind, name: str, namespace: str, selector: str) -> list[tuple[str, str]]:
        if name:
            return [(namespace if kind.namespaced else "", name)]
        listed = await self._cluster.client.list(
            kind, namespace if kind.namespaced else "", label_selector=selector
        )
        found = [metadata_of(each) for each in listed.items]
        return sorted((each.namespace, each.name) for each in found)

    async def _patch(self, action: Patch) -> str:
        kind = names.kind(action.kind)
        targets = await self._names(kind, action.name, action.namespace, action.selector)
        if not targets:
            raise StepFailedError(f"no {kind.kind} has the labels {action.selector}")
        patch_type = PatchType[action.type.upper()]
        client = self._cluster.client
        for namespace, name in targets:
            if action.subresource == "scale":
                await self._call(
                    partial(client.patch_scale, kind, name, namespace, action.patch, patch_type=patch_type),
                    action.rejected,
                )
                continue
            stored = await self._call(
                partial(
                    client.patch,
                    kind,
                    name,
                    namespace,
                    action.patch,
                    patch_type=patch_type,
                    subresource=action.subresource,
                    field_manager=action.field_manager,
                    force=action.force,
                ),
                action.rejected,
            )
            if stored is not None:
                await self._until_seen(stored)
        return "rejected" if action.rejected else ""

    async def _delete(self, action: Delete) -> str:
        kind = names.kind(action.kind)
        targets = await self._names(kind, action.name, action.namespace, action.selector)
        for namespace, name in targets:
            await self.delete_object(kind, namespace, name, action.grace_period_seconds)
        return ""

    async def delete_object(self, kind: AnyKind, namespace: str, name: str, grace: int | None = None) -> None:
        """Delete an object, and what it owns in the background; it need not exist."""
        client = self._cluster.client
        try:
            await retry_unavailable(
                lambda: client.delete(
                    kind, name, namespace, grace_period_seconds=grace, propagation_policy="Background"
                ),
                clock=self._cluster.clock,
            )
        except StatusError as error:
            if not is_not_found(error):
                raise

    # Processes

    async def _control(self, action: Control) -> str:
        if not action.rejected:
            await self._perform_control(action)
            return ""
        try:
            await self._perform_control(action)
        except ClusterError as error:
            if action.rejected not in str(error):
                raise StepFailedError(f"it fails with another message: {error}") from None
            return "it fails"
        raise StepFailedError(f"{action.component} is ready; expected an error with {action.rejected!r}")

    async def _perform_control(self, action: Control) -> None:
        cluster = self._cluster
        match action.verb:
            case Verb.START:
                await cluster.start(action.component, action.options)
            case Verb.STOP:
                await cluster.stop(action.component, kill=False)
            case Verb.KILL:
                await cluster.stop(action.component, kill=True)
            case Verb.PAUSE:
                await cluster.pause(action.component)
            case Verb.RESUME:
                await cluster.resume(action.component)
            case Verb.RESTART:
                await cluster.restart(action.component, action.options, kill=action.kill)

    # Nodes

    async def _cordon(self, node: str, *, unschedulable: bool) -> None:
        patch = {"spec": {"unschedulable": unschedulable}}
        stored = await self._call(lambda: self._cluster.client.patch(kinds.NODE, node, "", patch))
        if stored is not None:
            await self._until_seen(stored)

    async def _drain(self, action: Drain) -> str:
        """Cordon a node, and evict its pods until none is left."""
        clock = self._cluster.clock
        deadline = clock.monotonic() + action.seconds
        await self._cordon(action.node, unschedulable=True)
        evicted: set[str] = set()
        last = ""
        while remaining := self._pods_on(action.node):
            if clock.monotonic() >= deadline:
                left = ", ".join(pod.metadata.name for pod in remaining)
                raise StepFailedError(f"not drained within {action.seconds:g} s: {left}; {last}".rstrip("; "))
            for pod in remaining:
                if pod.metadata.uid in evicted:
                    continue
                try:
                    await self._cluster.client.evict(pod.metadata.namespace, pod.metadata.name)
                    evicted.add(pod.metadata.uid)
                except StatusError as error:
                    if is_not_found(error):
                        evicted.add(pod.metadata.uid)
                    elif error.code != _TOO_MANY_REQUESTS:
                        raise
                    last = error.message
            await clock.sleep(_POLL_SECONDS)
        return f"{len(evicted)} pods left"

    def _pods_on(self, node: str) -> list[core.Pod]:
        pods = cast("list[core.Pod]", self._world.messages(kinds.POD))
        return [
            pod
            for pod in pods
            if pod.spec.nodeName == node
            and not any(owner.kind == "DaemonSet" for owner in pod.metadata.ownerReferences)
        ]

    def nodes_of(self, group: str) -> list[core.Node]:
        """Return the nodes of a node group, by name."""
        nodes = cast("list[core.Node]", self._world.messages(kinds.NODE))
        found = [node for node in nodes if node.metadata.labels.get(GROUP_LABEL) == group]
        return sorted(found, key=lambda node: node.metadata.name)

    async def _resize_group(self, action: ResizeGroup) -> str:
        before = self.nodes_of(action.group)
        if action.delete:
            if before:
                await self._cluster.delete_nodes(action.group, [node.metadata.name for node in before])
            gone = {node.metadata.uid for node in before}
            await self._until_nodes(
                action, lambda: not any(n.metadata.uid in gone for n in self.nodes_of(action.group)), "gone"
            )
            return ""
        await self._cluster.increase_node_group(action.group, action.increase)
        wanted = len(before) + action.increase
        await self._until_nodes(
            action, lambda: sum(map(_is_usable, self.nodes_of(action.group))) >= wanted, "ready"
        )
        known = {node.metadata.uid for node in before}
        added = [node.metadata.name for node in self.nodes_of(action.group) if node.metadata.uid not in known]
        return ", ".join(added)

    async def _until_nodes(self, action: ResizeGroup, holds: Callable[[], bool], what: str) -> None:
        clock = self._cluster.clock
        deadline = clock.monotonic() + action.seconds
        while action.wait and not holds():
            if clock.monotonic() >= deadline:
                nodes = ", ".join(node.metadata.name for node in self.nodes_of(action.group)) or "no node"
                raise StepFailedError(f"nodes are not {what} within {action.seconds:g} s: {nodes}")
            await clock.sleep(_POLL_SECONDS)


def _is_usable(node: core.Node) -> bool:
    return condition_is(node.status.conditions, "Ready") and not node.spec.taints


def _revision(obj: Message) -> int:
    return int(metadata_of(obj).resourceVersion or 0)
