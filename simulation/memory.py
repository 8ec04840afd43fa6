"""Count the tasks of a simulated process, its open calls, and the entries of its containers.

Two processes that have done the same work hold the same, beside what `_IGNORED` names. So a task that never
ends, a call that stays open, or an entry that no code removes any more is seen without a rule about it.
"""

from __future__ import annotations

import asyncio
import types
from collections import Counter
from collections.abc import Iterable
from typing import Final

from nominee.machinery.wire.values.scalars import Json
from nominee.simulation.containers import OURS, containers
from nominee.simulation.network.call import Exchange
from nominee.simulation.runtime import SimulatedRuntime

PATH: Final = "/debug/memory"
_COUNTED: Final = ("nominee.apiserver.cache.", "nominee.autoscaler.", "nominee.kubelet.")
"""The beginnings of the full names of containers that follow the objects alone: watchers, nodes and groups,
pods and allocations. Elsewhere many depend on what was done before: metrics, histories, shared leases, writes
of which a process waits to see the last."""
_IGNORED: Final = (
    "nominee.apiserver.cache.kind_cache.KindCache._",
    "nominee.autoscaler.planning.node_groups.cluster_state.ClusterStateRegistry._errors_seen.",
    "nominee.autoscaler.planning.node_groups.cluster_state.ClusterStateRegistry._scale_downs.",
    "nominee.autoscaler.planning.node_groups.backoff.",
    "nominee.autoscaler.planning.scale_down.cooldowns.",
    "nominee.autoscaler.planning.snapshot.",
    "nominee.autoscaler.result.",
    "nominee.autoscaler.shell.metrics.",
    "nominee.autoscaler.shell.process.",
    "nominee.autoscaler.state.AutoscalerState.doubtful_taints.",
    "nominee.kubelet.pods.record.",
    "nominee.kubelet.shell.timers.",
)
"""The exceptions: histories, times that pass by themselves, and copies that the lab compares by contents."""

_TIMERS: Final = frozenset({"WorkQueue._wait.<locals>.timer"})
"""The tasks of which there is one while something is to be done later."""


def holdings(runtime: SimulatedRuntime, component: str) -> dict[str, Json]:
    """Return the numbers of a process's tasks by function, of its open calls by method, and of entries.

    Entries are those of all containers that its tasks can reach, by class and attribute; none of a component
    whose containers are not counted.
    """
    network, owner = runtime.transport, runtime.owner
    assert isinstance(network, Exchange), "the processes of a simulation are on its network"
    tasks = network.loop.tasks_of(owner)
    return {
        "tasks": Counter(name for name in map(_function, tasks) if name not in _TIMERS),
        "calls": Counter(call.path.rpartition("/")[2] for call in network.calls if call.client is owner),
        "entries": entries(task.get_coro() for task in tasks) if _is_counted(component) else {},
    }


def _is_counted(component: str) -> bool:
    return any(prefix.startswith(f"{OURS}{component}.") for prefix in _COUNTED)


def _function(task: asyncio.Task[object]) -> str:
    """Return the name of the first function of a task that is not a wrapper of anyio's."""
    coroutine = task.get_coro()
    while isinstance(coroutine, types.CoroutineType) and "/anyio/" in coroutine.cr_code.co_filename:
        if not isinstance(coroutine.cr_await, types.CoroutineType):
            break
        coroutine = coroutine.cr_await
    return str(getattr(coroutine, "__qualname__", ""))


def entries(roots: Iterable[object]) -> Counter[str]:
    """Return how many entries the containers have that are attributes of objects of the product's classes.

    The entries of values, which do not change, are not counted: it is their number that may grow.
    """
    counts = Counter[str]()
    for place, container in containers(roots):
        is_counted = place.full.startswith(_COUNTED) and not place.full.startswith(_IGNORED)
        if is_counted and place.is_whole and not place.is_value:
            counts[place.name] += len(container)
    return counts
