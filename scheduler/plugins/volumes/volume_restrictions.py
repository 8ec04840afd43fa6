"""VolumeRestrictions: disks that one node cannot mount twice, and claims for one pod only.

Source: kube-scheduler 1.36; KEP-2485 for the ReadWriteOncePod access mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.scheduler.framework.api.events import (
    UNEXPECTED_AFTER,
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
    on,
)
from nominee.scheduler.framework.cluster.columns import Column
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    Rows,
    Status,
)
from nominee.scheduler.framework.types import Disk, NodeInfo, PodInfo
from nominee.scheduler.plugins.nodes.node_affinity import row_count

_STATE = "VolumeRestrictions"
_ONE_POD_ONLY = "ReadWriteOncePod"

Mask = NDArray[np.bool_]


class _State:
    """The pod's claims for one pod only, and how often they are in use; each simulation has its own count."""

    __slots__ = ("claims", "uses")

    def __init__(self, claims: frozenset[str], uses: int) -> None:
        self.claims = claims
        self.uses = uses

    def clone(self) -> _State:
        return _State(self.claims, self.uses)

    def count(self, pod: PodInfo, sign: int) -> None:
        """Count by the names of claims alone: equal names in other namespaces count too, as upstream."""
        self.uses += sign * sum(name in self.claims for name in pod.direct_claims)


class VolumeRestrictions(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    """Rejects nodes with conflicting inline disks, and pods whose ReadWriteOncePod claim is in use."""

    name = "VolumeRestrictions"
    _disk_taken = Status(Code.Unschedulable, ("node(s) had no available disk",), name)
    _claim_in_use = Status(
        Code.Unschedulable,
        (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
            "in-use by another pod",
        ),
        name,
    )

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle

    # PreFilter

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        if not pod.pod.spec.volumes:
            return None, Status(Code.Skip)
        claims = set()
        lister = self._handle.lister(kinds.PERSISTENT_VOLUME_CLAIM)
        for name in pod.direct_claims:
            claim = lister.get(name, pod.namespace)
            if claim is None:
                text = f'persistentvolumeclaim "{name}" not found'
                return None, Status(Code.UnschedulableAndUnresolvable, (text,), self.name)
            if _ONE_POD_ONLY in claim.spec.accessModes:
                claims.add(name)
        uses = sum(_is_used(snapshot, pod.namespace, name) for name in claims)
        if not uses and not pod.disks:
            return None, Status(Code.Skip)
        state.write(_STATE, _State(frozenset(claims), uses))
        return None, None

    def pre_filter_extensions(self) -> PreFilterExtensions:
        return self

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status | None:
        self._known(state).count(added, 1)
        return None

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status | None:
        self._known(state).count(removed, -1)
        return None

    def _known(self, state: CycleState) -> _State:
        found: _State = state.read(_STATE)
        return found

    # Filter

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if pod.disks and disks_conflict(pod.disks, (d for other in node.pods.values() for d in other.disks)):
            return self._disk_taken
        return self._claim_in_use if self._known(state).uses > 0 else None

    def filter_all(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Mask | None:
        if self._known(state).uses > 0:
            return np.zeros(row_count(rows), dtype=np.bool_)
        if not pod.disks:
            return None
        return _disk_column(snapshot).mask(lambda used: not disks_conflict(pod.disks, used), rows)

    def explain_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> tuple[Sequence[Status], NDArray[np.intp]]:
        if not pod.disks:
            return (self._claim_in_use,), np.zeros(len(rows), dtype=np.intp)
        taken = _disk_column(snapshot).mask(lambda used: disks_conflict(pod.disks, used), rows)
        return (self._claim_in_use, self._disk_taken), taken.astype(np.intp)

    # Queueing

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            on(EventResource.Pod, ActionType.Delete, self._after_pod_deleted),
            on(EventResource.Node, ActionType.Add),
            on(EventResource.PVC, ActionType.Add, self._after_claim_added),
        )

    def _after_claim_added(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        # Upstream misnames this one: it is about added claims only.
        within = UNEXPECTED_AFTER + "PersistentVolumeClaimChange"
        _, new = expect(core.PersistentVolumeClaim, old, new, within=within)
        if not isinstance(new, core.PersistentVolumeClaim) or new.metadata.namespace != pod.namespace:
            return QueueingHint.Skip
        return QueueingHint.Queue if new.metadata.name in pod.direct_claims else QueueingHint.Skip

    def _after_pod_deleted(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, _ = expect(core.Pod, old, new, within=UNEXPECTED_AFTER + "PodDeleted")
        if not isinstance(old, core.Pod) or old.metadata.namespace != pod.namespace:
            return QueueingHint.Skip
        gone = PodInfo(old)
        shares_claim = not set(pod.direct_claims).isdisjoint(gone.direct_claims)
        freed = shares_claim or disks_conflict(pod.disks, gone.disks)
        return QueueingHint.Queue if freed else QueueingHint.Skip


def disks_conflict(wanted: Iterable[Disk], used: Iterable[Disk]) -> bool:
    """Return whether a requested disk is mounted already, unless both only read it."""
    wanted = tuple(wanted)
    if not wanted:
        return False
    return any(_same_disk(a, b) for b in used for a in wanted)


def _same_disk(a: Disk, b: Disk) -> bool:
    a_type, a_name, a_monitors, a_reads = a
    b_type, b_name, b_monitors, b_reads = b
    if a_type != b_type or a_name != b_name or (a_reads and b_reads):
        return False
    return a_type != "rbd" or not set(a_monitors).isdisjoint(b_monitors)


def _disk_column(snapshot: Snapshot) -> Column:
    """Return the inline disks on each node."""
    return snapshot.column(
        "disks", lambda info: frozenset(d for pod in info.pods.values() for d in pod.disks), follows_pods=True
    )


def _claims_of(info: NodeInfo) -> frozenset[tuple[str, str]]:
    return frozenset((pod.namespace, name) for pod in info.pods.values() for name in pod.direct_claims)


def _is_used(snapshot: Snapshot, namespace: str, claim: str) -> bool:
    """Return whether a pod on some node uses the claim; only for claims of one pod, so the column is rare."""
    key = (namespace, claim)
    column = snapshot.column("claims", _claims_of, follows_pods=True)
    return bool(column.mask(lambda used: key in used, slice(0, len(snapshot))).any())
