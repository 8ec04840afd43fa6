"""A profile's plugins, and how each extension point runs them.

Source: kube-scheduler 1.36, framework runtime. A plugin that raises is an Error status that names it.
"""

# mypy: disable-error-code="type-abstract"

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import anyio
import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from scheduler.framework.crowded import CrowdedNodes
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.environment import EmptyLister, Environment
from scheduler.framework.handle import PluginHandle
from scheduler.framework.interface import (
    MAX_NODE_SCORE,
    ActionType,
    BindPlugin,
    ClusterEvent,
    ClusterEventWithHint,
    Code,
    EnqueueExtensions,
    EventResource,
    FilterError,
    FilterPlugin,
    NodeStatuses,
    NominatingMode,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    Rows,
    ScorePlugin,
    Status,
)
from scheduler.framework.profile import PLUGIN_BASES, ExtensionPoint, PluginFactory, Profile
from scheduler.framework.snapshot import Snapshot
from scheduler.framework.types import NodeInfo, PodInfo, QueuedPodInfo

M = TypeVar("M", bound=Message)
P = TypeVar("P", bound=Plugin)
T = TypeVar("T")

PERMIT_TIMEOUT_SECONDS_MAX = 15 * 60.0


class PluginConfigError(ValueError):
    """The profile cannot run; the text names the plugin."""


class Framework(PluginHandle):
    """One profile. It is the plugins' `Handle` too."""

    def __init__(
        self, profile: Profile, registry: Mapping[str, PluginFactory], environment: Environment
    ) -> None:
        """Builds every plugin of the profile once; PluginConfigError, or ArgumentError of a plugin."""
        super().__init__(profile, environment)
        self.crowded = CrowdedNodes(environment.nominator)
        self.plugins: dict[str, Plugin] = {}
        for name in profile.plugin_names():
            factory = registry.get(name)
            if factory is None:
                raise PluginConfigError(f"{name} does not exist")
            self.plugins[name] = factory(profile.args.get(name, {}), self)
        self.pre_enqueue_plugins = self._at(ExtensionPoint.PRE_ENQUEUE, PreEnqueuePlugin)
        self.pre_filter_plugins = self._at(ExtensionPoint.PRE_FILTER, PreFilterPlugin)
        self.filter_plugins = self._at(ExtensionPoint.FILTER, FilterPlugin)
        self.filters_blind_to_pods = frozenset(p.name for p in self.filter_plugins if not p.looks_at_pods)
        self.post_filter_plugins = self._at(ExtensionPoint.POST_FILTER, PostFilterPlugin)
        self.pre_score_plugins = self._at(ExtensionPoint.PRE_SCORE, PreScorePlugin)
        self.score_plugins = self._at(ExtensionPoint.SCORE, ScorePlugin)
        self.reserve_plugins = self._at(ExtensionPoint.RESERVE, ReservePlugin)
        self.permit_plugins = self._at(ExtensionPoint.PERMIT, PermitPlugin)
        self.pre_bind_plugins = self._at(ExtensionPoint.PRE_BIND, PreBindPlugin)
        self.bind_plugins = self._at(ExtensionPoint.BIND, BindPlugin)
        self.post_bind_plugins = self._at(ExtensionPoint.POST_BIND, PostBindPlugin)
        sorters = self._at(ExtensionPoint.QUEUE_SORT, QueueSortPlugin)
        if len(sorters) != 1:
            raise PluginConfigError(
                f"profile {profile.name} needs exactly one queueSort plugin, it has {len(sorters)}"
            )
        self.queue_sort_plugin = sorters[0]
        self.score_weights: dict[str, int] = {
            e.name: e.weight for e in profile.points.get(ExtensionPoint.SCORE, ())
        }
        for name, weight in self.score_weights.items():
            if weight <= 0:
                raise PluginConfigError(f"score plugin {name} is not configured with weight")
        self._extensions: list[tuple[str, PreFilterExtensions]] = []
        for plugin in self.pre_filter_plugins:
            extensions = plugin.pre_filter_extensions()
            if extensions is not None:
                self._extensions.append((plugin.name, extensions))

    def _at(self, point: ExtensionPoint, base: type[P]) -> list[P]:
        found: list[P] = []
        for enabled in self.profile.points.get(point, ()):
            plugin = self.plugins[enabled.name]
            if not isinstance(plugin, PLUGIN_BASES[point]) or not isinstance(plugin, base):
                raise PluginConfigError(f"plugin {enabled.name} does not extend {point.value} plugin")
            found.append(plugin)
        return found

    @contextmanager
    def within(self, nodes: Collection[str] | None) -> Iterator[None]:
        """While the block runs, plugins see these nodes only (None: all that there are)."""
        if nodes is None:
            yield
            return
        whole = self.environment.snapshot
        self.environment.snapshot = Snapshot(info for info in whole.nodes if info.name in nodes)
        try:
            yield
        finally:
            self.environment.snapshot = whole

    # Queueing

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        return self.queue_sort_plugin.less(a, b)

    def run_pre_enqueue_plugins(self, pod: PodInfo) -> Status | None:
        """The first refusal; None when the pod may be tried."""
        for plugin in self.pre_enqueue_plugins:
            status = plugin.pre_enqueue(pod)
            if status is not None and not status.is_success:
                return status.with_plugin(plugin.name)
        return None

    def events_to_register(self) -> dict[str, Sequence[ClusterEventWithHint] | None]:
        """Registrations by plugin, of plugins that can reject a pod; None: every event wakes its pods.

        One that wants to hear of new nodes hears of changed taints too: a node that is added with a taint is
        kept from the hints, as upstream does (kubernetes/kubernetes#109437).
        """
        rejecting = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)
        found: dict[str, Sequence[ClusterEventWithHint] | None] = {}
        for name, plugin in self.plugins.items():
            if isinstance(plugin, EnqueueExtensions):
                found[name] = _with_taint_event(plugin.events_to_register())
            elif isinstance(plugin, rejecting):
                found[name] = None
        return found

    # Filtering

    def run_pre_filter_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult, Status | None, set[str]]:
        """What is left to look at, a rejection or error, and the plugins that narrowed the nodes.

        A plain Unschedulable does not end the round: a later plugin may know that nothing can help.
        """
        result = PreFilterResult()
        rejection: Status | None = None
        skipped = []
        narrowing: set[str] = set()
        for plugin in self.pre_filter_plugins:
            try:
                narrowed, status = plugin.pre_filter(state, pod, snapshot)
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status, narrowed = Status.as_error(error), None
            if status is not None and not status.is_success:
                if status.is_skip:
                    skipped.append(plugin.name)
                    continue
                if status.code is Code.UnschedulableAndUnresolvable:
                    return result, status.with_plugin(plugin.name), set()
                if status.is_rejected:
                    rejection = status.with_plugin(plugin.name)
                    continue
                return result, _failed("PreFilter", plugin.name, status), set()
            if narrowed is not None and narrowed.node_names is not None:
                narrowing.add(plugin.name)
                result = result.merge(narrowed)
                if not result.node_names:
                    names = sorted(narrowing)
                    text = f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"
                    if len(names) == 1:
                        text = f"node(s) didn't satisfy plugin {names[0]}"
                    return result, Status(Code.UnschedulableAndUnresolvable, (text,)), narrowing
        state.skip_filter_plugins = frozenset(skipped)
        return result, rejection, narrowing

    def follows_pods(self, state: CycleState) -> bool:
        """Whether some plugin of this cycle must be told of pods that come and go in a simulation."""
        return any(name not in state.skip_filter_plugins for name, _ in self._extensions)

    def run_pre_filter_extension_add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Tell the plugins that a pod was added to a node in a simulation."""
        for name, extensions in self._extensions:
            if name not in state.skip_filter_plugins:
                status = extensions.add_pod(state, pod, added, node)
                if status is not None and not status.is_success:
                    return _failed("AddPod on PreFilter", name, status)
        return None

    def run_pre_filter_extension_remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Tell the plugins that a pod was taken off a node in a simulation."""
        for name, extensions in self._extensions:
            if name not in state.skip_filter_plugins:
                status = extensions.remove_pod(state, pod, removed, node)
                if status is not None and not status.is_success:
                    return _failed("RemovePod on PreFilter", name, status)
        return None

    def run_filter_plugins(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """The first refusal of one node, with its plugin; None when the pod fits."""
        skipped = state.skip_filter_plugins
        for plugin in self.filter_plugins:
            if plugin.name in skipped:
                continue
            status = plugin.filter(state, pod, node)
            if status is not None and not status.is_success:
                return refused_by(plugin, status)
        return None

    def run_search(self, state: CycleState, search: Callable[[], T]) -> T:
        """One attempt's look at nodes, done by `search`; a framework that measures takes its time."""
        return search()

    def run_filter_plugins_with_nominated_pods(
        self, state: CycleState, pod: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Whether the pod fits both with and without the pods nominated to the node (KEP-1923).

        Those of equal or higher priority are taken to be there already; and as they may never come, what fits
        only thanks to them (pod affinity) does not count either.
        """
        nominated = self.competing_nominations(pod, node.name)
        if nominated:
            with_pods, its_state = node.clone(), state.clone()
            for other in nominated:
                with_pods.add_pod(other)
                status = self.run_pre_filter_extension_add_pod(its_state, pod, other, with_pods)
                if status is not None and not status.is_success:
                    return status
            status = self.run_filter_plugins(its_state, pod, with_pods)
            if status is not None and not status.is_success:
                return status
        return self.run_filter_plugins(state, pod, node)

    def competing_nominations(self, pod: PodInfo, node_name: str) -> list[PodInfo]:
        """Pods nominated to the node that this pod must leave room for."""
        return [
            other
            for other in self.nominator.pods_on(node_name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]

    def filter_rows(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> list[tuple[FilterPlugin, NDArray[np.bool_]]]:
        """The verdicts of the plugins that refuse some of the rows, in order.

        A plugin without a vectorised filter is asked about those rows only that passed so far. Raises
        FilterError.
        """
        verdicts: list[tuple[FilterPlugin, NDArray[np.bool_]]] = []
        skipped = state.skip_filter_plugins
        for plugin in self.filter_plugins:
            if plugin.name in skipped:
                continue
            if type(plugin).filter_all is FilterPlugin.filter_all and verdicts:
                passed = np.logical_and.reduce([mask for _, mask in verdicts])
                mask = passed.copy()
                chosen = np.arange(rows.start, rows.stop)[passed] if isinstance(rows, slice) else rows[passed]
                mask[passed] = plugin.filter_all(state, pod, snapshot, chosen)
                verdicts.append((plugin, mask | ~passed))
                continue
            verdict = plugin.filter_all(state, pod, snapshot, rows)
            if verdict is not None:
                verdicts.append((plugin, verdict))
        return verdicts

    def run_post_filter_plugins(
        self, state: CycleState, pod: PodInfo, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """The first success; else the last result that wants a nomination, and all reasons.

        What a plugin wants to be done outside is done also where another one has the last word.
        """
        result: PostFilterResult | None = None
        first: list[PostFilterResult] = []
        reasons: list[str] = []
        rejector = ""
        for plugin in self.post_filter_plugins:
            try:
                found, status = plugin.post_filter(state, pod, statuses)
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                found, status = None, Status.as_error(error)
            if status is None or status.is_success:
                return _after(first, found), status or Status(Code.Success)
            if status.code is Code.UnschedulableAndUnresolvable:
                return _after(first, found), status.with_plugin(plugin.name)
            if not status.is_rejected:
                return None, status.with_plugin(plugin.name)
            info = None if found is None else found.nominating_info
            if info is not None and info.mode is not NominatingMode.NoOp:
                result = found
            elif found is not None and found.follow_up is not None:
                first.append(found)
            reasons.extend(status.reasons)
            rejector = rejector or plugin.name
        return _after(first, result), Status(Code.Unschedulable, tuple(reasons), rejector)

    # Scoring

    @property
    def has_score_plugins(self) -> bool:
        return bool(self.score_plugins)

    def run_pre_score_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> Status | None:
        """Prepare the score plugins; an error ends the cycle."""
        skipped = []
        for plugin in self.pre_score_plugins:
            try:
                status = plugin.pre_score(state, pod, snapshot, rows)
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status = Status.as_error(error)
            if status is not None and not status.is_success:
                if not status.is_skip:
                    return _failed("PreScore", plugin.name, status)
                skipped.append(plugin.name)
        state.skip_score_plugins = frozenset(skipped)
        return None

    def run_score_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> dict[str, NDArray[np.int64]]:
        """Weighted, normalised scores of the rows by plugin; skipped plugins are missing.

        Raises ScoreError when a plugin fails or a score is not within 0..100.
        """
        scores: dict[str, NDArray[np.int64]] = {}
        skipped = state.skip_score_plugins
        for plugin in self.score_plugins:
            name = plugin.name
            if name in skipped:
                continue
            try:
                found = plugin.normalize(state, pod, plugin.score_all(state, pod, snapshot, rows))
            except Exception as error:
                raise ScoreError(f'running Score plugin "{name}": {error}') from error
            if type(plugin).score_all is ScorePlugin.score_all and len(found):
                low, high = int(found.min()), int(found.max())
                if low < 0 or high > MAX_NODE_SCORE:
                    raise ScoreError(
                        f'plugin "{name}" returns an invalid score {low if low < 0 else high}, '
                        f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
                    )
            weight = self.score_weights[name]
            scores[name] = found if weight == 1 else found * weight
        return scores

    # Reserving and permission

    def run_reserve_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """The first failure; the caller then runs unreserve for all plugins."""
        for plugin in self.reserve_plugins:
            try:
                status = plugin.reserve(state, pod, node_name)
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status = Status.as_error(error)
            if status is not None and not status.is_success:
                if status.is_rejected:
                    return status.with_plugin(plugin.name)
                return _failed("Reserve", plugin.name, status)
        return None

    def run_unreserve_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo, in reverse order."""
        for plugin in reversed(self.reserve_plugins):
            plugin.unreserve(state, pod, node_name)

    async def after_unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """What unreserving has to do outside, once PreBind may have written something."""
        for plugin in reversed(self.reserve_plugins):
            await plugin.after_unreserve(state, pod, node_name)

    def run_permit_plugins(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, dict[str, float]]:
        """Success, a failure, or Wait and for how many seconds each plugin allows."""
        waits: dict[str, float] = {}
        for plugin in self.permit_plugins:
            try:
                status, timeout_seconds = plugin.permit(state, pod, node_name)
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status, timeout_seconds = Status.as_error(error), 0.0
            if status is None or status.is_success:
                continue
            if status.is_wait:
                waits[plugin.name] = min(timeout_seconds, PERMIT_TIMEOUT_SECONDS_MAX)
            elif status.is_rejected:
                return status.with_plugin(plugin.name), {}
            else:
                return _failed("Permit", plugin.name, status), {}
        if not waits:
            return None, {}
        text = f'one or more plugins asked to wait and no plugin rejected pod "{pod.name}"'
        return Status(Code.Wait, (text,)), waits

    # Binding

    def run_pre_bind_pre_flights(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Skip when no PreBind plugin has anything to do, Success when one has, or an error.

        Source: KEP-5278, "PreBindPreFlight".
        """
        skipped, parallel = [], []
        for plugin in self.pre_bind_plugins:
            try:
                status, allow_parallel = plugin.pre_bind_pre_flight(state, pod, node_name)
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status, allow_parallel = Status.as_error(error), False
            if status is None or status.is_success:
                if allow_parallel:
                    parallel.append(plugin.name)
            elif status.is_skip:
                skipped.append(plugin.name)
            else:
                return _failed("PreBindPreFlight", plugin.name, status)
        state.skip_pre_bind_plugins = frozenset(skipped)
        state.parallel_pre_bind_plugins = frozenset(parallel)
        return Status(Code.Skip if len(skipped) == len(self.pre_bind_plugins) else Code.Success)

    async def run_pre_bind_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """In order; neighbours that allow it run beside each other. The first failure by order."""
        batch: list[PreBindPlugin] = []
        for plugin in self.pre_bind_plugins:
            if plugin.name in state.skip_pre_bind_plugins:
                continue
            alone = plugin.name not in state.parallel_pre_bind_plugins
            if batch and alone:
                status = await self._pre_bind_batch(batch, state, pod, node_name)
                if status is not None:
                    return status
                batch = []
            batch.append(plugin)
            if alone:
                status = await self._pre_bind_batch(batch, state, pod, node_name)
                if status is not None:
                    return status
                batch = []
        return await self._pre_bind_batch(batch, state, pod, node_name) if batch else None

    async def _pre_bind_batch(
        self, batch: list[PreBindPlugin], state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | None:
        statuses: list[Status | None] = [None] * len(batch)

        async def run(index: int) -> None:
            plugin = batch[index]
            try:
                status = await plugin.pre_bind(state, pod, node_name)
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status = Status.as_error(error)
            if status is not None and not status.is_success:
                rejected = status.is_rejected
                statuses[index] = (
                    status.with_plugin(plugin.name) if rejected else _failed("PreBind", plugin.name, status)
                )

        if len(batch) == 1:
            await run(0)
        else:
            async with anyio.create_task_group() as group:
                for index in range(len(batch)):
                    group.start_soon(run, index)
        return next((status for status in statuses if status is not None), None)

    async def run_bind_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """The first plugin that does not skip decides; Skip when all do."""
        for plugin in self.bind_plugins:
            try:
                status = await plugin.bind(state, pod, node_name)
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status = Status.as_error(error)
            if status is None or status.is_success:
                return None
            if status.is_skip:
                continue
            if status.is_rejected:
                return status.with_plugin(plugin.name)
            return _failed("Bind", plugin.name, status)
        return Status(Code.Skip)

    async def run_post_bind_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        for plugin in self.post_bind_plugins:
            await plugin.post_bind(state, pod, node_name)


def _after(first: Sequence[PostFilterResult], result: PostFilterResult | None) -> PostFilterResult | None:
    """The result, whose follow-up comes after those of `first`; the first failure ends it."""
    if not first:
        return result
    last = result or first[-1]
    follow_ups = [each.follow_up for each in (*first[: None if result else -1], last)]

    async def all_of_them() -> Status | None:
        for follow_up in follow_ups:
            status = None if follow_up is None else await follow_up()
            if status is not None and not status.is_success:
                return status
        return None

    return replace(last, follow_up=all_of_them)


class ScoreError(Exception):
    """Scoring failed: the cycle ends with an error."""


def _with_taint_event(registered: Sequence[ClusterEventWithHint]) -> Sequence[ClusterEventWithHint]:
    on_nodes = ActionType(0)
    for registration in registered:
        if registration.event.resource is EventResource.Node:
            on_nodes |= registration.event.action
    if on_nodes & ActionType.Add and not on_nodes & ActionType.UpdateNodeTaint:
        taint = ClusterEvent(EventResource.Node, ActionType.UpdateNodeTaint)
        return (*registered, ClusterEventWithHint(taint))
    return registered


def refused_by(plugin: FilterPlugin, status: Status) -> Status:
    """A filter's refusal under its name, or an Error status if it is none."""
    return status.with_plugin(plugin.name) if status.is_rejected else _failed("filter", plugin.name, status)


def _failed(point: str, plugin: str, status: Status) -> Status:
    """An Error status that says which plugin failed where, as upstream words it."""
    text = f'running "{plugin}" filter plugin: {status.message()}' if point == "filter" else ""
    text = text or f'running {point} plugin "{plugin}": {status.message()}'
    return Status(Code.Error, (text,), plugin, status.error)


__all__ = [
    "ClusterEvent",
    "EmptyLister",
    "Environment",
    "FilterError",
    "Framework",
    "PluginConfigError",
    "ScoreError",
]
