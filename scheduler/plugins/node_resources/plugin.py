"""NodeResourcesFit and NodeResourcesBalancedAllocation. Source: kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.machinery.api.pb import core, devices
from nominee.machinery.features.gates import Version
from nominee.machinery.resources.pod_resources import DEVICE_CLASS_PREFIX
from nominee.scheduler.framework import resource_columns
from nominee.scheduler.framework.api.deferred_resize import is_deferred_resize
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
    on,
)
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Room,
    RoomFilterPlugin,
    Rows,
    ScorePlugin,
    Status,
)
from nominee.scheduler.framework.pod_requests import (
    DEFAULT_MEMORY_BYTES,
    DEFAULT_MILLI_CPU,
    ResourceOptions,
    pod_requests,
)
from nominee.scheduler.framework.resize_preemption import Fit, ResizePreemption
from nominee.scheduler.framework.resource_columns import CPU, FIRST_SCALAR, MEMORY, name_of
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import Features, Node
from nominee.scheduler.plugins.dynamic_resources.device_counts import DeviceCounts
from nominee.scheduler.plugins.dynamic_resources.tracker import manager_of
from nominee.scheduler.plugins.node_resources.arguments import BalancedArgs, FitArgs
from nominee.scheduler.plugins.node_resources.scoring import balance

Int64s = NDArray[np.int64]

_FIT_SCORE = "PreScoreNodeResourcesFit"
_BALANCED_SCORE = "PreScoreNodeResourcesBalancedAllocation"
_TOO_MANY_PODS = "Too many pods"
_BITS_MAX = 60
_DEFAULTS = {"cpu": DEFAULT_MILLI_CPU, "memory": DEFAULT_MEMORY_BYTES}


class NodeResourcesFit(PreFilterPlugin, RoomFilterPlugin, PreScorePlugin, ScorePlugin, EnqueueExtensions):
    """Rejects nodes without room for the requests of the pod, and scores how full a node would be."""

    name = "NodeResourcesFit"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._args = FitArgs.read(args)
        self._in_place = handle.gates.enabled("InPlacePodVerticalScaling")
        self._resizes = handle.resize_preemption
        self._devices = manager_of(handle) if handle.gates.enabled("DRAExtendedResource") else None
        self._device_features = Features.of(handle.gates, handle.version)

    # Filter

    def _by_devices(self, column: int) -> bool:
        """Return whether a device class provides the resource; it counts where no device plugin has it."""
        if column < FIRST_SCALAR or self._devices is None:
            return False
        return self._devices.class_map().get(name_of(column)) is not None

    def _wanted(self, pod: PodInfo) -> Sequence[tuple[int, int]]:
        if not self._args.ignores_anything:
            return pod.fit_requests
        return [(c, a) for c, a in pod.fit_requests if c < FIRST_SCALAR or not self._args.ignores(name_of(c))]

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        return None, None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if self._resizes is not None and pod.uid in node.pods and is_deferred_resize(pod.pod):
            return self._filter_resize(self._resizes, pod, node)
        return self._why_not(self._wanted(pod), node)

    def _why_not(self, wanted: Sequence[tuple[int, int]], node: NodeInfo) -> Status | None:
        """Return why the node has no room for these requests of one more pod."""
        reasons = []
        code = Code.Unschedulable
        if len(node.pods) + 1 > node.allowed_pods:
            reasons.append(_TOO_MANY_PODS)
        for column, amount in wanted:
            allocatable = node.allocatable_of(column)
            if allocatable <= 0 and self._by_devices(column):
                continue
            if amount > allocatable - node.requested_of(column):
                reasons.append(f"Insufficient {name_of(column)}")
                if amount > allocatable:
                    code = Code.UnschedulableAndUnresolvable
        return Status(code, tuple(reasons), self.name) if reasons else None

    def _filter_resize(self, options: ResizePreemption, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Return why the resize does not fit the pod's own node, where the pod is counted already.

        The queue's pod and the cache's may differ for a moment: the larger request of the two counts
        (KEP-5836, "NodeResourcesFit Plugin: Calculating Resource Fit in the Filter Phase").
        """
        counted = dict(node.pods[pod.uid].requests)
        freed = _desired_of_others(pod, node) if options.fit is Fit.KUBELET else {}
        reasons = []
        code = Code.Unschedulable
        for column, amount in self._wanted(pod):
            allocatable = node.allocatable_of(column)
            if allocatable <= 0 and self._by_devices(column):
                continue
            requested = node.requested_of(column) - freed.get(column, 0)
            if max(0, amount - counted.get(column, 0)) > allocatable - requested:
                reasons.append(f"Insufficient {name_of(column)}")
                if amount > allocatable:
                    code = Code.UnschedulableAndUnresolvable
        return Status(code, tuple(reasons), self.name) if reasons else None

    def filter_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> NDArray[np.bool_] | None:
        if self._resizes is not None and is_deferred_resize(pod.pod):
            return super().filter_all(state, pod, snapshot, rows)
        return self._mask(pod, snapshot, rows)

    def filter_room(self, state: CycleState, pod: PodInfo, room: Room) -> NDArray[np.bool_]:
        return self._mask(pod, room, slice(None))

    def _mask(self, pod: PodInfo, room: Room, rows: Rows) -> NDArray[np.bool_]:
        mask = room.pods_free[rows] > 0
        for column, amount in self._wanted(pod):
            enough = room.free_of(column)[rows] >= amount
            if self._by_devices(column):
                enough |= room.allocatable_of(column)[rows] <= 0
            mask &= enough
        return mask

    def explain_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> tuple[Sequence[Status], NDArray[np.intp]]:
        if self._resizes is not None and is_deferred_resize(pod.pod):
            return super().explain_all(state, pod, snapshot, rows)
        return self.explain_room(state, pod, snapshot, rows)

    def explain_room(
        self, state: CycleState, pod: PodInfo, room: Room, positions: NDArray[np.intp]
    ) -> tuple[Sequence[Status], NDArray[np.intp]]:
        # One bit a reason: 0 too many pods, then per resource: insufficient, and more than allocatable.
        wanted = self._wanted(pod)
        number = np.int64
        if 2 * len(wanted) + 1 > _BITS_MAX:
            number = cast("type[np.int64]", np.object_)  # Python's numbers have no limit
        bits = (room.pods_free[positions] <= 0).astype(number)
        for place, (column, amount) in enumerate(wanted):
            allocatable = room.allocatable_of(column)[positions]
            counts = allocatable > 0 if self._by_devices(column) else np.True_
            short = (room.free_of(column)[positions] < amount) & counts
            bits |= short.astype(number) << (2 * place + 1)
            bits |= ((allocatable < amount) & counts).astype(number) << (2 * place + 2)
        distinct, index = np.unique(bits, return_inverse=True)
        return [self._status(bit, wanted) for bit in distinct.tolist()], index

    def _status(self, bits: int, wanted: Sequence[tuple[int, int]]) -> Status:
        reasons = [_TOO_MANY_PODS] if bits & 1 else []
        code = Code.Unschedulable
        for position, (column, _) in enumerate(wanted):
            if bits >> (2 * position + 1) & 1:
                reasons.append(f"Insufficient {name_of(column)}")
                if bits >> (2 * position + 2) & 1:
                    code = Code.UnschedulableAndUnresolvable
        return Status(code, tuple(reasons), self.name)

    # Score

    def _score_requests(self, pod: PodInfo) -> list[tuple[int, int]]:
        """Return column and the pod's request of each configured resource.

        Neither a status nor pod-level requests count here, as upstream's scorer overlooks both.
        """
        if pod.is_plain:
            wanted = dict(pod.fit_requests)
            wanted[CPU], wanted[MEMORY] = pod.nonzero
            return [(column, wanted.get(column, 0)) for column in self._args.columns]
        options = ResourceOptions(pod_level=False)
        requests = pod_requests(pod.pod, options, use_status=False, defaults=_DEFAULTS)
        return [(column, requests.get(name_of(column), 0)) for column in self._args.columns]

    def pre_score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Status | None:
        state.write(_FIT_SCORE, self._score_requests(pod))
        return None

    def score_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        requested: list[Int64s] = []
        allocatable: list[Int64s] = []
        for column, amount in state.get(_FIT_SCORE) or self._score_requests(pod):
            if column >= FIRST_SCALAR and not amount:
                have, used = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
            else:
                have = snapshot.allocatable_of(column)[rows]
                nonzero = column in (CPU, MEMORY)
                used = (snapshot.nonzero_of(column) if nonzero else snapshot.requested_of(column))[rows]
                if column >= FIRST_SCALAR and not have.all():
                    have, used = self._with_devices(column, have, used, snapshot.nodes_at(rows))
            requested.append(used + amount)
            allocatable.append(have)
        return self._args.strategy.scores(requested, allocatable)

    def _with_devices(
        self, column: int, have: Int64s, used: Int64s, nodes: Sequence[NodeInfo]
    ) -> tuple[Int64s, Int64s]:
        """Count the devices of the resource's class on nodes where no device plugin has the resource.

        Source: kube-scheduler 1.36, calculateDRAExtendedResourceAllocatableRequest.
        """
        class_name = None if self._devices is None else self._devices.class_map().get(name_of(column))
        if self._devices is None or class_name is None:
            return have, used
        counts = DeviceCounts(self._devices, self._device_features)
        have, used = have.copy(), used.copy()
        for position in np.flatnonzero(have == 0).tolist():
            of = nodes[position].node
            assert of is not None
            found, allocated = counts.of(class_name, Node.of(of))
            if found:
                have[position], used[position] = found, allocated
        return have, used

    # Queueing

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        on_pod = ActionType.Delete
        if self._in_place:
            on_pod |= ActionType.UpdatePodScaleDown
        on_node = ActionType.Add | ActionType.UpdateNodeAllocatable
        found = [
            on(EventResource.Pod, on_pod, self._after_pod_event),
            on(EventResource.Node, on_node, self._after_node_change),
        ]
        if self._resizes is not None:
            found.append(on(EventResource.Pod, ActionType.UpdatePodScaleUp, self._after_pod_event))
        if self._devices is not None:
            changed = ActionType.Add | ActionType.Update
            found.append(on(EventResource.DeviceClass, changed, self._after_class_change))
        return found

    def _after_class_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        """Queue the pod when the class has come to provide a resource that it requests."""
        old, new = expect(devices.DeviceClass, old, new)
        if not isinstance(new, devices.DeviceClass):
            return QueueingHint.Skip
        name = new.spec.extendedResourceName
        wanted = {name_of(column) for column, _ in pod.fit_requests}
        if isinstance(old, devices.DeviceClass):
            if old.spec.extendedResourceName == name:
                return QueueingHint.Skip
        elif DEVICE_CLASS_PREFIX + new.metadata.name in wanted:
            return QueueingHint.Queue
        return QueueingHint.Queue if name in wanted else QueueingHint.Skip

    def _after_pod_event(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, new = expect(core.Pod, old, new)
        if not isinstance(old, core.Pod):
            return QueueingHint.Skip
        if not isinstance(new, core.Pod):
            held = old.spec.nodeName or old.status.nominatedNodeName
            return QueueingHint.Queue if held else QueueingHint.Skip
        if self._resizes is not None and is_deferred_resize(pod.pod):
            matters = self._resize_matters(self._resizes, pod, old, new)
        else:
            matters = self._in_place and self._scale_down_helps(pod, old, new)
        return QueueingHint.Queue if matters else QueueingHint.Skip

    def _resize_matters(self, options: ResizePreemption, pod: PodInfo, old: core.Pod, new: core.Pod) -> bool:
        """Return whether a resize on the same node, or of the pod itself, may change the verdict.

        Another pod that takes more may have used up the room of a parked pod, which has to preempt then
        (KEP-5836, "Reconsideration Race Conditions").
        """
        if new.metadata.uid == pod.uid:
            return True
        before, after = PodInfo(old, pod.options), PodInfo(new, pod.options)
        held = options.fit is Fit.KUBELET
        was = dict(before.held_requests if held else before.requests)
        now = dict(after.held_requests if held else after.requests)
        return any(was.get(column, 0) != now.get(column, 0) for column, _ in pod.requests)

    def _scale_down_helps(self, pod: PodInfo, old: core.Pod, new: core.Pod) -> bool:
        """Return whether the pod itself requests less, or a running one less of the same resources."""
        if new.metadata.uid == pod.uid:
            return True
        if not new.spec.nodeName:
            return False
        before, after = dict(PodInfo(old, pod.options).requests), dict(PodInfo(new, pod.options).requests)
        return any(before.get(column, 0) > after.get(column, 0) for column, _ in pod.requests)

    def _after_node_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        """Queue the pod when it fits on the empty node, which has more of something that it requests.

        Ignored resources count here, as upstream's isFit knows of none.
        """
        old, new = expect(core.Node, old, new)
        if not isinstance(new, core.Node):
            return QueueingHint.Skip
        now = NodeInfo(new.metadata.name, new)
        if self._why_not(pod.fit_requests, now) is not None:
            return QueueingHint.Skip
        if not isinstance(old, core.Node):
            return QueueingHint.Queue
        before = NodeInfo(old.metadata.name, old)
        grew = now.allowed_pods > before.allowed_pods or any(
            now.allocatable_of(column) > before.allocatable_of(column)
            or (now.allocatable_of(column) <= 0 and self._by_devices(column))
            for column, _ in pod.fit_requests
        )
        return QueueingHint.Queue if grew else QueueingHint.Skip


def _desired_of_others(pod: PodInfo, node: NodeInfo) -> dict[int, int]:
    """Return by column the node's requests that exist only because other pods desire them."""
    freed: dict[int, int] = {}
    for uid, other in node.pods.items():
        if uid == pod.uid or other.is_plain:
            continue
        held = dict(other.held_requests)
        for column, amount in other.requests:
            freed[column] = freed.get(column, 0) + amount - held.get(column, 0)
    return freed


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Prefers nodes whose resources would be used in like proportions.

    Since 1.36 what counts is how much the pod improves the balance: 50 stands for a node that stays as it is.
    """

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._args = BalancedArgs.read(args)
        self._relative = handle.version >= Version(1, 36)

    def _requests(self, pod: PodInfo) -> list[tuple[int, int]]:
        """Return column and request of each scored resource: scalar ones only if the pod requests some.

        The status of a resize counts here (UseStatusResources), unlike in Filter and in NodeResourcesFit.
        """
        wanted = dict(pod.requests)
        return [
            (column, wanted.get(column, 0))
            for column in self._args.columns
            if column < resource_columns.FIRST_SCALAR or wanted.get(column)
        ]

    def pre_score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Status | None:
        requests = self._requests(pod)
        if not any(amount for _, amount in requests):
            return Status(Code.Skip)  # best effort pods would all go to the same node
        state.write(_BALANCED_SCORE, requests)
        return None

    def score_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        requests = state.get(_BALANCED_SCORE) or self._requests(pod)
        allocatable = [snapshot.allocatable_of(column)[rows] for column, _ in requests]
        before = [snapshot.requested_of(column)[rows] for column, _ in requests]
        after = [used + amount for used, (_, amount) in zip(before, requests, strict=True)]
        with_pod = balance(after, allocatable)
        if not self._relative:
            return with_pod
        return 50 + (50 + with_pod - balance(before, allocatable)) // 2
