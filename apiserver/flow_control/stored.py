"""The stored configuration: created when it is missing, followed when it changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import anyio

from nominee.apiserver.flow_control.seats import Stored
from nominee.apiserver.kinds.flowcontrol import bootstrap
from nominee.apiserver.objects.requests import Update, create_if_missing
from nominee.apiserver.objects.watcher import EventType
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import FLOW_SCHEMA, KINDS, PRIORITY_LEVEL_CONFIGURATION, AnyKind
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import flowcontrol
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import to_time

if TYPE_CHECKING:
    from nominee.apiserver.cache.watch_cache import WatchCache
    from nominee.apiserver.flow_control.controller import FlowControl
    from nominee.apiserver.objects.requests import RegistryAPI
    from nominee.machinery.runtime.clock import Clock

_log = logs.get()
_AGAIN_SECONDS = 1.0
_SAMPLE = 8
DANGLING = "Dangling"


async def run(control: FlowControl, registry: RegistryAPI, cache: WatchCache, clock: Clock) -> None:
    """Create missing objects, follow the stored ones, and lend seats, until cancelled.

    Until it has written and read, the built-in configuration is in force.
    """
    async with anyio.create_task_group() as group:
        group.start_soon(control.rebalance)
        while not await _ensured(registry, cache):
            await clock.sleep(_AGAIN_SECONDS)
        for kind in (PRIORITY_LEVEL_CONFIGURATION, FLOW_SCHEMA):
            group.start_soon(_follow, control, registry, cache, clock, kind)


def sizes(cache: WatchCache) -> Callable[[str, str], Stored]:
    """Return a function for the number and mean size of a resource's cached objects.

    The mean is that of the first few objects.
    """
    by_resource = {(kind.group, kind.plural): kind for kind in KINDS}

    def stored_of(group: str, resource: str) -> Stored:
        kind = by_resource.get((group, resource))
        if kind is None:
            return Stored(0, 0)
        found = cache.of(kind)
        some = [len(each.data) for each in islice(found.in_order(), _SAMPLE)]
        return Stored(len(found), sum(some) // len(some) if some else 0)

    return stored_of


async def _ensured(registry: RegistryAPI, cache: WatchCache) -> bool:
    """Create the missing mandatory and suggested objects; return False when that failed."""
    wanted: list[tuple[AnyKind, list[Any]]] = [
        (PRIORITY_LEVEL_CONFIGURATION, [*bootstrap.mandatory_levels(), *bootstrap.suggested_levels()]),
        (FLOW_SCHEMA, [*bootstrap.mandatory_schemas(), *bootstrap.suggested_schemas()]),
    ]
    try:
        for kind, objects in wanted:
            for obj in objects:
                if cache.get(kind, "", obj.metadata.name) is None:
                    await create_if_missing(registry, obj)
    except StatusError as error:
        _log.warning("flow control's objects are not written yet", error=str(error))
        return False
    return True


async def _follow(
    control: FlowControl, registry: RegistryAPI, cache: WatchCache, clock: Clock, kind: AnyKind
) -> None:
    while True:
        try:
            async with cache.watch(kind) as watcher:
                async for batch in watcher:
                    if any(event.type is not EventType.BOOKMARK for event in batch):
                        schemas = [found.message for found in cache.list(FLOW_SCHEMA)]
                        levels = [found.message for found in cache.list(PRIORITY_LEVEL_CONFIGURATION)]
                        control.configure(schemas, levels)
                        await _write_conditions(
                            registry, schemas, {level.metadata.name for level in levels}, clock
                        )
        except StatusError as error:
            # The server stops, or the watch cache listed again.
            _log.debug("the watch of flow control's objects ended", kind=kind.kind, error=str(error))
        await clock.sleep(_AGAIN_SECONDS)


async def _write_conditions(
    registry: RegistryAPI, schemas: Iterable[flowcontrol.FlowSchema], levels: Collection[str], clock: Clock
) -> None:
    """Set each schema's Dangling condition; a failed write is retried later."""
    for schema in schemas:
        wanted = dangling(schema, levels)
        found = next((each for each in schema.status.conditions if each.type == DANGLING), None)
        if found is not None and (found.status, found.reason) == (wanted.status, wanted.reason):
            continue
        wanted.lastTransitionTime.CopyFrom(to_time(clock.now()))
        wanted.lastTransitionTime.nanos = 0
        changed = copy_of(schema)
        others = [each for each in schema.status.conditions if each.type != DANGLING]
        changed.status.ClearField("conditions")
        changed.status.conditions.extend([*others, wanted])
        try:
            await registry.perform(Update(FLOW_SCHEMA, "", schema.metadata.name, "status", changed))
        except StatusError as error:
            _log.debug(
                "a flow schema's condition is not written", schema=schema.metadata.name, error=str(error)
            )


def dangling(schema: flowcontrol.FlowSchema, levels: Collection[str]) -> flowcontrol.FlowSchemaCondition:
    """Return a schema's Dangling condition, without its time."""
    level = schema.spec.priorityLevelConfiguration.name
    text = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
    if level in levels:
        return flowcontrol.FlowSchemaCondition(
            type=DANGLING, status="False", reason="Found", message=f"{text} and it exists"
        )
    return flowcontrol.FlowSchemaCondition(
        type=DANGLING, status="True", reason="NotFound", message=f"{text} but there is no such object"
    )
