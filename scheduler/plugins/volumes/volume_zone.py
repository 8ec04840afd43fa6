"""VolumeZone: a bound volume with zone or region labels is used from nodes of that zone or region.

Source: kube-scheduler 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core, storage
from nominee.machinery.scheduling.volume_matching import WAIT_FOR_FIRST_CONSUMER, class_of
from nominee.scheduler.framework.api.events import (
    UNEXPECTED_AFTER,
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
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    Rows,
    Status,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo

_STATE = "VolumeZone"
_SEPARATOR = "__"  # between the zones of a volume that is in several

# Labels in the order in which they are checked, each with the current label of the same meaning.
_TOPOLOGY_LABELS: Final[Mapping[str, str]] = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Place:
    """A label of a volume: nodes must have one of the values."""

    key: str
    values: frozenset[str]

    def admits(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if value is None:
            value = labels.get(_TOPOLOGY_LABELS[self.key])
        return value is not None and value in self.values


def places_of(volume: core.PersistentVolume) -> list[Place]:
    """Return the nodes' labels that the volume requires; a label that cannot be parsed requires nothing."""
    places = []
    for key in _TOPOLOGY_LABELS:
        if key in volume.metadata.labels:
            values = [value.strip() for value in volume.metadata.labels[key].split(_SEPARATOR)]
            if all(values):
                places.append(Place(key, frozenset(values)))
    return places


class VolumeZone(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    """Rejects nodes outside the zone or region of a bound volume."""

    name = "VolumeZone"
    looks_at_pods = False
    only_rejection = Status(
        Code.UnschedulableAndUnresolvable, ("node(s) had no available volume zone",), name
    )

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        if not pod.claims:
            return None, Status(Code.Skip)
        found = self._places(pod)
        if isinstance(found, str):
            return None, Status(Code.UnschedulableAndUnresolvable, (found,), self.name)
        if not found:
            return None, Status(Code.Skip)
        state.write(_STATE, found)
        return None, None

    def _places(self, pod: PodInfo) -> tuple[Place, ...] | str:
        """Return where the pod's bound volumes are, or the problem with its claims."""
        found: list[Place] = []
        for name in pod.direct_claims:
            if not name:
                return "PersistentVolumeClaim had no name"
            claim = self._handle.lister(kinds.PERSISTENT_VOLUME_CLAIM).get(name, pod.namespace)
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if not claim.spec.volumeName:
                problem = self._why_not_bound(claim)
                if problem:
                    return problem
                continue
            volume = self._handle.lister(kinds.PERSISTENT_VOLUME).get(claim.spec.volumeName)
            if volume is None:
                return f'persistentvolume "{claim.spec.volumeName}" not found'
            found += places_of(volume)
        return tuple(found)

    def _why_not_bound(self, claim: core.PersistentVolumeClaim) -> str:
        """Return why the claim is not bound; "" when it waits for the pod."""
        class_name = class_of(claim)
        if not class_name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        storage_class = self._handle.lister(kinds.STORAGE_CLASS).get(class_name)
        if storage_class is None:
            return f'storageclass.storage.k8s.io "{class_name}" not found'
        if not storage_class.HasField("volumeBindingMode"):
            return f'VolumeBindingMode not set for StorageClass "{class_name}"'
        delayed = storage_class.volumeBindingMode == WAIT_FOR_FIRST_CONSUMER
        return "" if delayed else "PersistentVolume had no name"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        places: tuple[Place, ...] = state.read(_STATE)
        if not any(key in node.labels for key in _TOPOLOGY_LABELS):
            return None  # a cluster of one zone may not label its nodes
        return None if all(place.admits(node.labels) for place in places) else self.only_rejection

    def filter_all(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Mask | None:
        places: tuple[Place, ...] = state.read(_STATE)
        missing = {key: snapshot.label_column(key).mask(_is_missing, rows) for key in _TOPOLOGY_LABELS}
        unlabelled: Mask = np.logical_and.reduce(list(missing.values()))
        admitted: Mask = np.ones(len(unlabelled), dtype=np.bool_)
        for place in places:
            mask = snapshot.label_column(place.key).mask(place.values.__contains__, rows)
            today = _TOPOLOGY_LABELS[place.key]
            if today != place.key:
                by_today = snapshot.label_column(today).mask(place.values.__contains__, rows)
                mask |= missing[place.key] & by_today
            admitted &= mask
        return admitted | unlabelled

    # Queueing

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        changed = ActionType.Add | ActionType.Update
        return (
            on(EventResource.StorageClass, ActionType.Add, self._after_class_added),
            on(EventResource.Node, ActionType.Add | ActionType.UpdateNodeLabel),
            on(EventResource.PVC, changed, self._after_claim_change),
            on(EventResource.PV, changed, self._after_volume_change),
        )

    def _after_class_added(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        _, new = expect(storage.StorageClass, None, new, within=UNEXPECTED_AFTER + "StorageClassAdded")
        delayed = isinstance(new, storage.StorageClass) and new.volumeBindingMode == WAIT_FOR_FIRST_CONSUMER
        return QueueingHint.Queue if delayed else QueueingHint.Skip

    def _after_claim_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        _, new = expect(
            core.PersistentVolumeClaim, old, new, within=UNEXPECTED_AFTER + "PersistentVolumeClaimChange"
        )
        if not isinstance(new, core.PersistentVolumeClaim) or new.metadata.namespace != pod.namespace:
            return QueueingHint.Skip
        return QueueingHint.Queue if new.metadata.name in pod.direct_claims else QueueingHint.Skip

    def _after_volume_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, new = expect(core.PersistentVolume, old, new, within=UNEXPECTED_AFTER + "PersistentVolumeChange")
        if not isinstance(old, core.PersistentVolume) or not isinstance(new, core.PersistentVolume):
            return QueueingHint.Queue
        return QueueingHint.Skip if places_of(old) == places_of(new) else QueueingHint.Queue


def _is_missing(value: str | None) -> bool:
    return value is None
