"""Build the scheduler's parts, each from those before it.

queue clock, informers, call queue, cache, groups, waiting pods, nominator
-> profiles (plugins over an Environment) -> queue -> event handlers -> API dispatcher -> Scheduler
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.events.series_recorder import SeriesRecorder
from nominee.machinery.process.component import BadConfiguration, Process
from nominee.scheduler.attempts.pod import CLEAR_NOMINATION
from nominee.scheduler.attempts.resize import DeferredResizes, Resizes
from nominee.scheduler.configuration.config import SchedulerConfig
from nominee.scheduler.dispatch.api_calls import PodStatusPatch
from nominee.scheduler.dispatch.call_queue import CallQueue
from nominee.scheduler.event_handlers import EventHandlers
from nominee.scheduler.extenders.client import ExtenderClient
from nominee.scheduler.extenders.search import EXTENDER_NAME
from nominee.scheduler.extenders.tls import TransportError
from nominee.scheduler.features import SchedulerFeatures
from nominee.scheduler.framework.api.events import ActionType, EventResource
from nominee.scheduler.framework.api.status import error_text
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.scheduling_groups import SchedulingGroups
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.interface import Plugin, Status
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.resize_preemption import ALPHA, ResizePreemption
from nominee.scheduler.framework.runtime.environment import Environment
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.instrumentation import NO_POINT_HOOKS, PointHooks, hooks_of
from nominee.scheduler.framework.runtime.plugin_set import PluginConfigError
from nominee.scheduler.framework.runtime.profile import ArgumentError, Profile
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.dynamic_resources.tracker import announce_deallocations
from nominee.scheduler.queue.backoff import Backoff
from nominee.scheduler.queue.hints import HintMap, build_hint_map
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue, QueueProfile
from nominee.scheduler.result_recorder import ResultRecorder
from nominee.scheduler.shell.attempt import decision_log
from nominee.scheduler.shell.attempt.attempt import AttemptHooks
from nominee.scheduler.shell.attempt.attempt_log import AttemptLog
from nominee.scheduler.shell.attempt.recorder import ProfileRecorder
from nominee.scheduler.shell.attempt.simulator_annotations import ResultWriter
from nominee.scheduler.shell.attempt.waiting_pods import WaitingPods
from nominee.scheduler.shell.calls.api_dispatcher import APIDispatcher
from nominee.scheduler.shell.calls.perform import Performer
from nominee.scheduler.shell.calls.signals import Signal
from nominee.scheduler.shell.loop.deps import PodActivator, ProfileParts, QueueClock, SchedulerDeps
from nominee.scheduler.shell.loop.scheduler import Scheduler
from nominee.scheduler.shell.metrics.measured_events import MeasuredQueue, timed_ask
from nominee.scheduler.shell.metrics.tables import SAMPLED_EVERY, Metrics
from nominee.scheduler.shell.metrics.timing import PluginTimer, PointTimer
from nominee.scheduler.shell.process.informers import Informers
from nominee.scheduler.shell.process.metrics_sources import read_sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a running scheduler that its process starts and serves."""

    informers: Informers
    handlers: EventHandlers
    recorders: Sequence[SeriesRecorder]
    nominator: Nominator
    cached_pods: CachedPods
    deps: SchedulerDeps
    scheduler: Scheduler
    features: SchedulerFeatures

    @property
    def queue(self) -> PrioritySchedulingQueue:
        return self.deps.queue

    @property
    def cache(self) -> Cache:
        return self.deps.cache

    @property
    def waiting(self) -> WaitingPods:
        return self.deps.waiting

    @property
    def metrics(self) -> Metrics:
        return self.deps.metrics

    @property
    def now(self) -> QueueClock:
        return self.deps.queue_now


class CachedPods:
    """Pods as the watch shows them."""

    def __init__(self, informers: Informers) -> None:
        self._pods = informers.pods

    def get(self, key: ObjectKey) -> core.Pod | None:
        """Return the pod that the watch last showed under a name."""
        return self._pods.get(key.name, key.namespace)

    def is_pending(self, info: PodInfo) -> bool:
        """Return whether the pod still exists and has no node."""
        pod = self.get(info.key)
        return pod is not None and pod.metadata.uid == info.uid and not pod.spec.nodeName


class _Base:
    """The parts that are built first and need no plugin."""

    def __init__(
        self,
        process: Process,
        config: SchedulerConfig,
        client: Client,
        metrics: Metrics,
        resizes: ResizePreemption,
    ) -> None:
        self.process, self.config, self.client, self.metrics = process, config, client, metrics
        self.features = SchedulerFeatures.of(process.gates, process.version, resizes)
        self.now = QueueClock(process.clock)
        self.informers = Informers(client, process.clock, process.rng, groups_pods=self.features.pod_groups)
        self.pods = CachedPods(self.informers)
        self.calls_signal = Signal()
        self.calls = CallQueue(
            self.pods.get,
            observed_generation=self.features.observed_generation,
            wake=self.calls_signal.set,
        )
        self.cache = Cache()
        self.nominator = Nominator(self.pods.is_pending)
        self.waiting = WaitingPods(process.clock)
        self.groups = SchedulingGroups(self.cache.is_assumed)
        self.activator = PodActivator(self.now)

    def report(self, pod: PodInfo, failure: Status) -> None:
        """Log the error of a plugin that no attempt reports."""
        self.process.log.error(
            "A plugin failed", pod=pod.key, error=failure.message(), exc_info=failure.error
        )


def build(
    process: Process,
    config: SchedulerConfig,
    classes: Mapping[str, type[Plugin]],
    profiles: Sequence[Profile],
    client: Client,
    metrics: Metrics,
    *,
    records: bool = False,
    resize_preemption: ResizePreemption = ALPHA,
) -> Parts:
    """Build and connect everything.

    `classes` are all plugins by name; `records`: the plugins' answers are written into the pods' annotations.
    `resize_preemption` counts where its gate is on.

    Raises:
        BadConfiguration: a profile or an extender cannot be used.
    """
    base = _Base(process, config, client, metrics, resize_preemption)
    clock, features = process.clock, base.features
    recorders = [SeriesRecorder(client, profile.name, clock=clock) for profile in profiles]
    timers = {profile.name: PointTimer(metrics.extension_point_seconds, profile.name) for profile in profiles}
    parts_of = _profile_parts(base, classes, profiles, recorders, timers, records=records)
    queue_profiles = _queue_profiles(base, parts_of)
    signal = Signal()
    queue = _queue(base, parts_of, queue_profiles, signal)
    base.activator.connect(queue)
    measured = MeasuredQueue(queue, metrics.event_seconds, clock)
    resizes = _deferred_resizes(base, parts_of, measured)
    handlers = _handlers(base, parts_of, measured, resizes)
    dispatcher = APIDispatcher(
        client,
        clock,
        base.calls,
        base.calls_signal,
        lambda old, new: handlers.nomination_settled(old, new, base.now()),
    )
    deps = SchedulerDeps(
        client=client,
        performer=Performer(client, clock, dispatcher.clear_nomination),
        clock=clock,
        queue_now=base.now,
        rng=process.rng,
        metrics=metrics,
        cache=base.cache,
        waiting=base.waiting,
        groups=base.groups,
        profiles=parts_of,
        queue=queue,
        queue_signal=signal,
        calls=base.calls,
        dispatcher=dispatcher,
        attempts=AttemptLog(base.now),
        percentage_of_nodes_to_score=config.percentage_of_nodes_to_score,
        extenders=_extender_client(config),
        results=ResultWriter(client, clock, base.pods.get) if records else None,
        resizes=resizes,
    )
    scheduler = Scheduler(features, deps)
    actions = _actions([profile.hints for profile in queue_profiles.values()])
    base.informers.connect(handlers, base.now, actions, dispatcher.bound, dispatcher.forget)
    metrics.read(read_sources(deps, scheduler, timers))
    return Parts(
        informers=base.informers,
        handlers=handlers,
        recorders=recorders,
        nominator=base.nominator,
        cached_pods=base.pods,
        deps=deps,
        scheduler=scheduler,
        features=features,
    )


def _profile_parts(
    base: _Base,
    classes: Mapping[str, type[Plugin]],
    profiles: Sequence[Profile],
    recorders: Sequence[SeriesRecorder],
    timers: Mapping[str, PointTimer],
    *,
    records: bool,
) -> dict[str, ProfileParts]:
    """Build each profile's plugins; all share one snapshot."""
    process, snapshot = base.process, Snapshot()
    found: dict[str, ProfileParts] = {}
    for profile, event_recorder in zip(profiles, recorders, strict=True):
        recorder = ProfileRecorder(event_recorder)
        environment = Environment(
            snapshot=snapshot,
            nominator=base.nominator,
            scheduling_groups=base.groups,
            gates=process.gates,
            version=process.version,
            resize_preemption=base.features.resize_preemption,
            clock=process.clock,
            rng=process.rng,
            listers=base.informers.listers,
            client=base.client,
            recorder=recorder,
            waiting_pod=base.waiting.stoppable,
            activate=base.activator,
            note=base.metrics.note,
            report=base.report,
        )
        framework = _framework(profile, classes, environment, timers[profile.name].hooks())
        hooks = _hooks(framework, base.metrics, records=records)
        found[profile.name] = ProfileParts(framework=framework, recorder=recorder, hooks=hooks)
    return found


def _queue(
    base: _Base,
    parts_of: Mapping[str, ProfileParts],
    profiles: Mapping[str, QueueProfile],
    signal: Signal,
) -> PrioritySchedulingQueue:
    config, features = base.config, base.features
    return PrioritySchedulingQueue(
        profiles=profiles,
        sort=next(iter(parts_of.values())).framework.queue_sort_plugin,
        nominator=base.nominator,
        backoff=Backoff(
            config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds, features.pops_from_backoff
        ),
        hints_enabled=features.queueing_hints,
        wake=signal.set,
        report=base.report,
    )


def _deferred_resizes(
    base: _Base,
    parts_of: Mapping[str, ProfileParts],
    queue: MeasuredQueue,
) -> Resizes:
    if base.features.resize_preemption is None:
        return Resizes()
    return DeferredResizes(
        queue,
        base.cache,
        base.features.resize_preemption,
        is_ours=parts_of.__contains__,
        pod_info=functools.partial(PodInfo, options=base.features.resources),
        resolved=lambda pod: base.calls.decide(PodStatusPatch(pod=pod, nominating=CLEAR_NOMINATION)),
        report=decision_log.log_resize,
    )


def _handlers(
    base: _Base,
    parts_of: Mapping[str, ProfileParts],
    queue: MeasuredQueue,
    resizes: Resizes,
) -> EventHandlers:
    def report(text: str) -> None:
        base.process.log.warning("Scheduler cache", error=text)

    handlers = EventHandlers(
        queue,
        base.cache,
        is_ours=parts_of.__contains__,
        pod_info=functools.partial(PodInfo, options=base.features.resources),
        reject_waiting=base.waiting.reject,
        report=report,
        with_nomination=base.calls.nominations.apply,
        groups=base.groups,
        gangs=base.features.gangs,
        resizes=resizes,
    )
    announce_deallocations(
        base.informers.listers[kinds.RESOURCE_CLAIM],
        lambda old, new: handlers.other_updated(EventResource.ResourceClaim, old, new, base.now()),
    )
    return handlers


def check_profiles(
    process: Process,
    config: SchedulerConfig,
    classes: Mapping[str, type[Plugin]],
    profiles: Sequence[Profile],
    resize_preemption: ResizePreemption | None,
) -> None:
    """Check the arguments of the plugins, and the extenders, without a connection to the API server.

    Raises:
        BadConfiguration: a profile or an extender cannot be used.
    """
    for profile in profiles:
        environment = Environment(
            snapshot=Snapshot(),
            nominator=Nominator(),
            gates=process.gates,
            version=process.version,
            resize_preemption=resize_preemption,
            clock=process.clock,
            rng=process.rng,
        )
        try:
            _framework(profile, classes, environment, NO_POINT_HOOKS)
        except RuntimeError:
            continue  # A plugin from outside uses a service that only a running scheduler has.
        except (LookupError, TypeError, ValueError) as error:
            text = f"profile {profile.name}: a plugin cannot be made: {error_text(error)}"
            raise BadConfiguration(text) from None
    _extender_client(config)


def _framework(
    profile: Profile, classes: Mapping[str, type[Plugin]], environment: Environment, hooks: PointHooks
) -> Framework:
    try:
        return Framework(profile, classes, environment, hooks)
    except ArgumentError as error:
        raise BadConfiguration(f"profile {profile.name}: pluginConfig args: {error}") from None
    except PluginConfigError as error:
        raise BadConfiguration(f"profile {profile.name}: {error}") from None


def _hooks(framework: Framework, metrics: Metrics, *, records: bool) -> AttemptHooks:
    recorder: tuple[object, ...] = (ResultRecorder(framework),) if records else ()
    if decision_log.is_detailed():
        recorder = (*recorder, SimpleNamespace(scored=decision_log.keep_scores))
    timer = PluginTimer(metrics.plugin_seconds.of)
    return AttemptHooks(hooks_of(*recorder), hooks_of(timer, *recorder), SAMPLED_EVERY)


def _queue_profiles(base: _Base, parts_of: Mapping[str, ProfileParts]) -> dict[str, QueueProfile]:
    wildcard = (EXTENDER_NAME,) if base.config.extenders else ()
    asks = timed_ask(base.metrics.hint_seconds, base.process.clock)
    return {
        name: QueueProfile(
            tuple(parts.framework.pre_enqueue_plugins),
            build_hint_map(
                parts.framework.events_to_register(),
                hints_enabled=base.features.queueing_hints,
                wildcard=wildcard,
                asks=asks,
            ),
        )
        for name, parts in parts_of.items()
    }


def _actions(hints: Sequence[HintMap]) -> dict[EventResource, ActionType]:
    """Return the actions that some profile's plugins register, by resource."""
    union: dict[EventResource, ActionType] = {}
    for each in hints:
        for resource, action in each.actions_by_resource().items():
            union[resource] = union.get(resource, ActionType(0)) | action
    return union


def _extender_client(config: SchedulerConfig) -> ExtenderClient | None:
    if not config.extenders:
        return None
    try:
        return ExtenderClient(config.extenders)
    except TransportError as error:
        raise BadConfiguration(f"{error.field}: {error}") from None
