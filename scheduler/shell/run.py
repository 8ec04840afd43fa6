"""Puts the scheduler together and runs it as a process."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from machinery.client import Client
from machinery.leader_election import LeaderElector, LeadershipLostError, Timing
from machinery.objects import ObjectKey
from machinery.pb import core
from machinery.process import BadConfiguration, Fatal, Process
from machinery.series_recorder import SeriesRecorder
from machinery.versions import Version
from scheduler.config import SchedulerConfig
from scheduler.config_reading import plugin_folders, read_config, read_profiles
from scheduler.event_handlers import EventHandlers
from scheduler.extenders.client import ExtenderClient
from scheduler.extenders.search import EXTENDER_NAME
from scheduler.extenders.transport import TransportError
from scheduler.framework.cache import Cache
from scheduler.framework.events import ActionType, EventResource
from scheduler.framework.instrumentation import PluginHooks
from scheduler.framework.interface import Plugin, PreEnqueuePlugin
from scheduler.framework.nominator import Nominator
from scheduler.framework.pod_requests import ResourceOptions
from scheduler.framework.profile import ArgumentError, Profile
from scheduler.framework.runtime import Environment, Framework, PluginConfigError
from scheduler.framework.scheduling_groups import SchedulingGroups
from scheduler.framework.snapshot import Snapshot
from scheduler.framework.types import PodInfo
from scheduler.intended import IntendedNominations
from scheduler.plugin_loader import search_also
from scheduler.plugins import registry
from scheduler.plugins.default_preemption import DefaultPreemption
from scheduler.queue.backoff import Backoff
from scheduler.queue.hints import build_hint_map
from scheduler.queue.scheduling_queue import PrioritySchedulingQueue, QueueProfile
from scheduler.shell import debug
from scheduler.shell.attempt import AttemptHooks
from scheduler.shell.informers import Informers
from scheduler.shell.measured_events import MeasuredQueue, timed_ask
from scheduler.shell.metrics import (
    CACHE_SIZE,
    GOROUTINES,
    IN_FLIGHT_EVENTS,
    INCOMING_PODS,
    PENDING_PODS,
    PLUGIN_EVALUATIONS,
    PREEMPTION_ATTEMPTS,
    SAMPLED_EVERY,
    UNSCHEDULABLE_PODS,
    Metrics,
)
from scheduler.shell.recorder import ProfileRecorder
from scheduler.shell.scheduler import CALLS_MAX, QueueClock, Scheduler
from scheduler.shell.simulator_annotations import ResultRecorder, ResultWriter
from scheduler.shell.status_writer import StatusWriter
from scheduler.shell.timing import PluginTimer, PointTimer
from scheduler.shell.waiting_pods import WaitingPods

KEEPS_NOMINATIONS = Version(1, 34)  # the one release in which a failure did not clear a nomination
STOPS_PRE_BINDING_SINCE = Version(1, 36)
LAST_EVENTS_SECONDS_MAX = 1.0  # for what was not told yet when the process is stopped
OBSERVED_GENERATION_SINCE = Version(1, 34)
EXPLAINED_NODES = 100  # named in an explanation unless the caller wants another number
EXPLAINED_NODES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says. `plugins`: `module:Class` each."""

    config_path: str = ""
    plugins: Sequence[str] = ()
    leader_elect: bool | None = None
    simulator_annotations: bool = False


def read_settings(
    process: Process, settings: Settings
) -> tuple[SchedulerConfig, dict[str, type[Plugin]], list[Profile]]:
    """Read what the command line names: configuration, plugin classes and profiles.

    Raises:
        BadConfiguration: one of them cannot be.
    """
    config = read_config(settings.config_path)
    search_also(plugin_folders(settings.config_path))
    return config, *read_profiles(config, settings.plugins, registry.default_plugins(process.gates))


async def run_scheduler(process: Process, settings: Settings) -> None:
    """The process's body."""
    config, classes, profiles = read_settings(process, settings)
    client = await process.client(user_agent="kube-scheduler")
    parts = Parts(
        process, config, classes, profiles, client, Metrics(), records=settings.simulator_annotations
    )
    elects = config.leader_election.leader_elect if settings.leader_elect is None else settings.leader_elect
    process.serving.health.add("shutdown", process.check_running, ["readyz"])
    process.serving.health.add("sched-handler-sync", parts.informers.check_synced, ["readyz"])
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
    elector = LeaderElector(
        client,
        name=settings.resource_name,
        namespace=settings.resource_namespace,
        identity=f"{socket.gethostname()}_{process.name}_{os.getpid()}",
        timing=timing,
        clock=process.clock,
        rng=process.rng,
    )
    process.serving.health.add("leaderElection", elector.check_renewed, ["healthz", "readyz"])
    try:
        await elector.run(lead)
    except LeadershipLostError as error:
        raise Fatal(f"leaderelection lost: {error}") from None


class Parts:
    """Everything a scheduler consists of, connected."""

    def __init__(
        self,
        process: Process,
        config: SchedulerConfig,
        classes: Mapping[str, type[Plugin]],
        profiles: Sequence[Profile],
        client: Client,
        metrics: Metrics,
        *,
        records: bool = False,
    ) -> None:
        """`records`: what plugins say is written into the pods' annotations."""
        gates, clock = process.gates, process.clock
        self.now = QueueClock(clock)
        groups_pods = gates.enabled("GenericWorkload")
        self.informers = Informers(client, clock, groups_pods=groups_pods)
        self.cache = Cache()
        self.nominator = Nominator(self._is_pending)
        self.groups = SchedulingGroups(self.cache.is_assumed)
        self.waiting = WaitingPods(clock)
        self.metrics = metrics
        options = ResourceOptions(
            in_place_resize=gates.enabled("InPlacePodVerticalScaling"),
            pod_level=gates.enabled("PodLevelResources"),
            pod_level_resize=gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
        )
        self.recorders = [SeriesRecorder(client, profile.name, clock=clock) for profile in profiles]
        by_profile = {
            profile.name: ProfileRecorder(recorder)
            for profile, recorder in zip(profiles, self.recorders, strict=True)
        }
        snapshot = Snapshot()
        self.frameworks: dict[str, Framework] = {}
        self._timers: dict[str, PointTimer] = {}
        hooks: dict[str, AttemptHooks] = {}
        timer = PluginTimer(metrics.plugin_seconds.of)
        for profile in profiles:
            environment = Environment(
                snapshot=snapshot,
                nominator=self.nominator,
                scheduling_groups=self.groups,
                gates=gates,
                version=process.version,
                clock=clock,
                rng=process.rng,
                listers=self.informers.listers,
                client=client,
                recorder=by_profile[profile.name],
                waiting_pod=lambda uid: self.scheduler.bindings.stoppable(uid),
                activate=lambda pods: self.queue.activate(pods.values(), self.now()),
                note=self.metrics.note,
            )
            self._timers[profile.name] = PointTimer(metrics.extension_point_seconds, profile.name)
            framework = _framework(profile, classes, environment, self._timers[profile.name])
            self.frameworks[profile.name] = framework
            recorder = (ResultRecorder(framework),) if records else ()
            hooks[profile.name] = AttemptHooks(
                PluginHooks.of(*recorder), PluginHooks.of(timer, *recorder), SAMPLED_EVERY
            )
        self.queue = self._queue(config, process)
        self._intended = intended = IntendedNominations()
        self.handlers = EventHandlers(
            MeasuredQueue(self.queue, self.metrics.event_seconds, clock),
            self.cache,
            is_ours=self.frameworks.__contains__,
            pod_info=functools.partial(PodInfo, options=options),
            reject_waiting=self.waiting.reject,
            report=lambda text: process.log.warning("Scheduler cache", error=text),
            see=intended.see,
            groups=self.groups,
            gangs=gates.enabled("GangScheduling"),
        )
        slots = anyio.Semaphore(CALLS_MAX, fast_acquire=True)
        writer = StatusWriter(
            client,
            clock,
            anyio.Semaphore(CALLS_MAX, fast_acquire=True),
            intended,
            cached=self._cached,
            resync=lambda old, new: self.handlers.nomination_settled(old, new, self.now()),
            observed_generation=process.version >= OBSERVED_GENERATION_SINCE,
        )
        nominates = gates.enabled("NominatedNodeNameForExpectation")
        self.scheduler = Scheduler(
            frameworks=self.frameworks,
            recorders=by_profile,
            hooks=hooks,
            queue=self.queue,
            cache=self.cache,
            waiting=self.waiting,
            writer=writer,
            metrics=self.metrics,
            clock=clock,
            queue_now=self.now,
            rng=process.rng,
            cached=self._seen,
            percentage_of_nodes_to_score=config.percentage_of_nodes_to_score,
            nominates=nominates,
            stops_pre_binding=process.version >= STOPS_PRE_BINDING_SINCE,
            keeps_nominations=nominates and process.version == KEEPS_NOMINATIONS,
            binding_slots=slots,
            groups=self.groups,
            groups_pods=groups_pods,
            extenders=_extender_client(config),
            results=ResultWriter(client, clock, self._cached) if records else None,
        )
        self.informers.connect(
            self.handlers, self.now, self._actions(), lambda pod: writer.forget(pod.metadata.uid)
        )
        self.metrics.read(
            {
                PENDING_PODS: self.queue.counts,
                INCOMING_PODS: lambda: self.queue.incoming,
                CACHE_SIZE: self._cache_sizes,
                UNSCHEDULABLE_PODS: self.queue.refused,
                IN_FLIGHT_EVENTS: self.queue.kept_events,
                GOROUTINES: self.scheduler.tasks,
                PLUGIN_EVALUATIONS: self._evaluations,
                PREEMPTION_ATTEMPTS: self._preemptions,
            }
        )
        self._pod_info = functools.partial(PodInfo, options=options)
        process.serving.add_route("/debug/queue", self._show_queue)
        process.serving.add_route("/debug/explain", self._show_explanation)

    def _queue(self, config: SchedulerConfig, process: Process) -> PrioritySchedulingQueue:
        hints = process.gates.enabled("SchedulerQueueingHints")
        hears_all = (EXTENDER_NAME,) if config.extenders else ()
        profiles = {
            name: QueueProfile(
                tuple(p for p in framework.pre_enqueue_plugins if isinstance(p, PreEnqueuePlugin)),
                build_hint_map(
                    _rejecting(framework),
                    hints_enabled=hints,
                    hears_all=hears_all,
                    asks=timed_ask(self.metrics.hint_seconds, process.clock),
                ),
            )
            for name, framework in self.frameworks.items()
        }
        self._hints = [profile.hints for profile in profiles.values()]
        return PrioritySchedulingQueue(
            profiles=profiles,
            sort=next(iter(self.frameworks.values())).queue_sort_plugin,
            nominator=self.nominator,
            backoff=Backoff(
                config.pod_initial_backoff_seconds,
                config.pod_max_backoff_seconds,
                process.gates.enabled("SchedulerPopFromBackoffQ"),
            ),
            hints_enabled=hints,
            wake=lambda: self.scheduler.wake(),
        )

    def _is_pending(self, info: PodInfo) -> bool:
        pod = self._cached(info.key)
        return pod is not None and pod.metadata.uid == info.uid and not pod.spec.nodeName

    def _cached(self, key: ObjectKey) -> core.Pod | None:
        return self.informers.pods.get(key.name, key.namespace)

    def _seen(self, key: ObjectKey) -> core.Pod | None:
        pod = self._cached(key)
        return None if pod is None else self._intended.see(pod)

    def _actions(self) -> dict[EventResource, ActionType]:
        union: dict[EventResource, ActionType] = {}
        for hints in self._hints:
            for resource, action in hints.actions_by_resource().items():
                union[resource] = union.get(resource, ActionType(0)) | action
        return union

    def _evaluations(self) -> Mapping[tuple[str, str, str], int]:
        return {
            (plugin, point, name): count
            for name, framework in self.frameworks.items()
            for (plugin, point), count in self._timers[name].evaluations(framework).items()
        }

    def _preemptions(self) -> Mapping[tuple[str, ...], float]:
        plugins = (framework.plugins.get(DefaultPreemption.name) for framework in self.frameworks.values())
        return {(): sum(plugin.attempts for plugin in plugins if isinstance(plugin, DefaultPreemption))}

    def _cache_sizes(self) -> Mapping[str, int]:
        cache = self.cache
        return {
            "nodes": cache.node_count,
            "pods": cache.pod_count,
            "assumed_pods": len(cache.assumed_pods()),
        }

    async def _show_queue(self, request: Any) -> Any:
        from starlette.responses import JSONResponse

        return JSONResponse(debug.queues(self.scheduler))

    async def _show_explanation(self, request: Any) -> Any:
        """`?pod=NS/NAME[&nodes=N]`"""
        from starlette.responses import JSONResponse

        namespace, _, name = request.query_params.get("pod", "").partition("/")
        nodes = request.query_params.get("nodes", str(EXPLAINED_NODES))
        if not namespace or not name or not nodes.isdecimal():
            return JSONResponse({"message": "expected ?pod=NAMESPACE/NAME[&nodes=NUMBER]"}, status_code=400)
        key = ObjectKey(namespace, name)
        cached = self._cached(key)
        pod = None if cached is None else self._pod_info(cached)
        wanted = min(int(nodes), EXPLAINED_NODES_MAX)
        return JSONResponse(debug.explain(self.scheduler, key, pod, nodes_max=wanted))


def _framework(
    profile: Profile, classes: Mapping[str, type[Plugin]], environment: Environment, timer: PointTimer
) -> Framework:
    """Build the profile's framework; BadConfiguration."""
    try:
        return Framework(profile, classes, environment, timer.hooks())
    except ArgumentError as error:
        raise BadConfiguration(f"profile {profile.name}: pluginConfig args: {error}") from None
    except PluginConfigError as error:
        raise BadConfiguration(f"profile {profile.name}: {error}") from None


def _extender_client(config: SchedulerConfig) -> ExtenderClient | None:
    """None without extenders; BadConfiguration."""
    if not config.extenders:
        return None
    try:
        return ExtenderClient(config.extenders)
    except TransportError as error:
        raise BadConfiguration(f"{error.field}: {error}") from None


def _rejecting(framework: Framework) -> list[Plugin]:
    """Plugins that can refuse a pod, whose registrations therefore count."""
    rejecting = framework.events_to_register()
    return [plugin for name, plugin in framework.plugins.items() if name in rejecting]
