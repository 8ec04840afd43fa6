"""Count the tasks of a simulated process, its open calls, and the entries of its containers.

Two processes that have done the same work hold the same, beside what `_IGNORED` names. So a task that never
ends, a call that stays open, or an entry that no code removes any more is seen without a rule about it.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import Context
from typing import Final, TypeAlias

from google.protobuf.message import Message

from nominee.machinery.wire.values.scalars import Json
from nominee.simulation.network.call import Exchange
from nominee.simulation.runtime import SimulatedRuntime

PATH: Final = "/debug/memory"
_CONTAINERS: Final = (dict, list, set, frozenset, deque)
_LEAVES: Final = (
    type,
    types.ModuleType,
    types.CodeType,
    types.BuiltinFunctionType,
    functools._lru_cache_wrapper,
    asyncio.AbstractEventLoop,
    asyncio.Task,
    Context,
    Message,
    str,
    bytes,
    int,
    float,
    type(None),
)
_OURS: Final = "nominee."
_OUTSIDE: Final = ("nominee.simulation.", "nominee.lab.", "nominee.pb.")
"""The modules whose objects are not the process's own."""
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
    "nominee.kubelet.pods.record.",
    "nominee.kubelet.shell.timers.",
)
"""The exceptions: histories, times that pass by themselves, and copies that the lab compares by contents."""

_TIMERS: Final = frozenset({"WorkQueue._wait.<locals>.timer"})
"""The tasks of which there is one while something is to be done later."""

_Visit: TypeAlias = Callable[[object], Iterable[object]]


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
    return any(prefix.startswith(f"{_OURS}{component}.") for prefix in _COUNTED)


def _function(task: asyncio.Task[object]) -> str:
    """Return the name of the first function of a task that is not a wrapper of anyio's."""
    coroutine = task.get_coro()
    while isinstance(coroutine, types.CoroutineType) and "/anyio/" in coroutine.cr_code.co_filename:
        if not isinstance(coroutine.cr_await, types.CoroutineType):
            break
        coroutine = coroutine.cr_await
    return str(getattr(coroutine, "__qualname__", ""))


def entries(roots: Iterable[object]) -> Counter[str]:
    """Return how many entries the containers have that are attributes of objects of the product's classes."""
    counts = Counter[str]()
    visits: dict[type, _Visit] = {}
    waiting = list(roots)
    seen = {id(each) for each in waiting}
    while waiting:
        value = waiting.pop()
        kind = type(value)
        visit = visits.get(kind)
        if visit is None:
            visit = visits[kind] = _visit_of(kind, counts)
        for each in visit(value):
            if id(each) not in seen:
                seen.add(id(each))
                waiting.append(each)
    counts.pop("", None)
    return counts


def _visit_of(kind: type, counts: Counter[str]) -> _Visit:
    """Return the function that visits the references of an object of a type, and counts its entries.

    The entries of values, which do not change, are not counted: it is their number that may grow.
    """
    module = f"{kind.__module__}."
    if issubclass(kind, _LEAVES) or module.startswith(_OUTSIDE):
        return lambda _: ()
    if issubclass(kind, (*_CONTAINERS, tuple)):
        return _elements
    if issubclass(kind, types.FunctionType):
        return lambda value: getattr(value, "__closure__", None) or ()
    if not module.startswith(_OURS):
        return gc.get_referents
    slots = [name for each in kind.__mro__ for name in each.__dict__.get("__slots__", ()) if name[:2] != "__"]
    parameters = getattr(kind, "__dataclass_params__", None)
    is_value = parameters is not None and parameters.frozen
    texts: dict[str, str] = {}

    def visit(value: object) -> Iterator[object]:
        in_slots = ((name, getattr(value, name, None)) for name in slots)
        for name, each in (*getattr(value, "__dict__", {}).items(), *in_slots):
            if isinstance(each, _CONTAINERS):
                if name not in texts:
                    full = f"{module}{kind.__qualname__}.{name}."
                    counts_it = not is_value and full.startswith(_COUNTED) and not full.startswith(_IGNORED)
                    texts[name] = f"{kind.__qualname__}.{name}" if counts_it else ""
                counts[texts[name]] += len(each)
            yield each

    return visit


def _elements(container: object) -> list[object]:
    if isinstance(container, dict):
        return list(container.values())
    assert isinstance(container, Iterable)
    return list(container)
