"""VolumeBinding: place a pod where its claims are or can be bound, and bind them before the pod.

With WaitForFirstConsumer the node is chosen first; PreBind then sets the selected-node annotation for the
provisioner and waits. Source: kube-scheduler 1.36; KEP-5278 for what PreBind means for nominations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core, storage
from nominee.machinery.scheduling.volume_matching import SELECTED_NODE, class_of, node_selector_of
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
    on,
)
from nominee.scheduler.framework.api.io_steps import IoSteps
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    Rows,
    Status,
)
from nominee.scheduler.framework.runtime.profile import ArgumentError
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.nodes.node_affinity import row_count, selector_mask
from nominee.scheduler.plugins.volume_binding.binder import (
    Claim,
    NodeVolumes,
    PodVolumeClaims,
    Volume,
    VolumeBinder,
    VolumeError,
)
from nominee.scheduler.plugins.volume_binding.candidates import provisions, volume_size_max

_STATE = "VolumeBinding"
BIND_TIMEOUT_SECONDS = 600
_UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
_MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

Mask = NDArray[np.bool_]


class _State:
    """The state of one cycle. Shared by clones: a dry run changes nothing here."""

    __slots__ = ("all_bound", "claims", "volumes")

    def __init__(self, claims: PodVolumeClaims | None) -> None:
        self.claims = claims  # None: the pod has none
        self.all_bound = claims is None
        self.volumes: NodeVolumes | None = None  # assumed at Reserve


class VolumeBinding(PreFilterPlugin, FilterPlugin, ReservePlugin, PreBindPlugin, EnqueueExtensions):
    """Arguments: `bindTimeoutSeconds` (600)."""

    name = "VolumeBinding"
    looks_at_pods = False

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        timeout = args.get("bindTimeoutSeconds", BIND_TIMEOUT_SECONDS)
        if not isinstance(timeout, int) or timeout < 0:
            text = f"Invalid value: {timeout}: invalid BindTimeoutSeconds, should not be a negative value"
            raise ArgumentError("bindTimeoutSeconds", text)
        self._timeout_seconds = float(timeout)
        self._handle = handle
        self.binder = VolumeBinder(handle)

    # PreFilter and Filter

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        if not pod.claims:
            state.write(_STATE, _State(None))
            return None, Status(Code.Skip)
        problem = self.binder.problem_of(pod)
        if problem:
            return None, Status(Code.UnschedulableAndUnresolvable, (problem,), self.name)
        try:
            claims = self.binder.claims_of(pod)
        except VolumeError as error:
            return None, Status.as_error(error, self.name)
        if claims.immediate:
            return None, Status(Code.UnschedulableAndUnresolvable, (_UNBOUND_IMMEDIATE,), self.name)
        state.write(_STATE, _State(claims))
        return None, None

    def _claims(self, state: CycleState, pod: PodInfo) -> PodVolumeClaims:
        known: _State | None = state.get(_STATE)
        claims = None if known is None else known.claims
        return self.binder.claims_of(pod) if claims is None else claims

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        try:
            _, reasons = self.binder.find(self._claims(state, pod), node)
        except VolumeError as error:
            return self._stage_failed("predicate", error)
        if not reasons:
            return None
        return Status(Code.UnschedulableAndUnresolvable, tuple(reasons), self.name)

    def filter_all(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Mask | None:
        """Filter column by column where claims do not depend on each other, else node by node.

        A claim with an invalid selector is left to `filter`, which reports the error.
        """
        claims = self._claims(state, pod)
        to_match = [claim for claim in claims.delayed if SELECTED_NODE not in claim.metadata.annotations]
        try:
            candidates = {claim.metadata.name: self.binder.candidates_for(claim) for claim in to_match}
        except VolumeError:
            return super().filter_all(state, pod, snapshot, rows)
        if len(to_match) > 1 and any(candidates.values()):
            return super().filter_all(state, pod, snapshot, rows)  # claims compete for volumes
        masks: list[Mask] = []
        for claim in claims.bound:
            volume = self.binder.volumes.get(claim.spec.volumeName)
            if volume is None:
                return np.zeros(row_count(rows), dtype=np.bool_)
            selector = node_selector_of(volume)
            if selector is not None:
                masks.append(selector_mask(snapshot, selector, rows))
        for claim in claims.delayed:
            mask = self._delayed_mask(claim, candidates.get(claim.metadata.name, ()), snapshot, rows)
            if mask is not None:
                masks.append(mask)
        if not masks:
            return None
        return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)

    def _delayed_mask(
        self, claim: Claim, candidates: Sequence[Volume], snapshot: Snapshot, rows: Rows
    ) -> Mask | None:
        """Return where the claim is pinned, can use a candidate or can have a volume made; None: anywhere."""
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        masks: list[Mask] = []
        if selected is None:
            for volume in candidates:
                selector = node_selector_of(volume)
                if selector is None:
                    return None
                masks.append(selector_mask(snapshot, selector, rows))
        storage_class = self._handle.lister(kinds.STORAGE_CLASS).get(class_of(claim))
        if storage_class is None or not provisions(storage_class):
            provisioned: Mask | None = np.zeros(row_count(rows), dtype=np.bool_)
        else:
            provisioned = self._provisioned_mask(claim, storage_class, snapshot, rows)
        if selected is not None:
            mask = np.zeros(len(snapshot), dtype=np.bool_)
            if selected in snapshot.row_of:
                mask[snapshot.row_of[selected]] = True
            pinned: Mask = mask[rows]
            return pinned if provisioned is None else pinned & provisioned
        if provisioned is None:
            return None
        reachable: Mask = np.logical_or.reduce([*masks, provisioned])
        return reachable

    def _provisioned_mask(
        self, claim: Claim, storage_class: storage.StorageClass, snapshot: Snapshot, rows: Rows
    ) -> Mask | None:
        """Return where a volume of the class can be provisioned for the claim; None: everywhere."""
        allowed = _topology_mask(storage_class, snapshot, rows)
        spaces = self.binder.spaces_for(claim)
        if spaces is None:
            return allowed
        labels = [node.labels for node in snapshot.nodes_at(rows)]
        roomy: Mask = np.array([any(s.matches(each) for s in spaces) for each in labels], dtype=np.bool_)
        return roomy if allowed is None else allowed & roomy

    # Reserve

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        known: _State | None = state.get(_STATE)
        if known is None or known.claims is None:
            return None
        known.all_bound = self.binder.all_bound(pod)
        if known.all_bound:
            return None
        node = self._handle.snapshot.get(node_name)
        if node is None:
            return Status(Code.Error, (f'node "{node_name}" not found',), self.name)
        try:
            volumes, reasons = self.binder.find(known.claims, node)
        except VolumeError as error:
            return self._stage_failed("assume", error)
        if reasons:
            return Status(Code.Error, tuple(reasons), self.name)
        known.volumes = self.binder.assume(volumes, node_name)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        known: _State | None = state.get(_STATE)
        if known is not None and known.volumes is not None:
            self.binder.revert(known.volumes)
            known.volumes = None

    # PreBind

    def pre_bind_pre_flight(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, bool]:
        known: _State | None = state.get(_STATE)
        if known is None or known.all_bound:
            return Status(Code.Skip), True
        if known.volumes is None:
            return Status(Code.Error, (f'no pod volumes found for node "{node_name}"',), self.name), False
        return None, True

    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> IoSteps[Status | None]:
        known: _State | None = state.get(_STATE)
        if known is None or known.all_bound:
            return None
        if known.volumes is None:
            return Status(Code.Error, (f'no pod volumes found for node "{node_name}"',), self.name)
        try:
            yield from self.binder.bind(pod, known.volumes, node_name, timeout_seconds=self._timeout_seconds)
        except (VolumeError, StatusError) as error:
            return self._stage_failed("bind", error)
        return None

    def _stage_failed(self, stage: str, error: Exception) -> Status:
        self._handle.note("volume_scheduling_stage_error_total", (stage,))
        return Status.as_error(error, self.name)

    # Queueing

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        changed = ActionType.Add | ActionType.Update
        return (
            on(EventResource.StorageClass, changed, self._after_class_change),
            on(EventResource.PVC, changed, self._after_claim_change),
            on(EventResource.PV, changed),
            on(EventResource.Node, ActionType.Add | ActionType.UpdateNodeLabel),
            on(EventResource.CSINode, changed, self._after_csi_node_change),
            on(EventResource.CSIDriver, ActionType.Update, self._after_csi_driver_change),
            on(EventResource.CSIStorageCapacity, changed, self._after_capacity_change),
        )

    def _after_claim_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        _, new = expect(core.PersistentVolumeClaim, old, new)
        if not isinstance(new, core.PersistentVolumeClaim) or new.metadata.namespace != pod.namespace:
            return QueueingHint.Skip
        return QueueingHint.Queue if new.metadata.name in pod.claims else QueueingHint.Skip

    def _after_class_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, new = expect(storage.StorageClass, old, new)
        if not isinstance(old, storage.StorageClass) or not isinstance(new, storage.StorageClass):
            return QueueingHint.Queue
        same = list(old.allowedTopologies) == list(new.allowedTopologies)
        return QueueingHint.Skip if same else QueueingHint.Queue

    def _after_csi_node_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        if old is None:
            return QueueingHint.Queue
        old, new = expect(storage.CSINode, old, new)
        before = _annotation(old, _MIGRATED_PLUGINS)
        return QueueingHint.Skip if before == _annotation(new, _MIGRATED_PLUGINS) else QueueingHint.Queue

    def _after_csi_driver_change(
        self, pod: PodInfo, old: Message | None, new: Message | None
    ) -> QueueingHint:
        old, new = expect(storage.CSIDriver, old, new)
        if not isinstance(old, storage.CSIDriver) or not isinstance(new, storage.CSIDriver):
            return QueueingHint.Skip
        for volume in pod.pod.spec.volumes:
            uses = volume.volumeSource.HasField("csi") and volume.volumeSource.csi.driver == new.metadata.name
            if uses and old.spec.storageCapacity and not new.spec.storageCapacity:
                return QueueingHint.Queue
        return QueueingHint.Skip

    def _after_capacity_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, new = expect(storage.CSIStorageCapacity, old, new)
        if not isinstance(old, storage.CSIStorageCapacity):
            return QueueingHint.Queue
        if not isinstance(new, storage.CSIStorageCapacity):
            return QueueingHint.Skip
        before, after = volume_size_max(old), volume_size_max(new)
        grew = after is not None and (before is None or after > before)
        return QueueingHint.Queue if grew else QueueingHint.Skip


def _annotation(obj: Message | None, key: str) -> str:
    if not isinstance(obj, storage.CSINode):
        return ""
    return obj.metadata.annotations.get(key, "")


def _topology_mask(storage_class: storage.StorageClass, snapshot: Snapshot, rows: Rows) -> Mask | None:
    """Return the nodes for which volumes of the class can be provisioned; None: all."""
    if not storage_class.allowedTopologies:
        return None
    total: Mask = np.zeros(row_count(rows), dtype=np.bool_)
    for term in storage_class.allowedTopologies:
        if not term.matchLabelExpressions:
            continue
        mask: Mask = np.ones(row_count(rows), dtype=np.bool_)
        for expression in term.matchLabelExpressions:
            allowed = frozenset(expression.values)
            column = snapshot.label_column(expression.key)
            mask &= column.mask(allowed.__contains__, rows)
        total |= mask
    return total
