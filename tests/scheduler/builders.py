"""Pods, nodes, plugins and a scheduler without I/O, for tests of the cores."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import codec
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    BindPlugin,
    ClusterEventWithHint,
    EnqueueExtensions,
    NodeStatuses,
    PermitPlugin,
    Plugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    ReservePlugin,
    Status,
)
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.runtime.environment import Environment
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.profile import Enabled, Profile, expand_multi_point
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins import registry

VERSION = Version(1, 36)

# Why nodes were rejected, for who does not ask.
UNREAD = cast("NodeStatuses", None)


def node(name: str, *, cpu: str = "4", pods: int = 110, **spec: Any) -> core.Node:
    """A node with 32Gi; other fields of its spec by name."""
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": str(pods)}
    return codec.from_json(
        core.Node,
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": spec,
            "status": {"capacity": amounts, "allocatable": amounts},
        },
    )


def pod(
    name: str, *, cpu: str = "1", nominated: str = "", on: str = "", priority: int = 0, **spec: Any
) -> PodInfo:
    """A pod in `default`, uid `uid-NAME`."""
    data: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
            "schedulerName": "default-scheduler",
            "priority": priority,
            **spec,
        },
        "status": {},
    }
    if on:
        data["spec"]["nodeName"] = on
    if nominated:
        data["status"]["nominatedNodeName"] = nominated
    return PodInfo(codec.from_json(core.Pod, data))


@dataclass
class Scripted(EnqueueExtensions, ReservePlugin, PermitPlugin, PreBindPlugin, BindPlugin, PostFilterPlugin):
    """Does what the test says at each extension point, and notes that it was asked."""

    name: str = "Scripted"
    reserve_status: Status | None = None
    permit_status: tuple[Status | None, float] = (None, 0.0)
    pre_flight: tuple[Status | None, bool] = (None, False)
    pre_bind_status: Status | None = None
    bind_status: Status | None = None
    post: tuple[PostFilterResult | None, Status | None] = (None, None)
    calls: list[str] = field(default_factory=list)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """None: what it rejects stays rejected."""
        return ()

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.calls.append(f"reserve {node_name}")
        return self.reserve_status

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.calls.append(f"unreserve {node_name}")

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status | None, float]:
        self.calls.append("permit")
        return self.permit_status

    def pre_bind_pre_flight(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, bool]:
        self.calls.append("preFlight")
        return self.pre_flight

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.calls.append("preBind")
        return self.pre_bind_status

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.calls.append(f"bind {node_name}")
        return self.bind_status

    def post_filter(
        self, state: CycleState, pod: PodInfo, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        self.calls.append("postFilter")
        return self.post


@dataclass
class Desk:
    """A framework over a cache, with the default plugins and those of the test."""

    framework: Framework
    cache: Cache
    nominator: Nominator

    def add_nodes(self, *nodes: core.Node) -> None:
        for each in nodes:
            self.cache.put_node(each)


def desk(
    *plugins: Plugin,
    without: tuple[str, ...] = ("DefaultPreemption", "DynamicResources"),
    environment: Mapping[str, Any] | None = None,
) -> Desk:
    """The default profile without some plugins, with the given ones at every point that they implement."""
    cache, nominator = Cache(), Nominator()
    factories: dict[str, Callable[..., Plugin]] = {**registry.IN_TREE}
    classes: dict[str, type[Plugin]] = {**registry.IN_TREE}
    for plugin in plugins:
        classes[plugin.name] = type(plugin)
        factories[plugin.name] = lambda args, handle, plugin=plugin: plugin
    defaults = tuple(e for e in registry.DEFAULT_PLUGINS if e.name not in without)
    points = expand_multi_point(classes, (*(Enabled(p.name) for p in plugins), *defaults))
    fields: dict[str, Any] = {
        "snapshot": Snapshot(),
        "nominator": nominator,
        "gates": Gates("scheduler", VERSION),
        "version": VERSION,
        "clock": FakeClock(),
        "rng": random.Random(1),
        **(environment or {}),
    }
    framework = Framework(Profile(points=points), factories, Environment(**fields))
    return Desk(framework, cache, nominator)
