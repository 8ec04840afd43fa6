"""Pods, and waiting for them, on a cluster of etcd, API server and kubelet."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from nominee.machinery.api import kinds, objects
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.client.watches.informer import Informer
from tests.support import retries
from tests.support.cluster import WAIT_SECONDS_MAX, Cluster
from tests.support.eventually import eventually

KUBELET = "kubelet-0"


@dataclass
class History:
    """Every state of every pod of `default`, so that a test that looks late misses none."""

    states: dict[str, list[core.Pod]] = field(default_factory=dict)
    events: list[core.Pod] = field(default_factory=list)
    """The states of all pods in the order of the watch."""
    looked_at: dict[str, int] = field(default_factory=dict)
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def note(self, seen: core.Pod) -> None:
        self.states.setdefault(seen.metadata.name, []).append(seen)
        self.events.append(seen)
        self._changed.set()
        self._changed = anyio.Event()

    async def next(self, name: str, condition: Callable[[core.Pod], bool]) -> core.Pod:
        """The first state for which the condition holds, from the one that was given out last."""
        while True:
            states = self.states.get(name, [])
            for index in range(self.looked_at.get(name, 0), len(states)):
                if condition(states[index]):
                    self.looked_at[name] = index
                    return states[index]
            await self._changed.wait()


@dataclass
class Lab:
    """A running cluster with one kubelet process."""

    cluster: Cluster
    client: Client
    history: History

    async def create(self, pod: core.Pod, node: str = "node-0") -> core.Pod:
        """Creates a pod and binds it."""
        made = await retries.create(self.client, pod)
        await retries.bind(self.client, "default", pod.metadata.name, node)
        return made

    async def get(self, name: str) -> core.Pod | None:
        try:
            return await retry_unavailable(lambda: self.client.get(kinds.POD, name, "default"))
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    async def pod(self, name: str, condition: Callable[[core.Pod], bool]) -> core.Pod:
        """The pod as it was when the condition held first, after what this gave out before."""
        with anyio.move_on_after(WAIT_SECONDS_MAX):
            return await self.history.next(name, condition)
        raise AssertionError(f"pod {name} never came to it: {self.history.states.get(name, [])[-1:]}")

    async def event_reasons(self, name: str, *, until: str) -> list[str]:
        """Return the reasons of a pod's events in their order, as soon as one of them is `until`."""

        async def reasons() -> list[str]:
            found = (await self.client.list(kinds.EVENT, "default")).items
            # Their names end in the time, to the microsecond; their timestamps have seconds only.
            ordered = sorted(found, key=lambda event: event.metadata.name)
            return [event.reason for event in ordered if event.involvedObject.name == name]

        return await eventually(reasons, lambda seen: until in seen)

    async def gone(self, name: str) -> None:
        await eventually(lambda: self.get(name), lambda pod: pod is None)

    async def resize(
        self, name: str, container: str = "main", *, limits: Mapping[str, str] = {}, **requests: str
    ) -> None:
        resources = {"requests": requests, "limits": dict(limits)}
        body = {"spec": {"containers": [{"name": container, "resources": resources}]}}
        await self.client.patch(kinds.POD, name, "default", body, subresource="resize")

    async def restart_kubelet(self, *, kill: bool = True) -> None:
        if kill:
            self.cluster.kill(KUBELET)
        else:
            await self.cluster.stop(KUBELET)
        await self.cluster.start(KUBELET)

    def failpoint(self, name: str, action: str, *, process: str = KUBELET) -> None:
        self.cluster.failpoint(process, name, action)

    async def waits_at(self, name: str, *, process: str = KUBELET) -> None:
        """Return as soon as a step of the process is held up at the failpoint."""

        def waiting() -> bool:
            return bool(json.loads(self.cluster.ask(process, f"/failpoints/{name}").body)["waiting"])

        await eventually(waiting, explain=lambda: f"{process} never came to {name}")

    def allocations(self, node: str = "node-0") -> dict[str, Any]:
        answer = self.cluster.ask(KUBELET, f"/debug/allocations?node={node}")
        document: dict[str, Any] = json.loads(answer.body)
        pods: dict[str, Any] = document[node]["pods"]
        return pods


@asynccontextmanager
async def lab(
    cluster: Cluster, *arguments: str, nodes: int = 1, apiserver: Sequence[str] = ()
) -> AsyncIterator[Lab]:
    """Etcd, API server and a kubelet with these arguments."""
    cluster.arguments("apiserver", "--disable-admission-plugins", "TaintNodesByCondition", *apiserver)
    cluster.arguments(KUBELET, "--nodes", str(nodes), *arguments)
    await cluster.start("etcd", "apiserver", KUBELET)
    async with cluster.client() as client, anyio.create_task_group() as tasks:
        history, pods = History(), Informer(client, kinds.POD, namespace="default")
        pods.add_handler(on_add=history.note, on_update=lambda _old, new: history.note(new))
        tasks.start_soon(pods.run)
        await pods.wait_synced()
        yield Lab(cluster, client, history)
        tasks.cancel_scope.cancel()


def pod(name: str, requests: Mapping[str, str], *, limits: Mapping[str, str] = {}, **spec: Any) -> core.Pod:
    """A pod with one container `main`."""
    made = core.Pod()
    made.metadata.name, made.metadata.namespace = name, "default"
    container = made.spec.containers.add(name="main", image="registry.k8s.io/pause:3.10")
    for key, text in requests.items():
        container.resources.requests[key].string = text
    for key, text in limits.items():
        container.resources.limits[key].string = text
    for key, value in spec.items():
        setattr(made.spec, key, value)
    return made


def is_ready(seen: core.Pod) -> bool:
    return objects.condition_is(seen.status.conditions, "Ready")


def condition(seen: core.Pod, name: str) -> core.PodCondition | None:
    return objects.get_condition(seen.status.conditions, name)


def generation(seen: core.Pod, name: str) -> int | None:
    """The observedGeneration of a condition; None without that condition."""
    found = condition(seen, name)
    return None if found is None else found.observedGeneration


def in_force(seen: core.Pod) -> dict[str, str]:
    """The requests that the container has."""
    resources = seen.status.containerStatuses[0].resources
    return {name: quantity.string for name, quantity in resources.requests.items()}


def runs(seen: core.Pod) -> tuple[str, int, int]:
    """The identity of one run of a container: id, restarts, start."""
    row = seen.status.containerStatuses[0]
    return row.containerID, row.restartCount, row.state.running.startedAt.seconds
