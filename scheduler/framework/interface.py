"""Define the base classes of plugins, one per extension point.

An author of plugins imports everything from here; statuses and the handle are re-exported.

Source: kube-scheduler 1.36, scheduling framework (KEP-624). A plugin derives from the bases of the extension
points that it takes part in. `None` where a status is expected means Success, as a nil status does upstream.

No I/O (they may change `CycleState` and the plugin's own state only): PreEnqueue, QueueSort, PreFilter,
Filter, PostFilter, PreScore, Score, Reserve, Permit, PreBindPreFlight. PreBind, Bind, PostBind and the
follow-up of PostFilter return the I/O to be done: a generator of `io_steps`, as the in-tree plugins do, or an
awaitable (`async def`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    HintFunction,
    QueueingHint,
)
from nominee.scheduler.framework.api.handle_protocols import (
    ApiClient,
    Handle,
    Lister,
    PluginEventRecorder,
    WaitingPod,
)
from nominee.scheduler.framework.api.io_steps import IoSteps
from nominee.scheduler.framework.api.status import Code, Status, check_answer
from nominee.scheduler.framework.cluster.columns import Rows
from nominee.scheduler.framework.cluster.room import Room
from nominee.scheduler.framework.nominations.nominating import NominatingInfo, NominatingMode

if TYPE_CHECKING:
    from nominee.scheduler.framework.cluster.snapshot import Snapshot
    from nominee.scheduler.framework.cycle_state import CycleState
    from nominee.scheduler.framework.types import NodeInfo, PodInfo, QueuedPodInfo

__all__ = [
    "MAX_NODE_SCORE",
    "ActionType",
    "ApiClient",
    "BindPlugin",
    "Candidate",
    "ClusterEvent",
    "ClusterEventWithHint",
    "Code",
    "EnqueueExtensions",
    "EventResource",
    "FilterPlugin",
    "Handle",
    "HintFunction",
    "Lister",
    "NodeStatuses",
    "NominatingInfo",
    "NominatingMode",
    "PermitPlugin",
    "Plugin",
    "PluginEventRecorder",
    "PluginWork",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "QueueingHint",
    "ReservePlugin",
    "Room",
    "RoomFilterPlugin",
    "Rows",
    "ScorePlugin",
    "Status",
    "WaitingPod",
]

MAX_NODE_SCORE = 100
# What an extension point that does I/O returns: steps to be done, or an awaitable.
PluginWork = IoSteps["Status | None"] | Awaitable["Status | None"]


class Plugin:
    """Base of all plugins. Built as `PluginClass(args, handle)` by its registry entry.

    One that needs neither its profile's arguments nor the framework does not have to say so.
    """

    name: str
    skips_deferred_resizes: bool = False
    """The plugin takes no part in the cycle of a bound pod whose resize is deferred (KEP-5836). A plugin from
    outside that decides only where a pod may run sets it; of the in-tree plugins `attempts/resize.py` has the
    set."""

    def __init__(self, args: object = None, handle: object = None) -> None:
        """Take `args`, the profile's pluginConfig (JSON object), and `handle`, the profile's `Framework`."""


class EnqueueExtensions(Plugin):
    """Plugins that register the events which can undo their rejections.

    A plugin without it gets every event, as upstream does.
    """

    @abstractmethod
    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may make a pod schedulable that this plugin rejected; may be empty."""


class PreEnqueuePlugin(Plugin):
    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Reject (Unschedulable...) to let the pod into the active queue: it is gated."""


class QueueSortPlugin(Plugin):
    """QueueSort orders the active queue; a scheduler has one."""

    @abstractmethod
    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Return whether a is to be tried before b."""

    def sort_key(self, pod: QueuedPodInfo) -> Any | None:
        """Return a key that orders as `less` does, for a cheaper heap; None when there is no such key."""
        return None


class PreFilterExtensions(Protocol):
    """The methods by which a PreFilter plugin follows pods of one node in a simulation."""

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status | None: ...

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None: ...


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The nodes to consider; None: all."""

    node_names: frozenset[str] | None = None

    def merge(self, other: PreFilterResult | None) -> PreFilterResult:
        """Return the nodes that both results allow."""
        if other is None or other.node_names is None:
            return self
        if self.node_names is None:
            return other
        return PreFilterResult(self.node_names & other.node_names)


class PreFilterPlugin(Plugin):
    """PreFilter runs once per attempt, before Filter."""

    @abstractmethod
    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        """Prepare for Filter. Skip: this plugin's Filter is not run. A rejection ends the cycle."""

    def pre_filter_extensions(self) -> PreFilterExtensions | None:
        return None


class _Rejections:
    """The nodes that the `filter` of one plugin rejected last, by name."""

    __slots__ = ("by_node",)

    def __init__(self, by_node: Mapping[str, Status] | None = None) -> None:
        self.by_node: dict[str, Status] = dict(by_node or {})

    @staticmethod
    def of(state: CycleState, plugin: str) -> _Rejections:
        """Return those of a cycle, which are kept in its state."""
        key = f"rejections/{plugin}"
        found: _Rejections | None = state.get(key)
        if found is None:
            found = _Rejections()
            state.write(key, found)
        return found

    def clone(self) -> _Rejections:
        return _Rejections(self.by_node)


class FilterPlugin(Plugin):
    """Filter works on one node, or on many at once; both must return the same verdicts.

    `looks_at_pods`: whether the verdict can change when pods come to or leave the node. If it cannot, a
    preemption's dry run calls it once only. `only_rejection`: the status of every node that the plugin
    rejects, if they all have the same one.
    """

    looks_at_pods = True
    only_rejection: Status | None = None

    @abstractmethod
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Return why this plugin rejects the node; None or Success: the pod can run there."""

    def filter_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> NDArray[np.bool_] | None:
        """Return a mask over rows, True where the pod can run; None: everywhere. Calls `filter` by default.

        Raises:
            FilterError: the plugin's answer is neither success nor a rejection.
        """
        nodes = snapshot.nodes_at(rows)
        mask = np.empty(len(nodes), dtype=np.bool_)
        rejections = _Rejections.of(state, self.name).by_node
        for i, node in enumerate(nodes):
            status = self.filter(state, pod, node)
            if status is not None:
                check_answer(status, "filter")
            mask[i] = passes = status is None or status.is_success
            if status is None or passes:
                rejections.pop(node.name, None)
            elif status.is_rejected:
                rejections[node.name] = status
            else:
                raise FilterError(status.with_plugin(self.name))
        return mask

    def explain_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> tuple[Sequence[Status], NDArray[np.intp]]:
        """Return why `filter_all` rejected these rows: distinct statuses, and an index for each row.

        `filter` is not called again for nodes that it rejected: it may be slow, or answer otherwise.
        """
        if self.only_rejection is not None:
            return (self.only_rejection,), np.zeros(len(rows), dtype=np.intp)
        statuses: dict[Status, int] = {}
        index = np.empty(len(rows), dtype=np.intp)
        rejections = _Rejections.of(state, self.name).by_node
        for i, node in enumerate(snapshot.nodes_at(rows)):
            status = rejections.get(node.name) or self.filter(state, pod, node)
            if status is None:
                raise RuntimeError(f"{self.name} rejected node {node.name} and now does not")
            index[i] = statuses.setdefault(status, len(statuses))
        return list(statuses), index


class RoomFilterPlugin(FilterPlugin):
    """A Filter plugin that looks at a node's pods only for their requests and their number.

    It must not accept a node with more pods that it rejects with fewer. A preemption's dry run then tries all
    candidate nodes at once.
    """

    @abstractmethod
    def filter_room(self, state: CycleState, pod: PodInfo, room: Room) -> NDArray[np.bool_]:
        """Return a mask over the nodes, True where the pod can run."""

    @abstractmethod
    def explain_room(
        self, state: CycleState, pod: PodInfo, room: Room, positions: NDArray[np.intp]
    ) -> tuple[Sequence[Status], NDArray[np.intp]]:
        """Return why `filter_room` rejected these nodes: distinct statuses, and an index for each."""


class FilterError(Exception):
    """A Filter plugin failed (it did not merely reject)."""

    def __init__(self, status: Status) -> None:
        super().__init__(f'running "{status.plugin}" filter plugin: {status.message()}')
        self.status = status


class NodeStatuses(Protocol):
    """The status of each node (upstream's NodeToStatus); nodes never filtered have a common one."""

    def get(self, node_name: str) -> Status: ...

    def nodes_with_code(self, snapshot: Snapshot, code: Code) -> list[NodeInfo]:
        """Return the nodes of the snapshot, in its order, whose status has the code."""
        ...

    def names(self) -> Iterable[str]:
        """Return the names of the nodes that have a status of their own."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that would be free for the pod without the victims, most important victim first."""

    node: str
    victims: tuple[PodInfo, ...]
    pdb_violations: int


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The result of PostFilter: a nomination, and I/O to be done.

    `follow_up` returns the I/O (evict the victims). When `background`, the shell calls `begin`, has it done
    by a task and goes on; otherwise it waits, and a status that is not a success replaces PostFilter's. A
    result whose follow-up is not done changes nothing. `preceding` is the I/O of the plugins before this one:
    it is waited for, and if it fails there is no follow-up.
    """

    nominating_info: NominatingInfo | None
    candidate: Candidate | None = None
    follow_up: Callable[[], PluginWork] | None = None
    background: bool = False
    begin: Callable[[], None] | None = None
    chosen_by: str = ""
    """The criterion by which the candidate was chosen among others, for the log."""
    preceding: Callable[[], PluginWork] | None = None


class PostFilterPlugin(Plugin):
    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: PodInfo, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Try to make room after no node fitted. Success: do not try further PostFilter plugins."""


class PreScorePlugin(Plugin):
    @abstractmethod
    def pre_score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Status | None:
        """Prepare for Score on the feasible rows. Skip: this plugin's Score is not run."""


class ScorePlugin(Plugin):
    """Score works on one node (`score`), or on many at once (`score_all`, as the in-tree plugins do)."""

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the score of the node before normalisation; raise on an error."""
        raise NotImplementedError(f"{self.name} has neither score nor score_all")

    def normalize(self, state: CycleState, pod: PodInfo, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        """Bring the scores of all feasible nodes into 0..100; may change its argument."""
        return scores

    def score_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Return the scores of rows before normalisation. The default calls `score` per node."""
        nodes = snapshot.nodes_at(rows)
        return np.fromiter((self.score(state, pod, n) for n in nodes), dtype=np.int64, count=len(nodes))


class ReservePlugin(Plugin):
    """Reserve runs when a node is chosen; Unreserve when the attempt fails later."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Note that the pod goes to the node."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo reserve; must be harmless when it was not called. Called in reverse order of plugins."""

    def after_unreserve(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> IoSteps[None] | Awaitable[None] | None:
        """Take back the writes of PreBind: called once a binding has failed, after all of unreserve.

        Upstream's Unreserve does both. The plugin reports what fails here.
        """
        return None


class PermitPlugin(Plugin):
    @abstractmethod
    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status | None, float]:
        """Return Success, a rejection, or Wait with a time-out in seconds."""


class PreBindPlugin(Plugin):
    """PreBind prepares the binding with I/O: it binds volumes, for example."""

    @abstractmethod
    def pre_bind_pre_flight(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, bool]:
        """Return Success if PreBind has work, else Skip; and whether it may run beside other plugins.

        KEP-5278: a nomination is written before binding only if some plugin does not return Skip.
        """

    @abstractmethod
    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> PluginWork:
        """Prepare for the binding, for example have volumes bound; a rejection sends the pod back."""


class BindPlugin(Plugin):
    @abstractmethod
    def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> PluginWork:
        """Bind the pod. Skip: leave it to the next Bind plugin."""


class PostBindPlugin(Plugin):
    @abstractmethod
    def post_bind(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> IoSteps[None] | Awaitable[None] | None:
        """Act on a pod that is bound: clean up, or record it."""
