"""Define which plugins a profile runs at each extension point, in which order and with which weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from nominee.scheduler.framework import interface
from nominee.scheduler.framework.interface import Handle, Plugin

DEFAULT_SCHEDULER_NAME = "default-scheduler"


class ExtensionPoint(StrEnum):
    """Extension points by their names in KubeSchedulerConfiguration.

    PreBindPreFlight belongs to preBind, AddPod and RemovePod to preFilter.
    """

    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"


PLUGIN_BASES: Mapping[ExtensionPoint, type[Plugin]] = {
    ExtensionPoint.PRE_ENQUEUE: interface.PreEnqueuePlugin,
    ExtensionPoint.QUEUE_SORT: interface.QueueSortPlugin,
    ExtensionPoint.PRE_FILTER: interface.PreFilterPlugin,
    ExtensionPoint.FILTER: interface.FilterPlugin,
    ExtensionPoint.POST_FILTER: interface.PostFilterPlugin,
    ExtensionPoint.PRE_SCORE: interface.PreScorePlugin,
    ExtensionPoint.SCORE: interface.ScorePlugin,
    ExtensionPoint.RESERVE: interface.ReservePlugin,
    ExtensionPoint.PERMIT: interface.PermitPlugin,
    ExtensionPoint.PRE_BIND: interface.PreBindPlugin,
    ExtensionPoint.BIND: interface.BindPlugin,
    ExtensionPoint.POST_BIND: interface.PostBindPlugin,
}

# Makes a plugin from its arguments (as in `pluginConfig[].args`, defaults filled by the plugin) and the
# handle. A plugin class is one. Raises `ArgumentError` when the arguments are wrong.
PluginFactory = Callable[[Mapping[str, Any], Handle], Plugin]


class ArgumentError(ValueError):
    """A plugin's argument is wrong; `path` is relative to the arguments (`scoringStrategy.type`)."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


@dataclass(frozen=True, slots=True)
class Enabled:
    """A plugin at an extension point; the weight is for scores."""

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile with everything expanded (MultiPoint included) and in order."""

    name: str = DEFAULT_SCHEDULER_NAME
    points: Mapping[ExtensionPoint, tuple[Enabled, ...]] = field(default_factory=dict)
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    percentage_of_nodes_to_score: int | None = None  # None: the scheduler's own

    def plugin_names(self) -> list[str]:
        """Return all plugins, each once, in order of first appearance."""
        return list(dict.fromkeys(e.name for enabled in self.points.values() for e in enabled))


def expand_multi_point(
    plugins: Mapping[str, type[Plugin]], enabled: tuple[Enabled, ...]
) -> dict[ExtensionPoint, tuple[Enabled, ...]]:
    """Return each plugin at every extension point that it implements, in the given order."""
    return {
        point: tuple(e for e in enabled if issubclass(plugins[e.name], base))
        for point, base in PLUGIN_BASES.items()
    }
