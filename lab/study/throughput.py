"""The scenario of many deferred pods: how many new pods per second the scheduler binds beside them.

The kubelet defers the resizes and is then stopped (SIGSTOP), so that the figures are the scheduler's and
the API server's. The rate without deferred pods is measured before and after the others, and the mean of
both counts: a process that warms up, or a machine that becomes busier meanwhile, then changes both sides
of a ratio.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from nominee.lab.study.results import Row
from nominee.lab.study.settings import CHURN, CHURN_SECONDS, NO_LOAD, NODE_CPU, QUIET, Sizes
from nominee.localcluster.cluster import ClusterError, RunningCluster
from nominee.localcluster.process_usage import cpu_seconds
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.pb import core
from nominee.machinery.client import api_client as client_module
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.resources.pod_resources import is_resize_deferred
from nominee.machinery.runtime.clock import Clock, SystemClock
from nominee.scheduler.framework.resize_preemption import Fit

_NAMESPACE = "default"
_CONCURRENCY = 20
_POLL_SECONDS = 0.02
_WAIT_SECONDS_MAX = 60.0
_DEFER_SECONDS_MAX = 180.0
_SLACK = 50
"""Cpu in milli-units that stays free on a node of deferred pods: less than any of them wants."""
_CHURN_CPU = 10
_KUBELET, _SCHEDULER = "kubelet-0", "scheduler"
T = TypeVar("T")


async def run(directory: Path, sizes: Sizes, fits: Sequence[Fit]) -> list[tuple[Fit, str, Row]]:
    """Return the rates of a running cluster with each load, for each count of the scheduler."""
    async with Throughput.open(directory, sizes, SystemClock()) as measured:
        rates = []
        for fit in fits:
            await measured.restart_scheduler(f"--resize-fit={fit.value}")
            rates += [(fit, load, row) for load, row in await measured.rates()]
        return rates


@dataclass(frozen=True, slots=True)
class _Load:
    """A pod without priority; the cpu is in milli-units. `node` "": the scheduler places it."""

    name: str
    cpu: int
    node: str = ""

    def manifest(self) -> core.Pod:
        """Return the pod."""
        pod = core.Pod()
        pod.metadata.name, pod.metadata.namespace = self.name, _NAMESPACE
        pod.spec.nodeName = self.node
        pod.metadata.annotations["nominee.dev/stop-delay"] = "0ms"
        container = pod.spec.containers.add(name="c", image="app")
        container.resources.requests["cpu"].string = f"{self.cpu}m"
        return pod


class Throughput:
    """Measures the three conditions in one cluster; the deferred pods are on its first nodes."""

    def __init__(self, directory: Path, client: Client, sizes: Sizes, clock: Clock) -> None:
        self._cluster, self._client, self._clock = RunningCluster(directory), client, clock
        self._sizes, self._seeds = sizes, range(sizes.rates)
        self._pods: Informer[core.Pod] = Informer(client, kinds.POD, clock=clock)
        self._pods.add_handler(on_add=self._saw, on_update=lambda _, new: self._saw(new))
        self._bound: dict[str, float] = {}
        """When each new pod was seen bound; 0 is not yet."""
        self._nodes = [f"node-{number}" for number in range(sizes.deferred_nodes)]
        each = sizes.deferred_pods // sizes.deferred_nodes
        self._cpu = (NODE_CPU - _SLACK) // each
        self._deferred = [
            _Load(f"deferred-{node}-{n}", self._cpu, node) for node in self._nodes for n in range(each)
        ]

    @classmethod
    @asynccontextmanager
    async def open(cls, directory: Path, sizes: Sizes, clock: Clock) -> AsyncIterator[Throughput]:
        """Connect to a running cluster; yield when its pods are listed."""
        async with await client_module.connect(directory, user_agent="nominee-study") as client:
            throughput = cls(directory, client, sizes, clock)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(throughput._pods.run)
                await throughput._pods.wait_synced()
                yield throughput
                tasks.cancel_scope.cancel()

    async def restart_scheduler(self, argument: str) -> None:
        """Restart the scheduler with another argument."""
        await anyio.to_thread.run_sync(self._cluster.restart, _SCHEDULER, [argument])

    async def rates(self) -> list[tuple[str, Row]]:
        """Return the rates by load; the deferred pods are deleted at the end."""
        await self._each(self._create, self._deferred)
        names = [pod.name for pod in self._deferred]
        await self._until("the pods run", lambda: all(self._phase(name) == "Running" for name in names))
        churn = [_Load(f"churn-{node}", _CHURN_CPU, node) for node in self._nodes]
        await self._each(self._create, churn)
        await self._until("they are seen", lambda: all(self._phase(pod.name) for pod in churn))
        await self._pause_kubelet()
        before = [await self._measure(seed, NO_LOAD) for seed in self._seeds]
        await self._defer_resizes()
        rates = [(QUIET, await self._measure(seed, QUIET)) for seed in self._seeds]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._churn, churn)
            rates += [(CHURN, await self._measure(seed, CHURN)) for seed in self._seeds]
            tasks.cancel_scope.cancel()
        await self._take_back_resizes()
        after = [await self._measure(seed, NO_LOAD) for seed in self._seeds]
        await self._resume_kubelet()
        await self._delete_and_wait([*names, *(pod.name for pod in churn)])
        return [*((NO_LOAD, each) for each in map(_mean, before, after)), *rates]

    async def _defer_resizes(self) -> None:
        """Request all resizes; stop the kubelet when they are deferred and the scheduler has tried them."""
        await self._resume_kubelet()
        await self._each(self._resize_to(self._cpu + 2 * _SLACK), self._deferred)
        await self._until("the resizes are deferred", lambda: all(self._are_deferred()))
        await self._until("the scheduler has tried them", self._are_parked)
        await self._pause_kubelet()

    async def _take_back_resizes(self) -> None:
        """Request the old sizes; stop the kubelet when no resize is deferred any more."""
        await self._resume_kubelet()
        await self._each(self._resize_to(self._cpu), self._deferred)
        await self._until("no resize is deferred", lambda: not any(self._are_deferred()))
        await self._until("the scheduler has forgotten them", self._is_empty)
        await self._pause_kubelet()

    async def _pause_kubelet(self) -> None:
        await anyio.to_thread.run_sync(self._cluster.pause, _KUBELET)

    async def _resume_kubelet(self) -> None:
        await anyio.to_thread.run_sync(self._cluster.resume, _KUBELET)

    # Pods

    async def _create(self, pod: _Load) -> None:
        await self._client.create(pod.manifest())

    def _resize_to(self, cpu: int) -> Callable[[_Load], Awaitable[object]]:
        """Return a function that patches a pod's subresource `resize` to so much cpu."""
        patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": f"{cpu}m"}}}]}}

        async def resize(pod: _Load) -> None:
            await self._client.patch(kinds.POD, pod.name, _NAMESPACE, patch, subresource="resize")

        return resize

    async def _delete(self, name: str) -> None:
        """Delete a pod without grace; it need not exist."""
        try:
            await self._client.delete(kinds.POD, name, _NAMESPACE, grace_period_seconds=0)
        except StatusError as error:
            if not is_not_found(error):
                raise

    async def _delete_and_wait(self, names: Sequence[str]) -> None:
        await self._each(self._delete, names)
        gone = f"{len(names)} pods are gone"
        await self._until(gone, lambda: not any(self._pods.get(name, _NAMESPACE) for name in names))

    async def _each(self, act: Callable[[T], Awaitable[object]], items: Iterable[T]) -> None:
        """Act on items, at most _CONCURRENCY at once."""
        remaining = iter(items)

        async def worker() -> None:
            for item in remaining:
                await act(item)

        async with anyio.create_task_group() as tasks:
            for _ in range(_CONCURRENCY):
                tasks.start_soon(worker)

    # What is observed

    def _phase(self, name: str) -> str:
        pod = self._pods.get(name, _NAMESPACE)
        return pod.status.phase if pod is not None else ""

    def _are_deferred(self) -> Iterable[bool]:
        pods = (self._pods.get(each.name, _NAMESPACE) for each in self._deferred)
        return (pod is not None and is_resize_deferred(pod) for pod in pods)

    async def _queued(self) -> dict[str, int]:
        """Return the number of pods by queue of the scheduler: active, backoff, unschedulable, gated."""
        queues = await anyio.to_thread.run_sync(self._cluster.get_json, _SCHEDULER, "/debug/queue")
        return {name: len(pods) for name, pods in queues.items() if isinstance(pods, list)}

    async def _are_parked(self) -> bool:
        queued = await self._queued()
        return not queued["active"] and queued["unschedulable"] >= len(self._deferred)

    async def _is_empty(self) -> bool:
        queued = await self._queued()
        return not queued["active"] and not queued["backoff"] and not queued["unschedulable"]

    async def _until(
        self,
        state: str,
        condition: Callable[[], bool | Awaitable[bool]],
        seconds: float = _DEFER_SECONDS_MAX,
    ) -> None:
        """Wait until a condition holds. Raises: ClusterError: it does not within the limit."""
        deadline = self._clock.monotonic() + seconds
        while True:
            observed = condition()
            if await observed if isinstance(observed, Awaitable) else observed:
                return
            if self._clock.monotonic() > deadline:
                raise ClusterError(f"not within {seconds:g} s: {state}")
            await self._clock.sleep(_POLL_SECONDS)

    async def _busy_seconds(self) -> float:
        """Return the processor time of the scheduler so far."""
        processes = await anyio.to_thread.run_sync(self._cluster.processes)
        pid = next(each.pid for each in processes if each.name == _SCHEDULER)
        return (cpu_seconds(pid) or 0.0) if pid is not None else 0.0

    # Measurements

    async def _churn(self, pods: Sequence[_Load]) -> None:
        """Delete and create the small pod of one node of deferred pods after another, until cancelled."""
        number = 0
        began = self._clock.monotonic()
        while True:
            pod = pods[number % len(pods)]
            await self._delete(pod.name)
            await self._create(pod)
            number += 1
            following = began + number * CHURN_SECONDS
            await self._clock.sleep(max(following - self._clock.monotonic(), 0.0))

    async def _measure(self, seed: int, load: str) -> Row:
        """Create new pods of seeded sizes; the time is from the first creation to the last binding."""
        rng = random.Random(seed)
        pods = [
            _Load(f"new-{len(load)}-{seed}-{n}", rng.randrange(1, 20)) for n in range(self._sizes.new_pods)
        ]
        names = [pod.name for pod in pods]
        self._bound = dict.fromkeys(names, 0.0)
        busy, began = await self._busy_seconds(), self._clock.monotonic()
        await self._each(self._create, pods)
        await self._until("all new pods are bound", lambda: all(self._bound.values()), _WAIT_SECONDS_MAX)
        rate = len(pods) / (max(self._bound.values()) - began)
        cpu_ms = (await self._busy_seconds() - busy) * 1000 / len(pods)
        await self._delete_and_wait(names)
        return {"seed": seed, "podsPerSecond": round(rate, 1), "cpuMilliseconds": round(cpu_ms, 3)}

    def _saw(self, pod: core.Pod) -> None:
        """Record when a new pod is first seen bound."""
        if self._bound.get(pod.metadata.name) == 0.0 and pod.spec.nodeName:
            self._bound[pod.metadata.name] = self._clock.monotonic()


def _mean(first: Row, second: Row) -> Row:
    """Return the mean of two measurements with the same seed and load."""
    return {name: (first[name] + second[name]) / 2 if name != "seed" else first[name] for name in first}
