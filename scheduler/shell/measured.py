"""A framework that times its extension points, and in a sample of the attempts each plugin too.

Source: kube-scheduler 1.36, framework runtime. Upstream times a plugin's Filter and Score node by node; a
plugin that answers for many nodes at once is entered as so many observations of the same length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler.framework.cycle_state import CycleState
from scheduler.framework.interface import (
    Code,
    FilterPlugin,
    NodeStatuses,
    Plugin,
    PostFilterResult,
    PreFilterResult,
    Rows,
    ScorePlugin,
    Status,
)
from scheduler.framework.profile import PluginFactory, Profile
from scheduler.framework.runtime import Environment, Framework, refused_by
from scheduler.framework.snapshot import Snapshot
from scheduler.framework.types import NodeInfo, PodInfo
from scheduler.shell.durations import Series

T = TypeVar("T")
ERROR, SUCCESS = Code.Error.name, Code.Success.name

# The series of (extension point, status), and of (plugin, extension point, status).
PointSeries = Callable[[str, str], Series]
PluginSeries = Callable[[str, str, str], Series]


# A plugin (or other owner), the name of its method, and what stands in for it.
_TimedMethod = tuple[object, str, Callable[..., Any]]


def _word(status: Status | None) -> str:
    return SUCCESS if status is None else status.code.name


def _first_word(found: tuple[Any, Status | None] | tuple[Status | None, Any]) -> str:
    """Of an answer that has a status beside something else."""
    status = next((each for each in found if isinstance(each, Status)), None)
    return _word(status)


@contextmanager
def _installed(methods: list[_TimedMethod]) -> Iterator[None]:
    before = [(owner, name, vars(owner).get(name)) for owner, name, _ in methods]
    for owner, name, timed in methods:
        setattr(owner, name, timed)
    try:
        yield
    finally:
        for owner, name, original in reversed(before):
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)


class MeasuredFramework(Framework):
    """Plugins are timed in attempts whose state says `record_plugin_metrics`."""

    def __init__(
        self,
        profile: Profile,
        registry: Mapping[str, PluginFactory],
        environment: Environment,
        point_series: PointSeries,
        plugin_series: PluginSeries,
    ) -> None:
        super().__init__(profile, registry, environment)
        self._of_point = point_series
        self._of_plugin = plugin_series
        self._monotonic = environment.clock.monotonic
        self._points: dict[object, Series] = {}  # by point, or by point and status; looked up for every pod
        # Rounds by the plugins that were skipped in them: one count an attempt, told apart when asked.
        self._filter_rounds: Counter[frozenset[str]] = Counter()
        self._score_rounds: Counter[frozenset[str]] = Counter()
        for binds, method, point in (
            (self.pre_bind_plugins, "pre_bind", "PreBind"),
            (self.bind_plugins, "bind", "Bind"),
            (self.post_bind_plugins, "post_bind", "PostBind"),
        ):
            for plugin in binds:
                self._time_async(plugin, method, point)

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

    # Extension points

    def _note(self, point: str, status: Status | None, began: float) -> None:
        seconds = self._monotonic() - began
        key = point if status is None else (point, status.code.value)
        series = self._points.get(key)
        if series is None:
            series = self._points[key] = self._of_point(point, _word(status))
        series.observe(seconds)

    def run_pre_filter_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult, Status | None, set[str]]:
        began = self._monotonic()
        if state.record_plugin_metrics:
            with _installed(self._in_pre_filter):
                found = super().run_pre_filter_plugins(state, pod, snapshot)
        else:
            found = super().run_pre_filter_plugins(state, pod, snapshot)
        self._note("PreFilter", found[1], began)
        self._filter_rounds[state.skip_filter_plugins] += 1
        return found

    def run_search(self, state: CycleState, search: Callable[[], T]) -> T:
        word, began = ERROR, self._monotonic()
        try:
            if state.record_plugin_metrics:
                with _installed(self._in_filter):
                    found = search()
            else:
                found = search()
            word = SUCCESS
            return found
        finally:
            self._of_point("Filter", word).observe(self._monotonic() - began)

    def run_post_filter_plugins(
        self, state: CycleState, pod: PodInfo, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        began = self._monotonic()
        if state.record_plugin_metrics:
            with _installed(self._in_post_filter):
                found = super().run_post_filter_plugins(state, pod, statuses)
        else:
            found = super().run_post_filter_plugins(state, pod, statuses)
        self._note("PostFilter", found[1], began)
        return found

    def run_pre_score_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> Status | None:
        began = self._monotonic()
        if state.record_plugin_metrics:
            with _installed(self._in_pre_score):
                found = super().run_pre_score_plugins(state, pod, snapshot, rows)
        else:
            found = super().run_pre_score_plugins(state, pod, snapshot, rows)
        self._note("PreScore", found, began)
        self._score_rounds[state.skip_score_plugins] += 1
        return found

    def run_score_plugins(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> dict[str, NDArray[np.int64]]:
        word, began = ERROR, self._monotonic()
        try:
            if state.record_plugin_metrics:
                with _installed(self._in_score):
                    found = super().run_score_plugins(state, pod, snapshot, rows)
            else:
                found = super().run_score_plugins(state, pod, snapshot, rows)
            word = SUCCESS
            return found
        finally:
            self._of_point("Score", word).observe(self._monotonic() - began)

    def run_reserve_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        began = self._monotonic()
        if state.record_plugin_metrics:
            with _installed(self._in_reserve):
                found = super().run_reserve_plugins(state, pod, node_name)
        else:
            found = super().run_reserve_plugins(state, pod, node_name)
        self._note("Reserve", found, began)
        return found

    def run_unreserve_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        began = self._monotonic()
        if state.record_plugin_metrics:
            with _installed(self._in_reserve):
                super().run_unreserve_plugins(state, pod, node_name)
        else:
            super().run_unreserve_plugins(state, pod, node_name)
        self._note("Unreserve", None, began)

    def run_permit_plugins(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, dict[str, float]]:
        began = self._monotonic()
        if state.record_plugin_metrics:
            with _installed(self._in_permit):
                found = super().run_permit_plugins(state, pod, node_name)
        else:
            found = super().run_permit_plugins(state, pod, node_name)
        self._note("Permit", found[0], began)
        return found

    def run_pre_bind_pre_flights(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        began = self._monotonic()
        if state.record_plugin_metrics:
            with _installed(self._in_pre_flight):
                found = super().run_pre_bind_pre_flights(state, pod, node_name)
        else:
            found = super().run_pre_bind_pre_flights(state, pod, node_name)
        self._note("PreBindPreFlight", found, began)
        if found.is_skip:
            # Upstream runs PreBind all the same, and it finds nothing to do.
            self._of_point("PreBind", SUCCESS).observe(0.0)
        return found

    async def run_pre_bind_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return await self._timed("PreBind", super().run_pre_bind_plugins(state, pod, node_name))

    async def run_bind_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return await self._timed("Bind", super().run_bind_plugins(state, pod, node_name))

    async def run_post_bind_plugins(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        await self._timed("PostBind", super().run_post_bind_plugins(state, pod, node_name))

    async def _timed(self, point: str, running: Awaitable[Status | None]) -> Status | None:
        word, began = ERROR, self._monotonic()
        try:
            found = await running
            word = _word(found)
            return found
        finally:
            self._of_point(point, word).observe(self._monotonic() - began)

    # Plugins

    @cached_property
    def _in_pre_filter(self) -> list[_TimedMethod]:
        return [self._timed_one(p, "pre_filter", "PreFilter", _first_word) for p in self.pre_filter_plugins]

    @cached_property
    def _in_filter(self) -> list[_TimedMethod]:
        return [*self._in_extensions, *(self._timed_filter(p) for p in self.filter_plugins)]

    @cached_property
    def _in_extensions(self) -> list[_TimedMethod]:
        methods = (("add_pod", "PreFilterExtensionAddPod"), ("remove_pod", "PreFilterExtensionRemovePod"))
        return [
            self._timed_one(extensions, method, point, _word, name)
            for name, extensions in self._extensions
            for method, point in methods
        ]

    @cached_property
    def _in_post_filter(self) -> list[_TimedMethod]:
        """Preemption's dry run is made of filters."""
        own = [self._timed_one(p, "post_filter", "PostFilter", _first_word) for p in self.post_filter_plugins]
        return [*own, *self._in_extensions]

    @cached_property
    def _in_pre_score(self) -> list[_TimedMethod]:
        return [self._timed_one(p, "pre_score", "PreScore", _word) for p in self.pre_score_plugins]

    @cached_property
    def _in_score(self) -> list[_TimedMethod]:
        normalizing = [p for p in self.score_plugins if type(p).normalize is not ScorePlugin.normalize]
        return [
            *(self._timed_score(plugin) for plugin in self.score_plugins),
            *(
                self._timed_one(p, "normalize", "ScoreExtensionNormalize", lambda _: SUCCESS)
                for p in normalizing
            ),
        ]

    @cached_property
    def _in_reserve(self) -> list[_TimedMethod]:
        methods = (("reserve", "Reserve"), ("unreserve", "Unreserve"))
        return [self._timed_one(p, m, point, _word) for p in self.reserve_plugins for m, point in methods]

    @cached_property
    def _in_permit(self) -> list[_TimedMethod]:
        return [self._timed_one(p, "permit", "Permit", _first_word) for p in self.permit_plugins]

    @cached_property
    def _in_pre_flight(self) -> list[_TimedMethod]:
        point = "PreBindPreFlight"
        return [self._timed_one(p, "pre_bind_pre_flight", point, _first_word) for p in self.pre_bind_plugins]

    def _timed_one(
        self, owner: object, method: str, point: str, word_of: Callable[[Any], str], name: str = ""
    ) -> _TimedMethod:
        original, monotonic, of_plugin = getattr(owner, method), self._monotonic, self._of_plugin
        plugin = name or getattr(owner, "name", "")

        def timed(*args: Any) -> Any:
            word, began = ERROR, monotonic()
            try:
                found = original(*args)
                word = word_of(found)
                return found
            finally:
                of_plugin(plugin, point, word).observe(monotonic() - began)

        return owner, method, timed

    def _time_async(self, plugin: Plugin, method: str, point: str) -> None:
        """For good: others run while it waits."""
        original, monotonic, of_plugin = getattr(plugin, method), self._monotonic, self._of_plugin

        async def timed(state: CycleState, *args: Any) -> Any:
            if not state.record_plugin_metrics:
                return await original(state, *args)
            word, began = ERROR, monotonic()
            try:
                found = await original(state, *args)
                word = _word(found)
                return found
            finally:
                of_plugin(plugin.name, point, word).observe(monotonic() - began)

        setattr(plugin, method, timed)

    def _timed_filter(self, plugin: FilterPlugin) -> _TimedMethod:
        original, monotonic, of_plugin = plugin.filter_all, self._monotonic, self._of_plugin
        succeeded = of_plugin(plugin.name, "Filter", SUCCESS)

        def timed(
            state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
        ) -> NDArray[np.bool_] | None:
            began = monotonic()
            mask = original(state, pod, snapshot, rows)
            size = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
            each = (monotonic() - began) / max(size, 1)
            passed = size if mask is None else int(np.count_nonzero(mask))
            if passed:
                succeeded.observe(each, passed)
            if mask is not None and passed < size:
                numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
                statuses, index = plugin.explain_all(state, pod, snapshot, numbers[~mask])
                counts = np.bincount(index, minlength=len(statuses)).tolist()
                for status, count in zip(statuses, counts, strict=True):
                    of_plugin(plugin.name, "Filter", status.code.name).observe(each, count)
            return mask

        return plugin, "filter_all", timed

    def _timed_score(self, plugin: ScorePlugin) -> _TimedMethod:
        original, monotonic = plugin.score_all, self._monotonic
        succeeded = self._of_plugin(plugin.name, "Score", SUCCESS)

        def timed(
            state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
        ) -> NDArray[np.int64]:
            began = monotonic()
            found = original(state, pod, snapshot, rows)
            each = (monotonic() - began) / max(len(rows), 1)
            succeeded.observe(each, len(rows))
            return found

        return plugin, "score_all", timed

    def run_filter_plugins(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if not state.record_plugin_metrics:
            return super().run_filter_plugins(state, pod, node)
        for plugin in self.filter_plugins:
            if plugin.name in state.skip_filter_plugins:
                continue
            began = self._monotonic()
            status = plugin.filter(state, pod, node)
            self._of_plugin(plugin.name, "Filter", _word(status)).observe(self._monotonic() - began)
            if status is not None and not status.is_success:
                return refused_by(plugin, status)
        return None
