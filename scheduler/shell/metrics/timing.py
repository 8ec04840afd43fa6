"""Time extension points, and in a sample of the attempts each plugin too.

Source: kube-scheduler 1.36, framework runtime. Upstream times a plugin's Filter and Score node by node; a
plugin that answers for many nodes at once is entered as so many observations of the same length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.cluster.columns import Rows
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, FilterPlugin, Status
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.instrumentation import PointHook, PointHooks, status_of
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.shell.metrics.durations import Durations, Series

SUCCESS: Final = Code.Success.name
# Extension points as the metrics name them, by the names of `PointHooks`.
POINT_NAMES: Final[Mapping[str, str]] = {
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "pre_bind_pre_flight": "PreBindPreFlight",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}


def _code_name(status: Status | None) -> str:
    return SUCCESS if status is None else status.code.name


class PointTimer:
    """Durations of one profile's extension points, and how often its plugins were evaluated."""

    def __init__(self, seconds: Durations, profile: str) -> None:
        """Take the histograms; `seconds` has the labels extension point, status and profile."""
        self._seconds = seconds
        self._profile = profile
        # Rounds by the plugins that were skipped in them: one count per attempt, attributed when asked for.
        self._filter_rounds: Counter[frozenset[str]] = Counter()
        self._score_rounds: Counter[frozenset[str]] = Counter()

    def hooks(self) -> PointHooks:
        """Return the hooks of a framework of this profile."""
        hooks: dict[str, tuple[PointHook, ...]] = {
            field: (self._timer(name),) for field, name in POINT_NAMES.items()
        }
        hooks["pre_filter"] += (self._count_filter_round,)
        hooks["pre_score"] += (self._count_score_round,)
        hooks["pre_bind_pre_flight"] += (self._skipped_pre_bind,)
        return hooks

    def evaluations(self, framework: Framework) -> Counter[tuple[str, str]]:
        """Return attempts by plugin and extension point: PreFilter, Filter, PreScore and Score."""
        found: Counter[tuple[str, str]] = Counter()
        filters = (("PreFilter", framework.pre_filter_plugins), ("Filter", framework.filter_plugins))
        scores = (("PreScore", framework.pre_score_plugins), ("Score", framework.score_plugins))
        for rounds, points in ((self._filter_rounds, filters), (self._score_rounds, scores)):
            for skipped, count in rounds.items():
                for point, plugins in points:
                    found.update({(p.name, point): count for p in plugins if p.name not in skipped})
        return found

    def _timer(self, point: str) -> PointHook:
        by_code: dict[Code, Series] = {}  # looked up for every pod

        def observe(state: CycleState, status: Status | None, seconds: float) -> None:
            code = Code.Success if status is None else status.code
            series = by_code.get(code)
            if series is None:
                series = by_code[code] = self._seconds.of(point, code.name, self._profile)
            series.observe(seconds)

        return observe

    def _count_filter_round(self, state: CycleState, status: Status | None, seconds: float) -> None:
        self._filter_rounds[state.skip_filter_plugins] += 1

    def _count_score_round(self, state: CycleState, status: Status | None, seconds: float) -> None:
        self._score_rounds[state.skip_score_plugins] += 1

    def _skipped_pre_bind(self, state: CycleState, status: Status | None, seconds: float) -> None:
        """Observe PreBind without work; upstream runs it too, and it does nothing."""
        if status is not None and status.is_skip:
            self._seconds.of("PreBind", SUCCESS, self._profile).observe(0.0)


class PluginTimer:
    """Durations of each plugin; `series` gives the one of a plugin, extension point and status.

    Its attributes are hooks; see `PluginHooks`.
    """

    def __init__(self, series: Callable[[str, str, str], Series]) -> None:
        self._series = series
        self.pre_filter = self._timer("PreFilter")
        self.filter_node = self._timer("Filter")
        self.post_filter = self._timer("PostFilter")
        self.pre_score = self._timer("PreScore")
        self.normalize = self._timer("ScoreExtensionNormalize")
        self.reserve = self._timer("Reserve")
        self.unreserve = self._timer("Unreserve")
        self.permit = self._timer("Permit")
        self.pre_bind_pre_flight = self._timer("PreBindPreFlight")
        self.pre_bind = self._timer("PreBind")
        self.bind = self._timer("Bind")
        self.post_bind = self._timer("PostBind")

    def _timer(self, point: str) -> Callable[..., None]:
        def observe(state: CycleState, plugin: str, *answer: Any) -> None:
            status, seconds = status_of(answer), answer[-1]
            self._series(plugin, point, _code_name(status)).observe(seconds)

        return observe

    def pre_filter_extension(
        self, state: CycleState, plugin: str, point: str, status: Status | None, seconds: float
    ) -> None:
        self._series(plugin, point, _code_name(status)).observe(seconds)

    def filter_rows(
        self,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        rows: Rows,
        plugin: FilterPlugin,
        mask: NDArray[np.bool_] | None,
        seconds: float,
    ) -> None:
        """Observe the mean of a Filter of many nodes for each of them."""
        size = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        each = seconds / max(size, 1)
        passed = size if mask is None else int(np.count_nonzero(mask))
        if passed:
            self._series(plugin.name, "Filter", SUCCESS).observe(each, passed)
        if mask is not None and passed < size:
            numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            statuses, index = plugin.explain_all(state, pod, snapshot, numbers[~mask])
            counts = np.bincount(index, minlength=len(statuses)).tolist()
            for status, count in zip(statuses, counts, strict=True):
                self._series(plugin.name, "Filter", status.code.name).observe(each, count)

    def score(
        self,
        state: CycleState,
        plugin: str,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        scores: NDArray[np.int64],
        seconds: float,
    ) -> None:
        self._series(plugin, "Score", SUCCESS).observe(seconds / max(len(rows), 1), len(rows))
