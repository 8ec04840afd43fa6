"""A framework that notes what each plugin says (for the annotations of kube-scheduler-simulator's users).

Costs several times the attempt itself; only made when asked for (`--simulator-annotations`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from machinery import kinds, logs
from machinery.client import Client, retry_unavailable
from machinery.clock import Clock
from machinery.errors import StatusError
from machinery.objects import ObjectKey
from machinery.pb import core
from machinery.wire.scalars import format_duration
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.interface import (
    FilterPlugin,
    PreFilterResult,
    Rows,
    Status,
    is_success,
)
from scheduler.framework.snapshot import Snapshot
from scheduler.framework.types import NodeInfo, PodInfo
from scheduler.shell.attempt import Attempt
from scheduler.shell.measured import MeasuredFramework
from scheduler.simulator_results import PASSED, STATE_KEY, VICTIM, WAIT, Results, said, with_history

NANOS_PER_SECOND = 1_000_000_000
_log = logs.get()


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
    """None in a dry run."""
    own = state.get(STATE_KEY)
    return None if own is None else cast("_Own", own).results


class RecordingFramework(MeasuredFramework):
    """Notes into the attempt's state."""

    def record_plugins(self) -> None:
        """Makes the plugins' own methods tell; once, when the framework is made."""
        for pre_filter in self.pre_filter_plugins:
            _wrap(pre_filter, "pre_filter", _pre_filtered)
        for post_filter in self.post_filter_plugins:
            _wrap(post_filter, "post_filter", _post_filtered)
        for pre_score in self.pre_score_plugins:
            _wrap(pre_score, "pre_score", _pre_scored)
        for score in self.score_plugins:
            _wrap(score, "score_all", _scored)
        for reserve in self.reserve_plugins:
            _wrap(reserve, "reserve", _reserved)
        for permit in self.permit_plugins:
            _wrap(permit, "permit", _permitted)
        for pre_bind in self.pre_bind_plugins:
            _wrap_async(pre_bind, "pre_bind", "prebind")
        for bind in self.bind_plugins:
            _wrap_async(bind, "bind", "bind")

    def run_pre_filter_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult, Status | None, set[str]]:
        if state.get(STATE_KEY) is None:
            state.write(STATE_KEY, _Own())
        return super().run_pre_filter_plugins(state, pod, snapshot)

    def filter_rows(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> list[tuple[FilterPlugin, NDArray[np.bool_]]]:
        verdicts = super().filter_rows(state, pod, snapshot, rows)
        results = results_of(state)
        if results is not None:
            self._note_rows(results, state, pod, snapshot, rows, dict(verdicts))
        return verdicts

    def _note_rows(
        self,
        results: Results,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        rows: Rows,
        masks: dict[FilterPlugin, NDArray[np.bool_]],
    ) -> None:
        """Of each row, the plugins up to the first one that refuses it."""
        is_crowded = snapshot is not self.snapshot
        asked = [p for p in self.filter_plugins if p.name not in state.skip_filter_plugins]
        numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        for position, row in enumerate(numbers.tolist()):
            node = snapshot.nodes[row]
            said_of: dict[str, str] = {}
            is_refused = False
            for plugin in asked:
                mask = masks.get(plugin)
                if mask is None or mask[position]:
                    said_of[plugin.name] = PASSED
                    continue
                statuses, index = plugin.explain_all(state, pod, snapshot, np.array([row], dtype=np.intp))
                said_of[plugin.name] = said(statuses[int(index[0])])
                is_refused = True
                break
            if is_crowded and is_refused:
                results.blocked.add(node.name)
            if is_crowded == is_refused or node.name not in results.blocked:
                results.filter[node.name] = said_of

    def run_filter_plugins(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        status = super().run_filter_plugins(state, pod, node)
        results = results_of(state)
        if results is not None:
            said_of: dict[str, str] = {}
            for plugin in self.filter_plugins:
                if plugin.name in state.skip_filter_plugins:
                    continue
                if status is not None and plugin.name == status.plugin:
                    said_of[plugin.name] = said(status)
                    break
                said_of[plugin.name] = PASSED
            results.filter[node.name] = said_of
        return status

    def run_score_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> dict[str, NDArray[np.int64]]:
        found = super().run_score_plugins(state, pod, snapshot, rows)
        results = results_of(state)
        if results is not None:
            names = [node.name for node in snapshot.nodes_at(rows)]
            for plugin, scores in found.items():
                for name, score in zip(names, scores.tolist(), strict=True):
                    results.finalscore.setdefault(name, {})[plugin] = str(score)
        return found


def _wrap(plugin: Any, method: str, note: Callable[[Results, str, tuple[Any, ...], Any], None]) -> None:
    original = getattr(plugin, method)

    def noting(state: CycleState, *args: Any) -> Any:
        answer = original(state, *args)
        results = results_of(state)
        if results is not None:
            note(results, plugin.name, args, answer)
        return answer

    setattr(plugin, method, noting)


def _wrap_async(plugin: Any, method: str, where: str) -> None:
    original = getattr(plugin, method)

    async def noting(state: CycleState, *args: Any) -> Any:
        status = await original(state, *args)
        results = results_of(state)
        if results is not None:
            getattr(results, where)[plugin.name] = said(status)
        return status

    setattr(plugin, method, noting)


def _pre_filtered(results: Results, plugin: str, args: tuple[Any, ...], answer: Any) -> None:
    narrowed, status = answer
    results.prefilter_status[plugin] = said(status)
    if narrowed is not None and narrowed.node_names is not None:
        results.prefilter[plugin] = sorted(narrowed.node_names)


def _post_filtered(results: Results, plugin: str, args: tuple[Any, ...], answer: Any) -> None:
    """Every node that was refused, and at the nominated one that there are victims."""
    found, status = answer
    info = None if found is None or not is_success(status) else found.nominating_info
    for node, _ in list(args[1].items()):
        by_plugin = results.postfilter.setdefault(node, {})
        if info is not None and info.node_name == node:
            by_plugin[plugin] = VICTIM


def _pre_scored(results: Results, plugin: str, args: tuple[Any, ...], answer: Any) -> None:
    results.prescore[plugin] = said(answer)


def _scored(results: Results, plugin: str, args: tuple[Any, ...], answer: Any) -> None:
    _, snapshot, rows = args
    for node, score in zip(snapshot.nodes_at(rows), answer.tolist(), strict=True):
        results.score.setdefault(node.name, {})[plugin] = str(score)


def _reserved(results: Results, plugin: str, args: tuple[Any, ...], answer: Any) -> None:
    results.selected_node = args[1]
    results.reserve[plugin] = said(answer)


def _permitted(results: Results, plugin: str, args: tuple[Any, ...], answer: Any) -> None:
    status, seconds = answer
    results.permit[plugin] = WAIT if status is not None and status.is_wait else said(status)
    results.permit_timeout[plugin] = format_duration(round(seconds * NANOS_PER_SECOND))


class ResultWriter:
    """One PATCH of the pod's annotations after each attempt; what goes wrong is logged."""

    def __init__(self, client: Client, clock: Clock, cached: Callable[[ObjectKey], core.Pod | None]) -> None:
        self._client = client
        self._clock = clock
        self._cached = cached

    async def write(self, attempt: Attempt) -> None:
        """The pod's attempt is over: bound, or back in the queue."""
        results = results_of(attempt.state)
        pod = self._cached(attempt.pod.key)
        if results is None or pod is None or pod.metadata.uid != attempt.pod.uid:
            return
        annotations = with_history(results.annotations(), dict(pod.metadata.annotations))
        patch = {"metadata": {"uid": attempt.pod.uid, "annotations": annotations}}
        try:
            await retry_unavailable(
                lambda: self._client.patch(kinds.POD, attempt.pod.name, attempt.pod.namespace, patch),
                clock=self._clock,
            )
        except StatusError as error:
            _log.warning("Could not write results", pod=attempt.pod.key, step="results", error=error)
