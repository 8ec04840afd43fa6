"""NodeVolumeLimits: a node attaches a limited number of volumes of a CSI driver, as its CSINode says.

Source: kube-scheduler 1.36, nodevolumelimits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import is_controlled_by
from nominee.machinery.api.pb import core, storage
from nominee.machinery.scheduling.volume_matching import class_of
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
    FilterError,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    Rows,
    Status,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.node_volume_limits.in_tree_volumes import CSI_DRIVERS, is_migrated, translate
from nominee.scheduler.plugins.volume_binding.binder import claim_name

_STATE = "NodeVolumeLimits"
_UNBOUND = "unbound"  # in place of the handle of a claim that has no volume yet

Mask = NDArray[np.bool_]
Limits = Mapping[str, int]  # by driver
_LIMITS = "volume limits"
_LOOK_CLOSELY = 2**40  # more than any limit
_UNLIMITED = 2**50


@dataclass(frozen=True, slots=True)
class Attachable:
    """A volume to be attached: driver and handle. `plugin`: the in-tree driver that it was of, or ""."""

    driver: str
    handle: str
    plugin: str = ""


class VolumesError(Exception):
    """A pod's volumes cannot be counted; `missing`: since a claim does not exist."""

    def __init__(self, text: str, *, missing: bool = False) -> None:
        super().__init__(text)
        self.missing = missing


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    """Rejects nodes where a CSI driver has reached its limit of attached volumes."""

    name = "NodeVolumeLimits"
    _exceeded = Status(Code.Unschedulable, ("node(s) exceed max volume count",), name)

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle
        self._looks_for_drivers = handle.gates.enabled("VolumeLimitScaling")
        # How often CSINodes had changed when a snapshot's column of limits was made.
        self._changes: WeakKeyDictionary[Snapshot, int] = WeakKeyDictionary()

    # PreFilter

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        if not pod.volume_count or not _counts(pod.pod):
            return None, Status(Code.Skip)
        state.write(_STATE, _Cycle(self._handle))
        return None, None

    # Filter

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        cycle: _Cycle = state.read(_STATE)
        csi_node, limits = self._limits_of(node.name)
        try:
            new = cycle.volumes_of(pod, csi_node, new=True)
            missing = self._missing_driver(new, csi_node)
            if missing:
                text = f"{missing} CSI driver is not installed on the node"
                return Status(Code.Unschedulable, (text,), self.name)
            if not new or not limits:
                return None
            attached: set[Attachable] = set()
            for other in node.pods.values():
                if other.volume_count:
                    attached |= cycle.volumes_of(other, csi_node, new=False)
        except VolumesError as error:
            if error.missing:
                return Status(Code.UnschedulableAndUnresolvable, (str(error),), self.name)
            return Status.as_error(error, self.name)
        count = Counter(volume.driver for volume in attached | cycle.attachments(node.name))
        wanted = Counter(volume.driver for volume in new - attached)
        exceeded = any(
            count[driver] + more > limits[driver] for driver, more in wanted.items() if driver in limits
        )
        return self._exceeded if exceeded else None

    def filter_all(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Mask | None:
        """Filter only nodes that could be full: those with a low limit for the volumes they hold."""
        if self._looks_for_drivers:
            return super().filter_all(state, pod, snapshot, rows)
        cycle: _Cycle = state.read(_STATE)
        nodes = snapshot.nodes_at(rows)
        try:
            drivers = {volume.driver for volume in cycle.resolve(pod, new=True)}
        except VolumesError as error:
            if error.missing or not nodes:
                return np.zeros(len(nodes), dtype=np.bool_)
            raise FilterError(Status.as_error(error, self.name)) from None
        limits = self._limit_column(snapshot).numbers(partial(_least_limit, drivers), rows)
        if not len(nodes) or int(limits.min()) == _UNLIMITED:
            return None
        column = snapshot.column("volumes", _volumes_held_at_most, follows_pods=True)
        held = column.numbers(lambda count: count, rows)
        mask: Mask = np.ones(len(nodes), dtype=np.bool_)
        more = pod.volume_count + cycle.attachment_count()
        for index in np.flatnonzero(held + more > limits).tolist():
            status = self.filter(state, pod, nodes[index])
            if status is not None:
                if not status.is_rejected:
                    raise FilterError(status)
                mask[index] = False
        return mask

    def _missing_driver(self, new: Iterable[Attachable], csi_node: storage.CSINode | None) -> str:
        """Return a driver that the node lacks and VolumeLimitScaling requires, or ""."""
        if not self._looks_for_drivers:
            return ""
        installed = set() if csi_node is None else {driver.name for driver in csi_node.spec.drivers}
        for name in sorted({volume.driver for volume in new} - installed):
            driver = self._handle.lister(kinds.CSI_DRIVER).get(name)
            if driver is not None and driver.spec.preventPodSchedulingIfMissing:
                return name
        return ""

    def _limits_of(self, node_name: str) -> tuple[storage.CSINode | None, Limits]:
        csi_node = self._handle.lister(kinds.CSI_NODE).get(node_name)
        return csi_node, {} if csi_node is None else _read_limits(csi_node)

    def _limit_column(self, snapshot: Snapshot) -> Column:
        """Return the limits of each node; built again when CSINodes have changed, which is rare."""
        changes: int | None = getattr(self._handle.lister(kinds.CSI_NODE), "changes", None)
        if changes is None or changes != self._changes.get(snapshot):
            snapshot.forget(_LIMITS)
            self._changes[snapshot] = changes or 0
        return snapshot.column(_LIMITS, lambda info: tuple(sorted(self._limits_of(info.name)[1].items())))

    # Queueing

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            on(EventResource.CSINode, ActionType.Add),
            on(EventResource.CSINode, ActionType.Update, self._after_csi_node_updated),
            on(EventResource.Pod, ActionType.Delete, self._after_pod_deleted),
            on(EventResource.PVC, ActionType.Add, self._after_claim_added),
            on(EventResource.VolumeAttachment, ActionType.Delete, self._after_attachment_deleted),
        )

    def _after_csi_node_updated(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, new = expect(storage.CSINode, old, new, within=UNEXPECTED_AFTER + "CSINodeUpdated")
        if not isinstance(old, storage.CSINode) or not isinstance(new, storage.CSINode):
            return QueueingHint.Queue
        if self._looks_for_drivers and len(new.spec.drivers) > len(old.spec.drivers):
            return QueueingHint.Queue
        before = _read_limits(old)
        grew = any(limit > before.get(driver, 0) for driver, limit in _read_limits(new).items())
        return QueueingHint.Queue if grew else QueueingHint.Skip

    def _after_pod_deleted(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, _ = expect(core.Pod, old, new, within=UNEXPECTED_AFTER + "PodDeleted")
        if not isinstance(old, core.Pod) or not (old.spec.nodeName or old.status.nominatedNodeName):
            return QueueingHint.Skip
        return QueueingHint.Queue if _counts(old) else QueueingHint.Skip

    def _after_claim_added(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        _, new = expect(core.PersistentVolumeClaim, old, new, within=UNEXPECTED_AFTER + "PVCAdded")
        if not isinstance(new, core.PersistentVolumeClaim) or new.metadata.namespace != pod.namespace:
            return QueueingHint.Skip
        return QueueingHint.Queue if new.metadata.name in pod.claims else QueueingHint.Skip

    def _after_attachment_deleted(
        self, pod: PodInfo, old: Message | None, new: Message | None
    ) -> QueueingHint:
        within = UNEXPECTED_AFTER + "VolumeAttachmentDeleted"
        old, _ = expect(storage.VolumeAttachment, old, new, within=within)
        if not isinstance(old, storage.VolumeAttachment):
            return QueueingHint.Skip
        for volume in pod.pod.spec.volumes:
            if not volume.HasField("volumeSource"):
                continue
            if volume.volumeSource.HasField("persistentVolumeClaim"):
                return QueueingHint.Queue
            inline = translate(volume.volumeSource)
            if inline is not None and inline.driver == old.spec.attacher:
                return QueueingHint.Queue
        return QueueingHint.Skip


class _Cycle:
    """The objects looked up in one cycle; shared by its simulations, since they do not change in it."""

    __slots__ = ("_attachments", "_handle", "_resolved")

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._resolved: dict[str, tuple[Attachable, ...]] = {}  # by pod's uid
        self._attachments: dict[str, set[Attachable]] | None = None

    def volumes_of(self, pod: PodInfo, csi_node: storage.CSINode | None, *, new: bool) -> set[Attachable]:
        """Return the pod's volumes that count on that node, each once.

        Raises:
            VolumesError: a claim or its volume is missing.
        """
        return {
            Attachable(volume.driver, volume.handle) if volume.plugin else volume
            for volume in self.resolve(pod, new=new)
            if not volume.plugin or is_migrated(volume.plugin, csi_node)
        }

    def resolve(self, pod: PodInfo, *, new: bool) -> tuple[Attachable, ...]:
        """Return the pod's volumes that may count.

        Raises:
            VolumesError: a claim or its volume is missing; a missing claim only if the pod is `new`.
        """
        found = self._resolved.get(pod.uid)
        if found is None:
            found = self._resolved[pod.uid] = tuple(self._look_up(pod, new=new))
        return found

    def _look_up(self, pod: PodInfo, *, new: bool) -> Iterator[Attachable]:
        for volume in pod.pod.spec.volumes:
            if not volume.HasField("volumeSource"):
                continue
            name, ephemeral = claim_name(pod, volume)
            if not (ephemeral or volume.volumeSource.HasField("persistentVolumeClaim")):
                inline = translate(volume.volumeSource, name=volume.name)
                if inline is not None:
                    yield Attachable(inline.driver, inline.handle, inline.plugin)
                continue
            if not name:
                raise VolumesError("PersistentVolumeClaim had no name")
            claim = self._handle.lister(kinds.PERSISTENT_VOLUME_CLAIM).get(name, pod.namespace)
            if claim is None:
                if new:
                    missing = f'persistentvolumeclaim "{name}" not found'
                    raise VolumesError(f"looking up PVC {pod.namespace}/{name}: {missing}", missing=True)
                continue
            if ephemeral and not is_controlled_by(claim, pod.pod):
                raise VolumesError(
                    f"PVC {pod.namespace}/{name} was not created for pod {pod.key} (pod is not owner)"
                )
            found = self._of_claim(claim)
            if found is not None:
                yield found

    def _of_claim(self, claim: core.PersistentVolumeClaim) -> Attachable | None:
        """Return the claim's volume, or that of its class; None if no CSI driver attaches it."""
        volume = None
        if claim.spec.volumeName:
            volume = self._handle.lister(kinds.PERSISTENT_VOLUME).get(claim.spec.volumeName)
        if volume is None:
            return self._of_class(claim)
        source = volume.spec.persistentVolumeSource
        if source.HasField("csi"):
            csi = source.csi
            return Attachable(csi.driver, csi.volumeHandle) if csi.driver and csi.volumeHandle else None
        before = translate(source, dict(volume.metadata.labels), volume.metadata.name)
        return None if before is None else Attachable(before.driver, before.handle, before.plugin)

    def _of_class(self, claim: core.PersistentVolumeClaim) -> Attachable | None:
        name = class_of(claim)
        storage_class = self._handle.lister(kinds.STORAGE_CLASS).get(name) if name else None
        if storage_class is None or not storage_class.provisioner:
            return None
        provisioner = storage_class.provisioner
        handle = f"{_UNBOUND}-{claim.metadata.namespace}/{claim.metadata.name}"
        if provisioner in CSI_DRIVERS:
            return Attachable(CSI_DRIVERS[provisioner], handle, provisioner)
        return Attachable(provisioner, handle)

    def attachments(self, node_name: str) -> set[Attachable]:
        """Return the volumes attached to the node, by VolumeAttachments."""
        return self._all_attachments().get(node_name, set())

    def attachment_count(self) -> int:
        """Return the largest number of attachments of any node."""
        return max(map(len, self._all_attachments().values()), default=0)

    def _all_attachments(self) -> dict[str, set[Attachable]]:
        if self._attachments is None:
            self._attachments = {}
            volumes = self._handle.lister(kinds.PERSISTENT_VOLUME)
            for attachment in self._handle.lister(kinds.VOLUME_ATTACHMENT).list():
                spec = attachment.spec
                volume = volumes.get(spec.source.persistentVolumeName) if spec.attacher else None
                if volume is not None and volume.spec.persistentVolumeSource.HasField("csi"):
                    handle = volume.spec.persistentVolumeSource.csi.volumeHandle
                    found = Attachable(spec.attacher, handle)
                    self._attachments.setdefault(spec.nodeName, set()).add(found)
        return self._attachments


def _counts(pod: core.Pod) -> bool:
    """Return whether the pod has volumes that may be attached by a CSI driver."""
    for volume in pod.spec.volumes:
        if volume.HasField("volumeSource"):
            source = volume.volumeSource
            if source.HasField("persistentVolumeClaim") or source.HasField("ephemeral"):
                return True
            if translate(source) is not None:
                return True
    return False


def _read_limits(csi_node: storage.CSINode) -> Limits:
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.HasField("allocatable") and driver.allocatable.HasField("count")
    }


def _least_limit(drivers: set[str], limits: tuple[tuple[str, int], ...]) -> int:
    """Return the lowest limit for one of the drivers."""
    return min((limit for driver, limit in limits if driver in drivers), default=_UNLIMITED)


def _volumes_held_at_most(node: NodeInfo) -> int:
    """Return how many volumes the node's pods may have attached, at most.

    More than any limit where there are ephemeral ones, whose claims must be looked up.
    """
    count = 0
    for pod in node.pods.values():
        if pod.volume_count:
            if len(pod.claims) != len(pod.direct_claims):
                return _LOOK_CLOSELY
            count += pod.volume_count
    return count
