"""Define the parts of the scheduler that a plugin may use. Source: kube-scheduler 1.36, framework Handle."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.scheduler.framework.api.status import Status

if TYPE_CHECKING:
    from nominee.machinery.api.kinds import Kind
    from nominee.machinery.api.pb import core
    from nominee.machinery.features.gates import Gates, Version
    from nominee.machinery.runtime.clock import Clock
    from nominee.scheduler.framework.api.deferred_resize import ResizePreemption
    from nominee.scheduler.framework.cluster.columns import Rows
    from nominee.scheduler.framework.cluster.scheduling_groups import SchedulingGroups
    from nominee.scheduler.framework.cluster.snapshot import Snapshot
    from nominee.scheduler.framework.cycle_state import CycleState
    from nominee.scheduler.framework.nominations.nominator import Nominator
    from nominee.scheduler.framework.types import NodeInfo, PodInfo

M = TypeVar("M", bound=Message)


class Lister(Protocol[M]):
    """Objects by name, as `nominee.machinery.client.watches.informer.Informer` has them."""

    def get(self, name: str, namespace: str = "") -> M | None: ...

    def list(self, namespace: str = "") -> list[M]: ...


class PluginEventRecorder(Protocol):
    """The event recorder of plugins, as `nominee.machinery.events.recorder.BufferedRecorder` records them."""

    def event(
        self,
        regarding: Any,
        type_: str,
        reason: str,
        *,
        action: str,
        note: str,
        related: Any = None,
    ) -> None:
        """Record an event; `type_` is Normal or Warning."""
        ...


class ApiClient(Protocol):
    """The API server, as `nominee.machinery.client.api_client.Client` calls it. Raises StatusError."""

    async def get(self, kind: Kind[M], name: str, namespace: str = "") -> M: ...

    async def create(self, obj: M) -> M: ...

    async def update(self, obj: M, *, subresource: str = "") -> M: ...

    async def patch(
        self, kind: Kind[M], name: str, namespace: str, patch: object, *, subresource: str = ""
    ) -> M: ...

    async def bind(self, namespace: str, name: str, node: str, *, uid: str = "") -> None: ...


class WaitingPod(Protocol):
    """A pod that waits on Permit."""

    @property
    def pod(self) -> PodInfo: ...

    @property
    def node_name(self) -> str: ...

    def pending_plugins(self) -> Iterable[str]: ...

    def allow(self, plugin: str) -> None: ...

    def reject(self, plugin: str, message: str) -> bool: ...


class Filter(Protocol):
    """A Filter plugin, as `interface.FilterPlugin` describes it."""

    @property
    def name(self) -> str: ...

    @property
    def looks_at_pods(self) -> bool: ...

    def filter_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> NDArray[np.bool_] | None: ...

    def explain_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> tuple[Sequence[Status], NDArray[np.intp]]: ...


class Handle(Protocol):
    """The parts of the scheduler that a plugin may use. `runtime.Framework` is one."""

    @property
    def profile_name(self) -> str: ...

    @property
    def snapshot(self) -> Snapshot:
        """Return the nodes and pods as they were when the present cycle began."""
        ...

    @property
    def nominator(self) -> Nominator: ...

    @property
    def scheduling_groups(self) -> SchedulingGroups: ...

    @property
    def gates(self) -> Gates: ...

    @property
    def version(self) -> Version: ...

    @property
    def resize_preemption(self) -> ResizePreemption | None:
        """Return how deferred resizes preempt; None: they do not."""
        ...

    @property
    def clock(self) -> Clock: ...

    @property
    def rng(self) -> random.Random: ...

    @property
    def client(self) -> ApiClient:
        """Return the client for asynchronous plugins from outside; RuntimeError in simulations."""
        ...

    @property
    def recorder(self) -> PluginEventRecorder | None: ...

    def lister(self, kind: Kind[M]) -> Lister[M]:
        """Return the lister of a kind; an empty one for kinds that this process does not watch."""
        ...

    @property
    def filters_blind_to_pods(self) -> frozenset[str]:
        """Filter plugins whose verdict no pod on the node can change."""
        ...

    @property
    def filter_plugins(self) -> Sequence[Filter]: ...

    def follows_pods(self, state: CycleState) -> bool:
        """Return whether some plugin of this cycle follows pods that come and go in a simulation."""
        ...

    def waiting_pod(self, uid: str) -> WaitingPod | None: ...

    def note(self, metric: str, labels: tuple[str, ...], value: float = 1.0) -> None:
        """Count, or observe, for a metric of the plugin's own; ignored for a metric that is not kept."""
        ...

    def activate(self, pods: Mapping[str, core.Pod]) -> None:
        """Move pods to the active queue; by `ns/name`."""
        ...

    def run_filter_plugins_with_nominated_pods(
        self, state: CycleState, pod: PodInfo, node: NodeInfo
    ) -> Status | None: ...

    def run_pre_filter_extension_add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None: ...

    def run_pre_filter_extension_remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None: ...
