"""Run the scheduler as a process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from nominee.machinery.client.api_client import Client
from nominee.machinery.client.leader_election import Timing
from nominee.machinery.process.component import BadConfiguration, Process
from nominee.machinery.process.leading import run_as_leader
from nominee.scheduler.configuration.config import SchedulerConfig
from nominee.scheduler.configuration.reading import plugin_folders, read_config, read_profiles
from nominee.scheduler.features import RESIZE_PREEMPTION
from nominee.scheduler.framework.interface import Plugin
from nominee.scheduler.framework.resize_preemption import ALPHA, ResizePreemption
from nominee.scheduler.framework.runtime.profile import Profile
from nominee.scheduler.plugin_loader import search_also
from nominee.scheduler.plugins import registry
from nominee.scheduler.shell.metrics.tables import Metrics
from nominee.scheduler.shell.process import debug
from nominee.scheduler.shell.process.wiring import build, check_profiles

LAST_EVENTS_SECONDS_MAX = 1.0  # for events that are not written yet when the process is stopped


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """The command line. `plugins`: `module:Class` each."""

    config_path: str = ""
    plugins: Sequence[str] = ()
    leader_elect: bool | None = None
    simulator_annotations: bool = False
    resize_preemption: ResizePreemption = ALPHA


def read_settings(
    process: Process, settings: SchedulerOptions
) -> tuple[SchedulerConfig, dict[str, type[Plugin]], list[Profile]]:
    """Read the files of the command line: configuration, plugin classes and profiles.

    Raises:
        BadConfiguration: one of them cannot be used.
    """
    config = read_config(settings.config_path)
    search_also(plugin_folders(settings.config_path))
    defaults = registry.default_plugins(process.gates, _resizes(process, settings))
    return config, *read_profiles(config, settings.plugins, defaults)


def check_settings(process: Process, settings: SchedulerOptions) -> None:
    """Check the command line and its files, before any process of the cluster starts.

    Raises:
        BadConfiguration: something of it cannot be used.
    """
    config, classes, profiles = read_settings(process, settings)
    check_profiles(process, config, classes, profiles, _resizes(process, settings))


def _resizes(process: Process, settings: SchedulerOptions) -> ResizePreemption | None:
    return settings.resize_preemption if process.gates.enabled(RESIZE_PREEMPTION) else None


async def run_scheduler(process: Process, settings: SchedulerOptions) -> None:
    """Run until the process is stopped."""
    config, classes, profiles = read_settings(process, settings)
    client = await process.client(user_agent="kube-scheduler")
    parts = build(
        process,
        config,
        classes,
        profiles,
        client,
        Metrics(process.serving.metrics()),
        records=settings.simulator_annotations,
        resize_preemption=settings.resize_preemption,
    )
    debug.serve(process.serving, parts)
    process.serving.health.add("shutdown", process.check_running, ["readyz"])
    process.serving.health.add("sched-handler-sync", parts.informers.check_synced, ["readyz"])
    elects = config.leader_election.leader_elect if settings.leader_elect is None else settings.leader_elect
    async with anyio.create_task_group() as group:
        group.start_soon(parts.informers.run)
        for recorder in parts.recorders:
            group.start_soon(recorder.run)
        process.step = "wait for caches to sync"
        await parts.informers.wait_synced()
        await process.announce()
        if elects:
            group.start_soon(_lead, process, config, client, parts.scheduler.run)
        else:
            group.start_soon(parts.scheduler.run)
        await process.stopping.wait()
        group.cancel_scope.cancel()
    with anyio.move_on_after(LAST_EVENTS_SECONDS_MAX):
        for recorder in parts.recorders:
            await recorder.flush()


async def _lead(process: Process, config: SchedulerConfig, client: Client, lead: Callable[[], Any]) -> None:
    settings = config.leader_election
    try:
        timing = Timing(settings.lease_seconds, settings.renew_deadline_seconds, settings.retry_seconds)
    except ValueError as error:
        raise BadConfiguration(str(error)) from None
    await run_as_leader(
        process,
        client,
        lead,
        name=settings.resource_name,
        namespace=settings.resource_namespace,
        timing=timing,
    )
