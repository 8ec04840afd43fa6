"""Run the plugins of a profile at each extension point that is synchronous.

The asynchronous ones (PreBind, Bind, PostBind) are run by `nominee.scheduler.shell.loop.binding_plugins`. A
plugin that raises gives an Error status that names it. Source: kube-scheduler 1.36, framework runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.api.status import check_answer, error_text
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    MAX_NODE_SCORE,
    Code,
    FilterError,
    FilterPlugin,
    NodeStatuses,
    NominatingMode,
    PostFilterResult,
    PreFilterResult,
    Rows,
    ScorePlugin,
    Status,
)
from nominee.scheduler.framework.runtime.follow_ups import joined
from nominee.scheduler.framework.runtime.instrumentation import Verdicts, observed
from nominee.scheduler.framework.runtime.plugin_set import PluginSet
from nominee.scheduler.framework.runtime.plugin_status import (
    failed_pre_flight,
    failed_status,
    rejected_by,
    run_pre_enqueue_plugin,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo

T = TypeVar("T")

PERMIT_TIMEOUT_SECONDS_MAX = 15 * 60.0


class ScoreError(Exception):
    """A Score plugin failed, or its score is out of range: the cycle ends with an error."""


class Framework(PluginSet):
    """One profile: its plugins, and how each extension point runs them."""

    def run_pre_enqueue_plugins(self, pod: PodInfo) -> Status | None:
        """Return the first rejection or error; None when the pod may be tried."""
        for plugin in self.pre_enqueue_plugins:
            status = run_pre_enqueue_plugin(plugin, pod)
            if status is not None:
                return status
        return None

    # Filtering

    @observed("pre_filter")
    def run_pre_filter_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult, Status | None, set[str]]:
        """Return the nodes that are left, a rejection or error, and the plugins that left out nodes.

        A plain Unschedulable does not end the round: a later plugin may know that nothing can help.
        """
        hooks = state.hooks.pre_filter
        result = PreFilterResult()
        rejection: Status | None = None
        skipped = list(state.skip_plugins)
        narrowing: set[str] = set()
        for plugin in self.pre_filter_plugins:
            if plugin.name in state.skip_plugins:
                continue
            began = self.monotonic() if hooks else 0.0
            try:
                narrowed, status = plugin.pre_filter(state, pod, snapshot)
                if status is not None:
                    check_answer(status, "pre_filter")
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status, narrowed = Status.as_error(error), None
            if hooks:
                seconds = self.monotonic() - began
                for hook in hooks:
                    hook(state, plugin.name, narrowed, status, seconds)
            if status is not None and not status.is_success:
                if status.is_skip:
                    skipped.append(plugin.name)
                    continue
                if status.code is Code.UnschedulableAndUnresolvable:
                    return result, status.with_plugin(plugin.name), set()
                if status.is_rejected:
                    rejection = status.with_plugin(plugin.name)
                    continue
                return result, failed_status("PreFilter", plugin.name, status), set()
            if narrowed is not None and narrowed.node_names is not None:
                narrowing.add(plugin.name)
                result = result.merge(narrowed)
                if not result.node_names:
                    return result, _nothing_left(narrowing), narrowing
        state.skip_filter_plugins = frozenset(skipped)
        return result, rejection, narrowing

    def follows_pods(self, state: CycleState) -> bool:
        """Return whether some plugin of this cycle follows pods that come and go in a simulation."""
        return any(name not in state.skip_filter_plugins for name, _ in self.pre_filter_extensions)

    def run_pre_filter_extension_add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Let the plugins count a pod that a simulation adds to the node; return the first failure."""
        return self._run_pre_filter_extensions("AddPod", state, pod, added, node)

    def run_pre_filter_extension_remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Let the plugins discount a pod that a simulation takes off the node; return the first failure."""
        return self._run_pre_filter_extensions("RemovePod", state, pod, removed, node)

    def _run_pre_filter_extensions(
        self, step: str, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo
    ) -> Status | None:
        hooks = state.hooks.pre_filter_extension
        for name, extensions in self.pre_filter_extensions:
            if name not in state.skip_filter_plugins:
                began = self.monotonic() if hooks else 0.0
                try:
                    follow = extensions.add_pod if step == "AddPod" else extensions.remove_pod
                    status = follow(state, pod, other, node)
                    if status is not None:
                        check_answer(status, step)
                except Exception as error:  # noqa: BLE001  # plugins come from outside
                    status = Status.as_error(error)
                for hook in hooks:
                    hook(state, name, f"PreFilterExtension{step}", status, self.monotonic() - began)
                if status is not None and not status.is_success:
                    return failed_status(f"{step} on PreFilter", name, status)
        return None

    def run_filter_plugins(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Return the first rejection of one node, with its plugin; None when the pod fits."""
        hooks, rejection = state.hooks.filter_node, None
        skipped = state.skip_filter_plugins
        for plugin in self.filter_plugins:
            if plugin.name in skipped:
                continue
            began = self.monotonic() if hooks else 0.0
            try:
                status = plugin.filter(state, pod, node)
                if status is not None:
                    check_answer(status, "filter")
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status = Status.as_error(error)
            for hook in hooks:
                hook(state, plugin.name, node, status, self.monotonic() - began)
            if status is not None and not status.is_success:
                rejection = rejected_by(plugin, status)
                break
        for hook in state.hooks.node_filtered:
            hook(state, node, rejection)
        return rejection

    @observed("filter")
    def run_search(self, state: CycleState, search: Callable[[], T]) -> T:
        """Run one attempt's search for feasible nodes, which is timed as the Filter extension point."""
        return search()

    def run_filter_plugins_with_nominated_pods(
        self, state: CycleState, pod: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Return why the pod does not fit the node, with and without the pods nominated to it (KEP-1923).

        Nominated pods of equal or higher priority count as if they were there; as they may never come, what
        fits only thanks to them (pod affinity) does not count either.
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
        """Return the pods nominated to the node that this pod must leave room for."""
        return [
            other
            for other in self.nominator.pods_on(node_name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]

    def filter_rows(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """Return the masks of the plugins that reject some of the rows, in order.

        A plugin without a vectorised filter is asked only about rows that passed so far.

        Raises:
            FilterError: a plugin failed, or its answer is neither success nor a rejection.
        """
        hooks = state.hooks.filter_rows
        verdicts: Verdicts = []
        skipped = state.skip_filter_plugins
        for plugin in self.filter_plugins:
            if plugin.name in skipped:
                continue
            chosen, passed = rows, None
            if verdicts and type(plugin).filter_all is FilterPlugin.filter_all:
                passed = np.logical_and.reduce([mask for _, mask in verdicts])
                chosen = np.arange(rows.start, rows.stop)[passed] if isinstance(rows, slice) else rows[passed]
            began = self.monotonic() if hooks else 0.0
            try:
                mask = plugin.filter_all(state, pod, snapshot, chosen)
            except FilterError:
                raise
            except Exception as error:
                raise FilterError(Status.as_error(error, plugin.name)) from error
            for hook in hooks:
                hook(state, pod, snapshot, chosen, plugin, mask, self.monotonic() - began)
            if mask is None:
                continue
            if passed is not None:
                whole = np.ones(len(passed), dtype=np.bool_)
                whole[passed] = mask
                mask = whole
            verdicts.append((plugin, mask))
        for hook in state.hooks.rows_filtered:
            hook(state, pod, snapshot, rows, verdicts)
        return verdicts

    @observed("post_filter")
    def run_post_filter_plugins(
        self, state: CycleState, pod: PodInfo, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """Return the first success; else the last result that asks for a nomination, and all reasons.

        The follow-ups of plugins before the deciding one precede its own.
        """
        hooks = state.hooks.post_filter
        result: PostFilterResult | None = None
        first: list[PostFilterResult] = []
        reasons: list[str] = []
        rejector = ""
        for plugin in self.post_filter_plugins:
            if plugin.name in state.skip_plugins:
                continue
            began = self.monotonic() if hooks else 0.0
            try:
                found, status = plugin.post_filter(state, pod, statuses)
                if status is not None:
                    check_answer(status, "post_filter")
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                found, status = None, Status.as_error(error)
            for hook in hooks:
                hook(state, plugin.name, statuses, found, status, self.monotonic() - began)
            if status is None or status.is_success:
                return joined(first, found), status or Status(Code.Success)
            if status.code is Code.UnschedulableAndUnresolvable:
                return joined(first, found), status.with_plugin(plugin.name)
            if not status.is_rejected:
                return None, status.with_plugin(plugin.name)
            info = None if found is None else found.nominating_info
            if info is not None and info.mode is not NominatingMode.NoOp:
                result = found
            elif found is not None and found.follow_up is not None:
                first.append(found)
            reasons.extend(status.reasons)
            rejector = rejector or plugin.name
        return joined(first, result), Status(Code.Unschedulable, tuple(reasons), rejector)

    # Scoring

    @observed("pre_score")
    def run_pre_score_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> Status | None:
        """Prepare the score plugins; return an error, which ends the cycle."""
        hooks = state.hooks.pre_score
        skipped = []
        for plugin in self.pre_score_plugins:
            began = self.monotonic() if hooks else 0.0
            try:
                status = plugin.pre_score(state, pod, snapshot, rows)
                if status is not None:
                    check_answer(status, "pre_score")
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status = Status.as_error(error)
            for hook in hooks:
                hook(state, plugin.name, status, self.monotonic() - began)
            if status is not None and not status.is_success:
                if not status.is_skip:
                    return failed_status("PreScore", plugin.name, status)
                skipped.append(plugin.name)
        state.skip_score_plugins = frozenset(skipped)
        return None

    @observed("score")
    def run_score_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> dict[str, NDArray[np.int64]]:
        """Return the weighted, normalised scores of the rows by plugin; skipped plugins are missing.

        Raises:
            ScoreError: a plugin failed, or a score is not within 0..100.
        """
        scores: dict[str, NDArray[np.int64]] = {}
        skipped = state.skip_score_plugins
        for plugin in self.score_plugins:
            name = plugin.name
            if name in skipped:
                continue
            found = self._score(plugin, state, pod, snapshot, rows)
            if type(plugin).score_all is ScorePlugin.score_all and len(found):
                low, high = int(found.min()), int(found.max())
                if low < 0 or high > MAX_NODE_SCORE:
                    raise ScoreError(
                        f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid '
                        f"score {low if low < 0 else high}, it should in the range of [0, {MAX_NODE_SCORE}] "
                        "after normalizing"
                    )
            weight = self.score_weights[name]
            scores[name] = found if weight == 1 else found * weight
        for hook in state.hooks.scored:
            hook(state, snapshot, rows, scores)
        return scores

    def _score(
        self, plugin: ScorePlugin, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Return the plugin's normalised scores, not weighted yet. Raises: ScoreError."""
        hooks = state.hooks
        began = self.monotonic() if hooks.score else 0.0
        try:
            found = plugin.score_all(state, pod, snapshot, rows)
        except Exception as error:
            raise ScoreError(_failed("running Score plugins", plugin, error)) from error
        for hook in hooks.score:
            hook(state, plugin.name, snapshot, rows, found, self.monotonic() - began)
        if type(plugin).normalize is ScorePlugin.normalize:
            return found
        began = self.monotonic() if hooks.normalize else 0.0
        try:
            found = plugin.normalize(state, pod, found)
        except Exception as error:
            raise ScoreError(_failed("running Normalize on Score plugins", plugin, error)) from error
        for hook in hooks.normalize:
            hook(state, plugin.name, self.monotonic() - began)
        return found

    # Reserve and Permit

    @observed("reserve")
    def run_reserve_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Return the first failure; the caller then runs Unreserve of all plugins."""
        hooks = state.hooks.reserve
        for plugin in self.reserve_plugins:
            began = self.monotonic() if hooks else 0.0
            try:
                status = plugin.reserve(state, pod, node_name)
                if status is not None:
                    check_answer(status, "reserve")
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status = Status.as_error(error)
            for hook in hooks:
                hook(state, plugin.name, node_name, status, self.monotonic() - began)
            if status is not None and not status.is_success:
                if status.is_rejected:
                    return status.with_plugin(plugin.name)
                return failed_status("Reserve", plugin.name, status)
        return None

    @observed("unreserve")
    def run_unreserve_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo Reserve, in reverse order. A plugin that fails does not keep the others from it."""
        hooks = state.hooks.unreserve
        for plugin in reversed(self.reserve_plugins):
            began = self.monotonic() if hooks else 0.0
            try:
                plugin.unreserve(state, pod, node_name)
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                self.environment.report(pod, failed_status("Unreserve", plugin.name, Status.as_error(error)))
            for hook in hooks:
                hook(state, plugin.name, self.monotonic() - began)

    @observed("permit")
    def run_permit_plugins(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, dict[str, float]]:
        """Return success, a failure, or Wait with the seconds that each plugin allows."""
        hooks = state.hooks.permit
        waits: dict[str, float] = {}
        for plugin in self.permit_plugins:
            if plugin.name in state.skip_plugins:
                continue
            began = self.monotonic() if hooks else 0.0
            try:
                status, timeout_seconds = plugin.permit(state, pod, node_name)
                if status is not None:
                    check_answer(status, "permit")
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status, timeout_seconds = Status.as_error(error), 0.0
            for hook in hooks:
                hook(state, plugin.name, status, timeout_seconds, self.monotonic() - began)
            if status is None or status.is_success:
                continue
            if status.is_wait:
                waits[plugin.name] = min(timeout_seconds, PERMIT_TIMEOUT_SECONDS_MAX)
            elif status.is_rejected:
                return status.with_plugin(plugin.name), {}
            else:
                return failed_status("Permit", plugin.name, status), {}
        if not waits:
            return None, {}
        text = f'one or more plugins asked to wait and no plugin rejected pod "{pod.name}"'
        return Status(Code.Wait, (text,)), waits

    @observed("pre_bind_pre_flight")
    def run_pre_bind_pre_flights(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Return Skip when no PreBind plugin has anything to do, Success when one has, or an error.

        Source: KEP-5278, "PreBindPreFlight".
        """
        hooks = state.hooks.pre_bind_pre_flight
        skipped, parallel = [], []
        for plugin in self.pre_bind_plugins:
            began = self.monotonic() if hooks else 0.0
            try:
                status, allow_parallel = plugin.pre_bind_pre_flight(state, pod, node_name)
                if status is not None:
                    check_answer(status, "pre_bind_pre_flight")
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status, allow_parallel = Status.as_error(error), False
            for hook in hooks:
                hook(state, plugin.name, status, self.monotonic() - began)
            if status is None or status.is_success:
                if allow_parallel:
                    parallel.append(plugin.name)
            elif status.is_skip:
                skipped.append(plugin.name)
            else:
                return failed_pre_flight(plugin.name, status)
        state.skip_pre_bind_plugins = frozenset(skipped)
        state.parallel_pre_bind_plugins = frozenset(parallel)
        return Status(Code.Skip if len(skipped) == len(self.pre_bind_plugins) else Code.Success)


def _failed(step: str, plugin: ScorePlugin, error: Exception) -> str:
    """Return upstream's message for a Score plugin that raised."""
    return f'{step}: plugin "{plugin.name}" failed with: {error_text(error)}'


def _nothing_left(narrowing: set[str]) -> Status:
    """Return the rejection by plugins whose PreFilter left no common node."""
    names = sorted(narrowing)
    text = f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"
    if len(names) == 1:
        text = f"node(s) didn't satisfy plugin {names[0]}"
    return Status(Code.UnschedulableAndUnresolvable, (text,))
