"""Runs etcd, the API server and the controllers, and waits for conditions of objects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.kinds import Kind, M
from nominee.machinery.api.pb import core, events
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.runtime.clock import SystemClock, rfc3339
from tests.support import retries
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

T = TypeVar("T")
QUICK = (
    "--node-monitor-period", "200ms", "--node-monitor-grace-period", "1s",
    "--terminated-pod-gc-period", "200ms", "--pod-gc-quarantine", "500ms",
)  # fmt: skip


@dataclass
class Lab:
    """A running cluster without kubelets and scheduler, which the test replaces."""

    cluster: Cluster
    client: Client

    async def create(self, *objects: M) -> M:
        """Create objects in order; return the last one as stored."""
        made = objects[-1]
        for obj in objects:
            made = await retries.create(self.client, obj)
        return made

    async def get(self, kind: Kind[M], name: str, namespace: str = "default") -> M | None:
        try:
            return await retry_unavailable(
                lambda: self.client.get(kind, name, namespace if kind.namespaced else "")
            )
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    async def object(self, kind: Kind[M], name: str, good: Callable[[M], bool]) -> M:
        """Wait until the object exists and `good` holds, and return it."""
        found = await eventually(lambda: self.get(kind, name), lambda obj: obj is not None and good(obj))
        assert found is not None
        return found

    async def gone(self, kind: Kind[Any], name: str) -> None:
        await eventually(lambda: self.get(kind, name), lambda obj: obj is None)

    async def all(self, kind: Kind[M]) -> list[M]:
        return list((await retry_unavailable(lambda: self.client.list(kind))).items)

    async def listed(self, kind: Kind[M], good: Callable[[list[M]], bool]) -> list[M]:
        """Wait until `good` holds for all objects of a kind, and return them."""
        return await eventually(lambda: self.all(kind), good)

    async def event(self, reason: str, name: str, note: str = "") -> events.Event:
        """Wait for an event about an object with a reason, and with `note` in its note."""

        def of(found: list[events.Event]) -> list[events.Event]:
            about = [e for e in found if e.reason == reason and e.regarding.name == name]
            return [e for e in about if note in e.note]

        return of(await self.listed(kinds.EVENTS_EVENT, lambda found: bool(of(found))))[0]

    async def run_pod(self, pod: core.Pod, node: str, *, ready: bool = True) -> core.Pod:
        """Bind a pod and report it as running, as scheduler and kubelet do."""
        await self.client.bind(pod.metadata.namespace, pod.metadata.name, node)
        status: dict[str, Any] = {"phase": "Running"}
        if ready:
            now = rfc3339(SystemClock().now())
            status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": now}]
        return await self.client.patch(
            kinds.POD, pod.metadata.name, pod.metadata.namespace, {"status": status}, subresource="status"
        )

    def arm(self, point: str, action: str) -> None:
        """Arm a failpoint of the running controllers."""
        self.cluster.failpoint("controllers", point, action)


@asynccontextmanager
async def running(cluster: Cluster, *arguments: str) -> AsyncIterator[Lab]:
    """Start a lab with the controllers' quick settings, and these arguments."""
    cluster.arguments("controllers", *QUICK, *arguments)
    await cluster.start("etcd", "apiserver", "controllers")
    async with cluster.client() as client:
        yield Lab(cluster, client)
