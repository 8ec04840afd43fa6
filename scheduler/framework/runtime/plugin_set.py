"""Build a profile's plugins and keep them by extension point.

Source: kube-scheduler 1.36, framework runtime, NewFramework.
"""

# mypy: disable-error-code="type-abstract"

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar, cast

from google.protobuf.message import Message

from nominee.machinery.api.kinds import Kind
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.interface import (
    ApiClient,
    BindPlugin,
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    Lister,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from nominee.scheduler.framework.nominations.contended_nodes import ContendedNodes
from nominee.scheduler.framework.runtime.environment import EMPTY_LISTER, Environment
from nominee.scheduler.framework.runtime.instrumentation import NO_POINT_HOOKS, PointHooks
from nominee.scheduler.framework.runtime.profile import PLUGIN_BASES, ExtensionPoint, PluginFactory, Profile
from nominee.scheduler.framework.types import QueuedPodInfo

M = TypeVar("M", bound=Message)
P = TypeVar("P", bound=Plugin)


class PluginConfigError(ValueError):
    """The profile cannot run; the text names the plugin."""


class PluginSet:
    """The plugins of one profile. `runtime.Framework` runs them and is the `Handle` that they get.

    Source: Kubernetes 1.36, pkg/scheduler/framework/runtime/framework.go, fwk.Handle.
    """

    def __init__(
        self,
        profile: Profile,
        registry: Mapping[str, PluginFactory],
        environment: Environment,
        point_hooks: PointHooks = NO_POINT_HOOKS,
    ) -> None:
        """Build every plugin of the profile once.

        Raises:
            PluginConfigError: a plugin does not exist or does not implement an extension point.
            ArgumentError: a plugin's arguments are wrong.
        """
        self.profile = profile
        self.profile_name = profile.name
        self.environment = environment
        self.snapshot = environment.snapshot
        self.nominator = environment.nominator
        self.scheduling_groups = environment.scheduling_groups
        self.gates = environment.gates
        self.version = environment.version
        self.resize_preemption = environment.resize_preemption
        self.clock = environment.clock
        self.rng = environment.rng
        self.recorder = environment.recorder
        self.waiting_pod = environment.waiting_pod
        self.activate = environment.activate
        self.point_hooks = point_hooks
        self.monotonic = environment.clock.monotonic
        self.contended = ContendedNodes(environment.nominator)
        self.plugins: dict[str, Plugin] = {}
        for name in profile.plugin_names():
            factory = registry.get(name)
            if factory is None:
                raise PluginConfigError(f"{name} does not exist")
            self.plugins[name] = factory(profile.args.get(name, {}), cast("Handle", self))
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
        self.skips_deferred_resizes = frozenset(
            name for name, plugin in self.plugins.items() if plugin.skips_deferred_resizes
        )
        self.queue_sort_plugin = self._queue_sort()
        self.score_weights = self._weights()
        self.pre_filter_extensions: list[tuple[str, PreFilterExtensions]] = [
            (plugin.name, extensions)
            for plugin in self.pre_filter_plugins
            if (extensions := plugin.pre_filter_extensions()) is not None
        ]

    def _at(self, point: ExtensionPoint, base: type[P]) -> list[P]:
        found: list[P] = []
        for enabled in self.profile.points.get(point, ()):
            plugin = self.plugins[enabled.name]
            if not isinstance(plugin, PLUGIN_BASES[point]) or not isinstance(plugin, base):
                raise PluginConfigError(f"plugin {enabled.name} does not extend {point.value} plugin")
            found.append(plugin)
        return found

    def _queue_sort(self) -> QueueSortPlugin:
        sorters = self._at(ExtensionPoint.QUEUE_SORT, QueueSortPlugin)
        if len(sorters) != 1:
            raise PluginConfigError(
                f"profile {self.profile.name} needs exactly one queueSort plugin, it has {len(sorters)}"
            )
        return sorters[0]

    def _weights(self) -> dict[str, int]:
        """Return the weights of the score plugins by name."""
        weights = {each.name: each.weight for each in self.profile.points.get(ExtensionPoint.SCORE, ())}
        for name, weight in weights.items():
            if weight <= 0:
                raise PluginConfigError(f"score plugin {name} is not configured with weight")
        return weights

    @property
    def client(self) -> ApiClient:
        client = self.environment.client
        if client is None:
            raise RuntimeError("there is no API server here: this is a simulation")
        return client

    def lister(self, kind: Kind[M]) -> Lister[M]:
        """Return the lister of a kind; an empty one for kinds that are not watched."""
        return self.environment.listers.get(kind, EMPTY_LISTER)

    def note(self, metric: str, labels: tuple[str, ...], value: float = 1.0) -> None:
        self.environment.note(metric, labels, value)

    @property
    def has_score_plugins(self) -> bool:
        return bool(self.score_plugins)

    @contextmanager
    def within(self, nodes: Collection[str] | None) -> Iterator[None]:
        """Show the plugins these nodes only while the block runs (None: all nodes)."""
        if nodes is None:
            yield
            return
        whole = self.snapshot
        self.snapshot = Snapshot(info for info in whole.nodes if info.name in nodes)
        try:
            yield
        finally:
            self.snapshot = whole

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Return whether `a` is tried before `b`."""
        return self.queue_sort_plugin.less(a, b)

    def events_to_register(self) -> dict[str, Sequence[ClusterEventWithHint] | None]:
        """Return the registrations of the plugins that can reject a pod; None: every event.

        A plugin that registers added nodes gets changes of taints too: a node often comes with a taint that
        is removed a moment later, and the plugin may not have run for the node while it was tainted
        (kubernetes/kubernetes#109437).
        """
        rejecting = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)
        found: dict[str, Sequence[ClusterEventWithHint] | None] = {}
        for name, plugin in self.plugins.items():
            if isinstance(plugin, EnqueueExtensions):
                found[name] = _with_taint_event(plugin.events_to_register())
            elif isinstance(plugin, rejecting):
                found[name] = None
        return found


def _with_taint_event(registered: Sequence[ClusterEventWithHint]) -> Sequence[ClusterEventWithHint]:
    on_nodes = ActionType(0)
    for registration in registered:
        if registration.event.resource is EventResource.Node:
            on_nodes |= registration.event.action
    if on_nodes & ActionType.Add and not on_nodes & ActionType.UpdateNodeTaint:
        taint = ClusterEvent(EventResource.Node, ActionType.UpdateNodeTaint)
        return (*registered, ClusterEventWithHint(taint))
    return registered
