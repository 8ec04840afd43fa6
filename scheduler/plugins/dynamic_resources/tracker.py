"""Keep claims as the scheduler assumes them, and which devices are in use.

What the watch shows is overlaid by what this process has written (until the watch shows it too), and by
allocations in flight: decided, not written yet. One tracker serves all profiles of a process, since devices
are the cluster's. Source: kube-scheduler 1.36, dra_manager and allocateddevices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from google.protobuf.message import Message

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import (
    ObjectKey,
    key_of,
    resource_version_number,
    resource_version_of,
)
from nominee.machinery.api.pb import core, devices
from nominee.machinery.resources.quantity import Quantity
from nominee.scheduler.framework.cluster.scheduling_groups import group_of
from nominee.scheduler.framework.interface import Lister
from nominee.scheduler.framework.runtime.environment import EmptyLister
from nominee.scheduler.plugins.dynamic_resources.class_map import ClassMap
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import (
    AllocatedState,
    Amounts,
    DeviceId,
    SliceView,
    amounts_of,
)
from nominee.scheduler.plugins.dynamic_resources.device_allocation.pools import SliceIndex

Claim = devices.ResourceClaim
M = TypeVar("M", bound=Message)
_ZERO = Quantity()


@dataclass(frozen=True, slots=True)
class _Usage:
    """The devices of one claim: whole ones, and shares of devices with the capacity taken."""

    whole: tuple[DeviceId, ...] = ()
    shares: tuple[tuple[DeviceId, Amounts], ...] = ()

    def devices(self) -> set[DeviceId]:
        """Return all devices."""
        return {*self.whole, *(device for device, _ in self.shares)}


def _usage_of(claim: Claim) -> _Usage:
    """Return the devices in use; administrators' access does not use them up."""
    if not claim.status.HasField("allocation"):
        return _NOTHING
    whole, shares = [], []
    for result in claim.status.allocation.devices.results:
        if result.adminAccess:
            continue
        device = DeviceId(result.driver, result.pool, result.device)
        if result.shareID:
            shares.append((device, amounts_of(result.consumedCapacity)))
        else:
            whole.append(device)
    return _Usage(tuple(whole), tuple(shares))


_NOTHING = _Usage()


@dataclass(frozen=True, slots=True)
class _Flight:
    """An allocation that was decided, and the pods (by uid) that are to write it: one, or more of a gang."""

    allocation: devices.AllocationResult
    usage: _Usage
    holders: dict[str, ObjectKey | None] = field(default_factory=dict)  # with their groups


class Usage:
    """The sum of the claims' devices, kept up by adding and taking away."""

    def __init__(self) -> None:
        self._counts: dict[DeviceId, int] = {}  # more than one claim after a mistake of another writer
        self._shares: dict[DeviceId, int] = {}
        self._capacity: dict[DeviceId, Amounts] = {}
        self.state = AllocatedState(self._counts.keys(), self._capacity)

    def add(self, usage: _Usage, sign: int = 1) -> None:
        """Add the devices of one claim, or take them away (`sign` -1)."""
        for device in usage.whole:
            _count(self._counts, device, sign)
        for device, amounts in usage.shares:
            _count(self._shares, device, sign)
            if device not in self._shares:
                self._capacity.pop(device, None)
                continue
            total = self._capacity.setdefault(device, {})
            for name, amount in amounts.items():
                total[name] = total.get(name, _ZERO) + (amount if sign > 0 else -amount)


def _count(counts: dict[DeviceId, int], device: DeviceId, sign: int) -> None:
    left = counts.get(device, 0) + sign
    if left > 0:
        counts[device] = left
    else:
        counts.pop(device, None)


class ClaimTracker:
    """The claims of the cluster. `lister` may be an informer, which then reports changes.

    `announce` is called with a claim before and after its deallocation where the informer reports none: the
    allocation was assumed, and the watch has not shown it.
    """

    def __init__(self, lister: Lister[Claim]) -> None:
        self.announce: Callable[[Claim, Claim], None] = lambda old, new: None
        self._lister = lister
        self._assumed: dict[ObjectKey, Claim] = {}
        self._in_flight: dict[str, _Flight] = {}  # by the claim's uid
        self._usages: dict[ObjectKey, _Usage] = {}
        self._usage = Usage()
        self._unannounced_devices: set[DeviceId] = set()
        self._read_at: int | None = None
        self._is_notified = hasattr(lister, "add_handler")
        if self._is_notified:
            lister.add_handler(  # type: ignore[attr-defined]
                on_add=self._changed,
                on_update=self._updated,
                on_delete=lambda claim, stale: self._gone(key_of(claim)),
            )
            for claim in lister.list():
                self._changed(claim)

    def get(self, name: str, namespace: str) -> Claim | None:
        found = self._lister.get(name, namespace)
        return found if found is None or not self._assumed else self._over(found)

    def list(self, namespace: str = "") -> list[Claim]:
        found = self._lister.list(namespace)
        return [self._over(claim) for claim in found] if self._assumed else found

    def allocated(self) -> AllocatedState:
        """Return the devices in use now; it changes with the tracker, so no cycle may outlast a change."""
        if not self._is_notified:
            self._read_all()
        return self._usage.state

    def unannounced_devices(self) -> tuple[str, ...]:
        """Return the free devices that no event has announced, as `driver/pool/device`.

        Their claim was removed while it was allocated, or an allocation was given up before it was written.
        Pods that wait for them are left to the flush (kube-scheduler 1.36, EventsToRegister and Unreserve).
        """
        return tuple(sorted(map(str, self._unannounced_devices - self._usage.state.devices)))

    def is_in_flight(self, uid: str) -> bool:
        return uid in self._in_flight

    def take_off(self, uid: str, allocation: devices.AllocationResult) -> None:
        """Enter an allocation that was decided: its devices are in use from now on."""
        self.land(uid)
        claim = Claim()
        claim.status.allocation.CopyFrom(allocation)
        self._in_flight[uid] = flight = _Flight(claim.status.allocation, _usage_of(claim))
        self._usage.add(flight.usage)

    def shareable(self, uid: str, pod: core.Pod) -> devices.AllocationResult | None:
        """Return the allocation in flight, if a pod of the same gang has decided it."""
        flight, group = self._in_flight.get(uid), group_of(pod)
        if flight is None or group is None or set(flight.holders.values()) != {group}:
            return None
        return flight.allocation

    def join(self, uid: str, pod: core.Pod) -> bool:
        """Add the pod as a writer of the allocation in flight; return False when none is in flight."""
        flight = self._in_flight.get(uid)
        if flight is not None:
            flight.holders[pod.metadata.uid] = group_of(pod)
        return flight is not None

    def holds(self, uid: str, pod_uid: str) -> bool:
        """Return whether the allocation is in flight still, and the pod is to write it."""
        return uid in self._in_flight and pod_uid in self._in_flight[uid].holders

    def give_up(self, uid: str, pod_uid: str) -> bool:
        """Remove the pod as a writer; return True when it was the last: the devices are free again."""
        flight = self._in_flight.get(uid)
        if flight is None or pod_uid not in flight.holders:
            return False
        del flight.holders[pod_uid]
        if not flight.holders:
            self._unannounced_devices |= flight.usage.devices()
        return not flight.holders and self.land(uid)

    def land(self, uid: str) -> bool:
        """End the flight of an allocation that was written; return False when there was none."""
        flight = self._in_flight.pop(uid, None)
        if flight is not None:
            self._usage.add(flight.usage, -1)
        return flight is not None

    def assume(self, claim: Claim) -> None:
        """Assume `claim`, which the API server has returned from a write.

        The watch may show the claim's end before the answer comes: then nothing would take it back, and its
        devices would stay in use.
        """
        found = self._lister.get(claim.metadata.name, claim.metadata.namespace)
        if found is not None and resource_version_of(found) > resource_version_of(claim):
            return
        if found is None and self._shows(resource_version_of(claim)):
            return
        before = found if found is None else self._over(found)
        self._assumed[key_of(claim)] = claim
        self._believe(key_of(claim), claim)
        self._announce_end(before, claim)

    def _shows(self, revision: int) -> bool:
        """Return whether the watch has shown all changes up to the revision."""
        shown: str = getattr(self._lister, "resource_version", "")
        return resource_version_number(shown) >= revision > 0

    def restore(self, name: str, namespace: str) -> None:
        """Use the watched claim again; harmless when nothing was assumed."""
        key = ObjectKey(namespace, name)
        assumed = self._assumed.pop(key, None)
        if assumed is None:
            return
        found = self._lister.get(name, namespace)
        self._believe(key, found)
        self._announce_end(assumed, found)

    def _over(self, found: Claim) -> Claim:
        key = key_of(found)
        assumed = self._assumed.get(key)
        if assumed is None:
            return found
        if assumed.metadata.uid != found.metadata.uid or resource_version_of(found) > resource_version_of(
            assumed
        ):
            del self._assumed[key]
            return found
        return assumed

    def _updated(self, old: Claim, new: Claim) -> None:
        """Take an update of the watch, which may have merged or lost the one that shows the allocation.

        Source: kube-scheduler 1.36, AssumeCache, whose events begin at the object that was assumed.
        """
        key = key_of(new)
        assumed = self._assumed.get(key)
        self._changed(new)
        if key not in self._assumed and not old.status.HasField("allocation"):
            self._announce_end(assumed, new)

    def _announce_end(self, old: Claim | None, new: Claim | None) -> None:
        """Announce the end of an allocation."""
        if old is None or new is None or new.status.HasField("allocation"):
            return
        if old.status.HasField("allocation"):
            self.announce(old, new)

    def _changed(self, claim: Claim) -> None:
        self._believe(key_of(claim), self._over(claim))

    def _gone(self, key: ObjectKey) -> None:
        self._assumed.pop(key, None)
        self._believe(key, None)

    def _believe(self, key: ObjectKey, claim: Claim | None) -> None:
        new = _NOTHING if claim is None else _usage_of(claim)
        old = self._usages.pop(key, _NOTHING)
        if new is not _NOTHING:
            self._usages[key] = new
        if old != new:
            self._usage.add(old, -1)
            self._usage.add(new)
        if claim is None:
            self._unannounced_devices |= old.devices()
        elif old is not _NOTHING and new is _NOTHING:
            self._unannounced_devices.clear()  # such an update wakes all pods that wait for some

    def _read_all(self) -> None:
        """Read the changed claims again, for listers that report no changes."""
        now = getattr(self._lister, "changes", None)
        if now is not None and now == self._read_at:
            return
        self._read_at = now
        seen = set()
        for claim in self._lister.list():
            seen.add(key_of(claim))
            self._changed(claim)
        for key in self._usages.keys() - seen - self._assumed.keys():
            self._believe(key, None)


class Slices:
    """The ResourceSlices, read and indexed; again only where they have changed."""

    def __init__(self, lister: Lister[devices.ResourceSlice]) -> None:
        self._lister = lister
        self._views: dict[str, SliceView] = {}
        self._index = SliceIndex(())
        self._read_at: int | None = None

    def index(self) -> SliceIndex:
        """Return the index of the slices as the lister has them now."""
        now = getattr(self._lister, "changes", None)
        if now is not None and now == self._read_at:
            return self._index
        views: dict[str, SliceView] = {}
        for message in self._lister.list():
            known = self._views.get(message.metadata.name)
            same = known is not None and known.message is message
            views[message.metadata.name] = known if known is not None and same else SliceView(message)
        self._views, self._index, self._read_at = views, SliceIndex(views.values()), now
        return self._index


class HasListers(Protocol):
    """The part of a plugin's handle that is needed here."""

    def lister(self, kind: Kind[M]) -> Lister[M]: ...


class DeviceManager:
    """Claims, slices and classes, shared by all that look at the same listers."""

    def __init__(
        self, handle: HasListers, track: Callable[[Lister[Claim]], ClaimTracker] = ClaimTracker
    ) -> None:
        self.claims = track(handle.lister(kinds.RESOURCE_CLAIM))
        self.slices = Slices(handle.lister(kinds.RESOURCE_SLICE))
        self._classes = handle.lister(kinds.DEVICE_CLASS)
        self._class_map: tuple[int | None, ClassMap] | None = None

    def device_class(self, name: str) -> devices.DeviceClass | None:
        return self._classes.get(name)

    def class_map(self) -> ClassMap:
        """Return the extended resources that the classes provide."""
        changes: int | None = getattr(self._classes, "changes", None)
        if self._class_map is None or changes is None or self._class_map[0] != changes:
            self._class_map = changes, ClassMap(self._classes.list())
        return self._class_map[1]


# By the lister's id, which is unique while the manager holds the lister; the plugins hold the manager.
_MANAGERS: WeakValueDictionary[int, DeviceManager] = WeakValueDictionary()


def manager_of(
    handle: HasListers, make: Callable[[HasListers], DeviceManager] = DeviceManager
) -> DeviceManager:
    """Return the manager of the handle's claims: one for all profiles of a process."""
    lister: Any = handle.lister(kinds.RESOURCE_CLAIM)
    if isinstance(lister, EmptyLister):
        return make(handle)
    found = _MANAGERS.get(id(lister))
    if found is None:
        found = _MANAGERS[id(lister)] = make(handle)
    return found


def unannounced_devices(lister: Lister[Claim]) -> tuple[str, ...]:
    """Return the free devices that no event has announced to the pods of the process with this lister."""
    found = _MANAGERS.get(id(lister))
    return () if found is None else found.claims.unannounced_devices()


def announce_deallocations(lister: Lister[Claim], announce: Callable[[Claim, Claim], None]) -> None:
    """Have the deallocations announced that the informer with this lister does not report."""
    found = _MANAGERS.get(id(lister))
    if found is not None:
        found.claims.announce = announce


__all__ = [
    "ClaimTracker",
    "DeviceManager",
    "HasListers",
    "Slices",
    "Usage",
    "announce_deallocations",
    "manager_of",
    "unannounced_devices",
]
