"""Hooks that see what plugins do: a tuple per extension point, so that an empty one costs one test.

Point hooks belong to a framework and are called after each run of an extension point. Plugin hooks belong to
one attempt (`CycleState.hooks`) and are called after each plugin. Neither may change what it is shown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.columns import Rows
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    FilterPlugin,
    NodeStatuses,
    PostFilterResult,
    PreFilterResult,
    Status,
)
from nominee.scheduler.framework.plugin_hooks import Hook, PluginHooks

if TYPE_CHECKING:
    from nominee.scheduler.framework.snapshot import Snapshot
    from nominee.scheduler.framework.types import NodeInfo, PodInfo

# Of one run: the attempt's state, the status that came of it (None: success) and its duration in seconds.
PointHook = Callable[[CycleState, Status | None, float], None]
Verdicts = list[tuple[FilterPlugin, NDArray[np.bool_]]]
FAILED: Final = Status(Code.Error)

Run = TypeVar("Run", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class PointHooks:
    """Hooks of one framework, by extension point."""

    pre_filter: tuple[PointHook, ...] = ()
    filter: tuple[PointHook, ...] = ()
    post_filter: tuple[PointHook, ...] = ()
    pre_score: tuple[PointHook, ...] = ()
    score: tuple[PointHook, ...] = ()
    reserve: tuple[PointHook, ...] = ()
    unreserve: tuple[PointHook, ...] = ()
    permit: tuple[PointHook, ...] = ()
    pre_bind_pre_flight: tuple[PointHook, ...] = ()
    pre_bind: tuple[PointHook, ...] = ()
    bind: tuple[PointHook, ...] = ()
    post_bind: tuple[PointHook, ...] = ()


NO_POINT_HOOKS: Final = PointHooks()


class PluginObserver:
    """Base of what sees each plugin of an attempt: override the methods of interest.

    `seconds` is how long the plugin took; a plugin that raised has an Error status.
    """

    def pre_filter(
        self,
        state: CycleState,
        plugin: str,
        result: PreFilterResult | None,
        status: Status | None,
        seconds: float,
    ) -> None:
        """Observe the end of a plugin's PreFilter."""

    def pre_filter_extension(
        self, state: CycleState, plugin: str, point: str, status: Status | None, seconds: float
    ) -> None:
        """Observe the end of AddPod or RemovePod; `point` is PreFilterExtensionAddPod or ...RemovePod."""

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
        """Observe the end of a plugin's Filter of many nodes; `mask` None: all rows passed."""

    def filter_node(
        self, state: CycleState, plugin: str, node: NodeInfo, status: Status | None, seconds: float
    ) -> None:
        """Observe the end of a plugin's Filter of one node."""

    def rows_filtered(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows, verdicts: Verdicts
    ) -> None:
        """Observe all Filter plugins for many nodes, with the masks of those that rejected some."""

    def node_filtered(self, state: CycleState, node: NodeInfo, status: Status | None) -> None:
        """Observe all Filter plugins for one node, with the first rejection."""

    def post_filter(
        self,
        state: CycleState,
        plugin: str,
        statuses: NodeStatuses,
        result: PostFilterResult | None,
        status: Status | None,
        seconds: float,
    ) -> None:
        """Observe the end of a plugin's PostFilter."""

    def pre_score(self, state: CycleState, plugin: str, status: Status | None, seconds: float) -> None:
        """Observe the end of a plugin's PreScore."""

    def score(
        self,
        state: CycleState,
        plugin: str,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        scores: NDArray[np.int64],
        seconds: float,
    ) -> None:
        """Observe the end of a plugin's Score of all feasible nodes, before normalisation."""

    def normalize(self, state: CycleState, plugin: str, seconds: float) -> None:
        """Observe the end of a plugin's NormalizeScore, if it has one."""

    def scored(
        self,
        state: CycleState,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        scores: dict[str, NDArray[np.int64]],
    ) -> None:
        """Observe all Score plugins, with the weighted scores by plugin."""

    def reserve(
        self, state: CycleState, plugin: str, node_name: str, status: Status | None, seconds: float
    ) -> None:
        """Observe the end of a plugin's Reserve."""

    def unreserve(self, state: CycleState, plugin: str, seconds: float) -> None:
        """Observe the end of a plugin's Unreserve."""

    def permit(
        self,
        state: CycleState,
        plugin: str,
        status: Status | None,
        timeout_seconds: float,
        seconds: float,
    ) -> None:
        """Observe the end of a plugin's Permit; `timeout_seconds`: how long the pod may wait for it."""

    def pre_bind_pre_flight(
        self, state: CycleState, plugin: str, status: Status | None, seconds: float
    ) -> None:
        """Observe the end of a plugin's PreBindPreFlight."""

    def pre_bind(self, state: CycleState, plugin: str, status: Status | None, seconds: float) -> None:
        """Observe the end of a plugin's PreBind."""

    def bind(self, state: CycleState, plugin: str, status: Status | None, seconds: float) -> None:
        """Observe the end of a plugin's Bind."""

    def post_bind(self, state: CycleState, plugin: str, seconds: float) -> None:
        """Observe the end of a plugin's PostBind."""


def hooks_of(*observers: PluginObserver) -> PluginHooks:
    """Return the hooks that call these observers, in order: the methods that they override."""
    found: dict[str, Hook] = {}
    for each in fields(PluginHooks):
        base = getattr(PluginObserver, each.name)
        found[each.name] = tuple(
            getattr(observer, each.name)
            for observer in observers
            if getattr(type(observer), each.name) is not base
        )
    return PluginHooks(**found)


class Hooked(Protocol):
    """An object that runs extension points: a framework, or the shell's part of one."""

    @property
    def point_hooks(self) -> PointHooks: ...

    def monotonic(self) -> float: ...


def observed(point: str) -> Callable[[Run], Run]:
    """Call the point's hooks after each run of the decorated method; a run that raises counts as an Error."""

    def decorate(run: Run) -> Run:
        @functools.wraps(run)
        def observed_run(runner: Hooked, state: CycleState, *args: Any) -> Any:
            hooks: tuple[PointHook, ...] = getattr(runner.point_hooks, point)
            if not hooks:
                return run(runner, state, *args)
            status: Status | None = FAILED
            began = runner.monotonic()
            try:
                answer = run(runner, state, *args)
                status = None if answer is None else _status_of(answer)
                return answer
            finally:
                seconds = runner.monotonic() - began
                for hook in hooks:
                    hook(state, status, seconds)

        return cast("Run", observed_run)

    return decorate


def _status_of(answer: object) -> Status | None:
    """Return the status that an extension point came to: its answer, or a part of it."""
    if not isinstance(answer, tuple):
        return answer if isinstance(answer, Status) else None
    for part in answer:
        if isinstance(part, Status):
            return part
    return None
