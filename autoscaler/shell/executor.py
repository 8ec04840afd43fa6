"""Executor: carries out the orders of the core, through the ports, and gives it their results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import anyio

from nominee.autoscaler.orders import (
    CheckPodsOnNode,
    CleanDeletionCandidate,
    CleanToBeDeleted,
    CountEviction,
    CountScaledDownNode,
    DecreaseTargetSize,
    DeleteNodes,
    ErrorType,
    EvictPod,
    Failure,
    IncreaseSize,
    Observe,
    Order,
    Orders,
    ReadCachedNode,
    ReadNode,
    RecordEvents,
    RefreshCloudProvider,
    RunInParallel,
    Sleep,
    StartDeletion,
    TaintDeletionCandidate,
    TaintToBeDeleted,
    WriteStatus,
)
from nominee.autoscaler.planning.objects.observation import Observation
from nominee.autoscaler.shell import failpoints as points
from nominee.autoscaler.shell.ports import Cloud, CloudError, Cluster, Counters
from nominee.machinery.api.errors import FailpointError, StatusError, is_not_found
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.runtime.failpoints import Failpoint

R = TypeVar("R")
Spawn: TypeAlias = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Carries out orders. `spawn` starts a coroutine function beside the loop."""

    cluster: Cluster
    cloud: Cloud
    clock: Clock
    spawn: Spawn
    counters: Counters

    async def run(self, orders: Orders[R]) -> R:
        """Carry out all orders of a generator; return the value that it returns."""
        result: object = None
        while True:
            try:
                order = orders.send(result)
            except StopIteration as end:
                value: R = end.value
                return value
            result = await self.carry_out(order)

    async def carry_out(self, order: Order[Any]) -> object:
        """Carry out one order; return its result."""
        cluster, cloud = self.cluster, self.cloud
        match order:
            case Observe():
                return await _attempt(self._observe, points.LOOP_BEFORE)
            case RefreshCloudProvider(nodes):
                return await _attempt(partial(cloud.refresh, nodes))
            case ReadNode(node):
                hits = points.RECHECK_BEFORE, points.RECHECK_AFTER
                return await _attempt(partial(cluster.read_node, node), *hits, node=node)
            case ReadCachedNode(node):
                return next((each for each in cluster.observe().nodes if each.metadata.name == node), None)
            case CheckPodsOnNode(node, candidates):
                return await _attempt(partial(self._pods_on_node, node, candidates))
            case IncreaseSize(group, delta):
                hits = points.SCALE_UP_BEFORE, points.SCALE_UP_AFTER
                return await _attempt(partial(cloud.increase, group, delta), *hits, group=group, delta=delta)
            case DecreaseTargetSize(group, delta):
                return await _attempt(partial(cloud.decrease_target, group, delta))
            case DeleteNodes(group, nodes):
                hits, names = (points.DELETE_BEFORE, points.DELETE_AFTER), ",".join(nodes)
                return await _attempt(
                    partial(cloud.delete_nodes, group, nodes), *hits, node=names, group=group
                )
            case TaintToBeDeleted(node):
                hits, now = (points.TAINT_BEFORE, points.TAINT_AFTER), self.clock.now()
                return await _attempt(partial(cluster.taint_to_be_deleted, node, now), *hits, node=node)
            case CleanToBeDeleted(node):
                before = points.UNTAINT_BEFORE
                return await _attempt(partial(cluster.clean_to_be_deleted, node), before, node=node)
            case TaintDeletionCandidate(node, since):
                return await _attempt(partial(cluster.taint_deletion_candidate, node, since))
            case CleanDeletionCandidate(node):
                return await _attempt(partial(cluster.clean_deletion_candidate, node))
            case EvictPod(pod, grace):
                hits, key = (points.EVICT_BEFORE, points.EVICT_AFTER), str(key_of(pod))
                return await _attempt(partial(cluster.evict, pod, grace), *hits, pod=key)
            case WriteStatus(document, now):
                return await _attempt(partial(cluster.write_status, document, now))
            case RecordEvents(events):
                cluster.record(events)
            case CountScaledDownNode(node, drain):
                self.counters.scaled_down_node(node, drain=drain)
            case CountEviction(succeeded):
                self.counters.evicted_pod(succeeded=succeeded)
            case Sleep(seconds):
                await self.clock.sleep(seconds)
            case RunInParallel(parts):
                return await self._run_in_parallel(parts)
            case StartDeletion(deletion=deletion):
                self.spawn(partial(self.run, deletion))
            case _:
                raise AssertionError(f"unknown order {order!r}")
        return None

    async def _observe(self) -> Observation:
        return self.cluster.observe()

    async def _pods_on_node(self, node: str, candidates: tuple[core.Pod, ...]) -> tuple[core.Pod, ...]:
        return tuple([pod for pod in candidates if await self.cluster.is_on_node(pod, node)])

    async def _run_in_parallel(self, parts: tuple[Orders[Any], ...]) -> tuple[object, ...]:
        results: list[object] = [None] * len(parts)

        async def run(index: int, part: Orders[Any]) -> None:
            results[index] = await self.run(part)

        async with anyio.create_task_group() as tasks:
            for index, part in enumerate(parts):
                tasks.start_soon(run, index, part)
        return tuple(results)


async def _attempt(
    action: Callable[[], Awaitable[R]],
    before: Failpoint | None = None,
    after: Failpoint | None = None,
    **context: object,
) -> R | Failure:
    """Perform an action between its failpoints; return its result, or how it failed."""
    try:
        if before is not None:
            await before.hit(**context)
        result = await action()
        if after is not None:
            await after.hit(**context)
    except CloudError as error:
        return Failure(ErrorType.CLOUD_PROVIDER, str(error))
    except StatusError as error:
        return Failure(ErrorType.API_CALL, str(error), is_not_found(error))
    except FailpointError as error:
        return Failure(ErrorType.INTERNAL, str(error))
    return result
