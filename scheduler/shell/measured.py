"""A framework that times its extension points, in a sample of the attempts.

Timing every point of every attempt would cost more than some of the points do. Source: kube-scheduler 1.36
times all points and samples plugins; here the points are sampled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from scheduler.framework.cycle_state import CycleState
from scheduler.framework.interface import (
    FilterPlugin,
    NodeStatuses,
    PostFilterResult,
    PreFilterResult,
    Rows,
    Status,
)
from scheduler.framework.profile import PluginFactory, Profile
from scheduler.framework.runtime import Environment, Framework
from scheduler.framework.snapshot import Snapshot
from scheduler.framework.types import PodInfo

# (extension point, status, seconds)
Observe = Callable[[str, str, float], None]


class _Outcome:
    """What the status label of one timing will be."""

    __slots__ = ("label",)

    def __init__(self) -> None:
        self.label = "Error"

    def of(self, status: Status | None) -> None:
        self.label = "Success" if status is None else status.code.name


class MeasuredFramework(Framework):
    """Reports to `observe` for attempts whose state says `record_plugin_metrics`."""

    def __init__(
        self,
        profile: Profile,
        registry: Mapping[str, PluginFactory],
        environment: Environment,
        observe: Observe,
    ) -> None:
        super().__init__(profile, registry, environment)
        self._report = observe
        # Rounds by the plugins that were skipped in them: one count an attempt, told apart when asked.
        self._filter_rounds: Counter[frozenset[str]] = Counter()
        self._score_rounds: Counter[frozenset[str]] = Counter()

    def evaluations(self) -> Counter[tuple[str, str]]:
        """Attempts by plugin and extension point: PreFilter, Filter, PreScore and Score."""
        found: Counter[tuple[str, str]] = Counter()
        filters = (("PreFilter", self.pre_filter_plugins), ("Filter", self.filter_plugins))
        scores = (("PreScore", self.pre_score_plugins), ("Score", self.score_plugins))
        for rounds, points in ((self._filter_rounds, filters), (self._score_rounds, scores)):
            for skipped, count in rounds.items():
                for point, plugins in points:
                    found.update({(p.name, point): count for p in plugins if p.name not in skipped})
        return found

    @contextmanager
    def _timed(self, point: str) -> Iterator[_Outcome]:
        outcome = _Outcome()
        started = self.clock.monotonic()
        try:
            yield outcome
        finally:
            self._report(point, outcome.label, self.clock.monotonic() - started)

    def run_pre_filter_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult, Status | None, set[str]]:
        if state.record_plugin_metrics:
            with self._timed("PreFilter") as outcome:
                found = super().run_pre_filter_plugins(state, pod, snapshot)
                outcome.of(found[1])
        else:
            found = super().run_pre_filter_plugins(state, pod, snapshot)
        self._filter_rounds[state.skip_filter_plugins] += 1
        return found

    def filter_rows(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> list[tuple[FilterPlugin, NDArray[np.bool_]]]:
        if not state.record_plugin_metrics:
            return super().filter_rows(state, pod, snapshot, rows)
        with self._timed("Filter") as outcome:
            found = super().filter_rows(state, pod, snapshot, rows)
            outcome.of(None)
            return found

    def run_post_filter_plugins(
        self, state: CycleState, pod: PodInfo, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        if not state.record_plugin_metrics:
            return super().run_post_filter_plugins(state, pod, statuses)
        with self._timed("PostFilter") as outcome:
            found = super().run_post_filter_plugins(state, pod, statuses)
            outcome.of(found[1])
            return found

    def run_pre_score_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> Status | None:
        if state.record_plugin_metrics:
            with self._timed("PreScore") as outcome:
                found = super().run_pre_score_plugins(state, pod, snapshot, rows)
                outcome.of(found)
        else:
            found = super().run_pre_score_plugins(state, pod, snapshot, rows)
        self._score_rounds[state.skip_score_plugins] += 1
        return found

    def run_score_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> dict[str, NDArray[np.int64]]:
        if not state.record_plugin_metrics:
            return super().run_score_plugins(state, pod, snapshot, rows)
        with self._timed("Score") as outcome:
            found = super().run_score_plugins(state, pod, snapshot, rows)
            outcome.of(None)
            return found

    def run_reserve_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        if not state.record_plugin_metrics:
            return super().run_reserve_plugins(state, pod, node_name)
        with self._timed("Reserve") as outcome:
            found = super().run_reserve_plugins(state, pod, node_name)
            outcome.of(found)
            return found

    def run_permit_plugins(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, dict[str, float]]:
        if not state.record_plugin_metrics:
            return super().run_permit_plugins(state, pod, node_name)
        with self._timed("Permit") as outcome:
            found = super().run_permit_plugins(state, pod, node_name)
            outcome.of(found[0])
            return found

    async def run_pre_bind_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        if not state.record_plugin_metrics:
            return await super().run_pre_bind_plugins(state, pod, node_name)
        with self._timed("PreBind") as outcome:
            found = await super().run_pre_bind_plugins(state, pod, node_name)
            outcome.of(found)
            return found

    async def run_bind_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        if not state.record_plugin_metrics:
            return await super().run_bind_plugins(state, pod, node_name)
        with self._timed("Bind") as outcome:
            found = await super().run_bind_plugins(state, pod, node_name)
            outcome.of(found)
            return found

    async def run_post_bind_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        if not state.record_plugin_metrics:
            await super().run_post_bind_plugins(state, pod, node_name)
            return
        with self._timed("PostBind") as outcome:
            await super().run_post_bind_plugins(state, pod, node_name)
            outcome.of(None)
