"""A scheduler over an API server in memory."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
from prometheus_client import CollectorRegistry

from nominee.machinery.client.api_client import Client
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.process.component import Process
from nominee.machinery.runtime import failpoints
from nominee.scheduler.configuration.config import SchedulerConfig
from nominee.scheduler.configuration.profiles import Named, PluginSet, ProfileConfig, build_profile
from nominee.scheduler.features import RESIZE_PREEMPTION
from nominee.scheduler.framework.interface import BindPlugin, Plugin
from nominee.scheduler.framework.resize_preemption import ALPHA, ResizePreemption
from nominee.scheduler.plugins import registry
from nominee.scheduler.shell.metrics.tables import Metrics
from nominee.scheduler.shell.process.wiring import Parts, build
from tests.scheduler.builders import VERSION
from tests.support.fake_api import FakeApi


@asynccontextmanager
async def running(
    api: FakeApi,
    *plugins: Plugin,
    version: Version = VERSION,
    gates: Mapping[str, bool] | None = None,
    config: SchedulerConfig | None = None,
    records: bool = False,
    resize_preemption: ResizePreemption = ALPHA,
    profiles: Sequence[str] = ("default-scheduler",),
) -> AsyncIterator[Parts]:
    """The whole scheduler, synced and scheduling; `plugins` at every point that they implement."""
    switched = Gates("scheduler", version, gates)
    process = Process("scheduler", version=version, gates=switched, rng=random.Random(1))
    classes: dict[str, Any] = dict(registry.IN_TREE)
    for plugin in plugins:
        classes[plugin.name] = type(plugin)
    more = PluginSet(tuple(Named(plugin.name) for plugin in plugins))
    config = config or SchedulerConfig()
    binders = tuple(Named(p.name) for p in plugins if isinstance(p, BindPlugin))
    first = PluginSet((*binders, Named("DefaultBinder")))
    written = [ProfileConfig(name, plugins={"multiPoint": more, "bind": first}) for name in profiles]
    resizes = resize_preemption if switched.enabled(RESIZE_PREEMPTION) else None
    defaults = registry.default_plugins(switched, resizes)
    built = [build_profile(each, classes, defaults) for each in written]
    for plugin in plugins:
        classes[plugin.name] = lambda args, handle, plugin=plugin: plugin
    metrics = Metrics(CollectorRegistry())
    parts = build(
        process, config, classes, built, cast("Client", api), metrics, records=records,
        resize_preemption=resize_preemption,
    )  # fmt: skip
    async with anyio.create_task_group() as group:
        group.start_soon(parts.informers.run)
        for recorder in parts.recorders:
            group.start_soon(recorder.run)
        await parts.informers.wait_synced()
        group.start_soon(parts.scheduler.run)
        yield parts
        group.cancel_scope.cancel()


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.REGISTRY.disarm_all()
