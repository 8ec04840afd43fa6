"""Record each plugin's answers in one attempt, by the hooks of its state (`PluginHooks`)."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from nominee.machinery.wire.values.scalars import format_duration
from nominee.scheduler.framework.api.status import is_success
from nominee.scheduler.framework.cluster.columns import Rows
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import NodeStatuses, PostFilterResult, PreFilterResult, Status
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.instrumentation import Verdicts
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.simulator_results import PASSED, STATE_KEY, VICTIM, WAIT, Results, status_text

NANOS_PER_SECOND = 1_000_000_000


class _Own:
    """The results of an attempt's own state; a dry run's clone of it has none."""

    __slots__ = ("results",)

    def __init__(self) -> None:
        self.results: Results | None = Results()

    def clone(self) -> _Own:
        other = _Own()
        other.results = None
        return other


def results_of(state: CycleState) -> Results | None:
    """Return the results recorded in the attempt; None in a dry run."""
    own = state.get(STATE_KEY)
    return None if own is None else cast("_Own", own).results


def _kept(state: CycleState) -> Results:
    """Return the results recorded in the attempt; in a dry run others, which no caller keeps."""
    return results_of(state) or Results()


class ResultRecorder:
    """Records the answers of one framework's plugins in the attempt's state; see `PluginHooks`."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework

    def pre_filter(
        self,
        state: CycleState,
        plugin: str,
        result: PreFilterResult | None,
        status: Status | None,
        seconds: float,
    ) -> None:
        """Record a PreFilter, which is an attempt's first plugin."""
        if state.get(STATE_KEY) is None:
            state.write(STATE_KEY, _Own())
        results = _kept(state)
        results.prefilter_status[plugin] = status_text(status)
        if result is not None and result.node_names is not None:
            results.prefilter[plugin] = sorted(result.node_names)

    def rows_filtered(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows, verdicts: Verdicts
    ) -> None:
        """Record for each row the plugins up to the first one that rejects it."""
        results = results_of(state)
        if results is None:
            return
        has_nominated = snapshot is not self._framework.snapshot
        masks = dict(verdicts)
        plugins = [p for p in self._framework.filter_plugins if p.name not in state.skip_filter_plugins]
        numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        for position, row in enumerate(numbers.tolist()):
            node = snapshot.nodes[row]
            texts: dict[str, str] = {}
            is_rejected = False
            for plugin in plugins:
                mask = masks.get(plugin)
                if mask is None or mask[position]:
                    texts[plugin.name] = PASSED
                    continue
                statuses, index = plugin.explain_all(state, pod, snapshot, np.array([row], dtype=np.intp))
                texts[plugin.name] = status_text(statuses[int(index[0])])
                is_rejected = True
                break
            if has_nominated and is_rejected:
                results.blocked.add(node.name)
            if has_nominated == is_rejected or node.name not in results.blocked:
                results.filter[node.name] = texts

    def node_filtered(self, state: CycleState, node: NodeInfo, status: Status | None) -> None:
        """Record for one node the plugins up to the first one that rejects it."""
        results = results_of(state)
        if results is None:
            return
        texts: dict[str, str] = {}
        for plugin in self._framework.filter_plugins:
            if plugin.name in state.skip_filter_plugins:
                continue
            if status is not None and plugin.name == status.plugin:
                texts[plugin.name] = status_text(status)
                break
            texts[plugin.name] = PASSED
        results.filter[node.name] = texts

    def post_filter(
        self,
        state: CycleState,
        plugin: str,
        statuses: NodeStatuses,
        result: PostFilterResult | None,
        status: Status | None,
        seconds: float,
    ) -> None:
        """Record every node that was rejected, and the nominated one as that of the victims."""
        results = _kept(state)
        info = None if result is None or not is_success(status) else result.nominating_info
        for node in statuses.names():
            by_plugin = results.postfilter.setdefault(node, {})
            if info is not None and info.node_name == node:
                by_plugin[plugin] = VICTIM

    def pre_score(self, state: CycleState, plugin: str, status: Status | None, seconds: float) -> None:
        _kept(state).prescore[plugin] = status_text(status)

    def score(
        self,
        state: CycleState,
        plugin: str,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        scores: NDArray[np.int64],
        seconds: float,
    ) -> None:
        results = _kept(state)
        for node, score in zip(snapshot.nodes_at(rows), scores.tolist(), strict=True):
            results.score.setdefault(node.name, {})[plugin] = str(score)

    def scored(
        self,
        state: CycleState,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        scores: dict[str, NDArray[np.int64]],
    ) -> None:
        """Record the weighted scores of all plugins."""
        results = _kept(state)
        names = [node.name for node in snapshot.nodes_at(rows)]
        for plugin, found in scores.items():
            for name, score in zip(names, found.tolist(), strict=True):
                results.finalscore.setdefault(name, {})[plugin] = str(score)

    def reserve(
        self, state: CycleState, plugin: str, node_name: str, status: Status | None, seconds: float
    ) -> None:
        results = _kept(state)
        results.selected_node = node_name
        results.reserve[plugin] = status_text(status)

    def permit(
        self,
        state: CycleState,
        plugin: str,
        status: Status | None,
        timeout_seconds: float,
        seconds: float,
    ) -> None:
        results = _kept(state)
        is_wait = status is not None and status.is_wait
        results.permit[plugin] = WAIT if is_wait else status_text(status)
        results.permit_timeout[plugin] = format_duration(round(timeout_seconds * NANOS_PER_SECOND))

    def pre_bind(self, state: CycleState, plugin: str, status: Status | None, seconds: float) -> None:
        _kept(state).prebind[plugin] = status_text(status)

    def bind(self, state: CycleState, plugin: str, status: Status | None, seconds: float) -> None:
        _kept(state).bind[plugin] = status_text(status)
