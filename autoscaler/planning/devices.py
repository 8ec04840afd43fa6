"""Devices of the simulation: the cluster's claims and slices as a loop begins, and what is tried on top.

A pod that is placed here gets its devices as the scheduler would give them (its DynamicResources plugin
decides), and gives them back when it is moved. Kept from loop to loop, so that what the plugin derives from
claims follows their changes. Source: cluster-autoscaler 1.36, dynamic resources snapshot and its utilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from machinery.api import kinds
from machinery.api.kinds import Kind
from machinery.api.objects import ObjectKey, is_controlled_by, key_of
from machinery.api.pb import core, devices
from scheduler.framework.environment import EMPTY_LISTER
from scheduler.framework.interface import Lister
from scheduler.plugins.dynamic_resources.pod_claims import ClaimError, claim_name, is_reserved_for
from scheduler.plugins.dynamic_resources.tracker import ClaimTracker, DeviceManager, manager_of

M = TypeVar("M", bound=Message)
Claim = devices.ResourceClaim
Slice = devices.ResourceSlice
Listers = Mapping[Kind[Any], Lister[Any]]
_Added = Callable[[Any], None]
_Updated = Callable[[Any, Any], None]
_Deleted = Callable[[Any, bool], None]


class Table(Generic[M]):
    """Objects by key: a lister whose changes can be taken back. It tells handlers as an informer does."""

    def __init__(self) -> None:
        self.changes = 0
        self._objects: dict[ObjectKey, M] = {}
        self._forks: list[dict[ObjectKey, M | None]] = []  # what there was before; None: nothing
        self._handlers: list[tuple[_Added | None, _Updated | None, _Deleted | None]] = []

    def get(self, name: str, namespace: str = "") -> M | None:
        return self._objects.get(ObjectKey(namespace, name))

    def list(self, namespace: str = "") -> list[M]:
        return [obj for key, obj in self._objects.items() if namespace in ("", key.namespace)]

    def add_handler(
        self,
        *,
        on_add: _Added | None = None,
        on_update: _Updated | None = None,
        on_delete: _Deleted | None = None,
    ) -> None:
        """As `Informer.add_handler`; what is there already is not told."""
        self._handlers.append((on_add, on_update, on_delete))

    def reset(self, objects: Iterable[M]) -> None:
        """These objects and no others; not while forked."""
        if self._forks:
            raise RuntimeError("a fork is open")
        new = {key_of(obj): obj for obj in objects}
        for key in self._objects.keys() - new.keys():
            self._write(key, None)
        for key, obj in new.items():
            self._write(key, obj)

    def put(self, obj: M) -> None:
        self._change(key_of(obj), obj)

    def drop(self, key: ObjectKey) -> None:
        self._change(key, None)

    def fork(self) -> None:
        self._forks.append({})

    def commit(self) -> None:
        kept = self._forks.pop()
        if self._forks:
            for key, former in kept.items():
                self._forks[-1].setdefault(key, former)

    def revert(self) -> None:
        for key, former in self._forks.pop().items():
            self._write(key, former)

    def _change(self, key: ObjectKey, new: M | None) -> None:
        if self._forks:
            self._forks[-1].setdefault(key, self._objects.get(key))
        self._write(key, new)

    def _write(self, key: ObjectKey, new: M | None) -> None:
        old = self._objects.get(key)
        if old is new:
            return
        if new is None:
            del self._objects[key]
        else:
            self._objects[key] = new
        self.changes += 1
        self._changed(old, new)
        for on_add, on_update, on_delete in self._handlers:
            if new is None:
                if on_delete is not None:
                    on_delete(old, False)
            elif old is None:
                if on_add is not None:
                    on_add(new)
            elif on_update is not None:
                on_update(old, new)

    def _changed(self, old: M | None, new: M | None) -> None:
        """For tables that keep an index."""


class Claims(Table[Claim]):
    """ResourceClaims, by uid too."""

    def __init__(self) -> None:
        super().__init__()
        self._by_uid: dict[str, Claim] = {}

    def _changed(self, old: Claim | None, new: Claim | None) -> None:
        if old is not None:
            self._by_uid.pop(old.metadata.uid, None)
        if new is not None:
            self._by_uid[new.metadata.uid] = new

    def allocate(self, uid: str, allocation: devices.AllocationResult) -> None:
        """A claim of that uid has these devices. One for extended resources is made, since nobody has it."""
        found = self._by_uid.get(uid)
        new = Claim()
        if found is None:
            new.metadata.name = new.metadata.uid = uid
        else:
            new.CopyFrom(found)
        new.status.allocation.CopyFrom(allocation)
        self.put(new)


class Slices(Table[Slice]):
    """ResourceSlices, by the node that they belong to."""

    def __init__(self) -> None:
        super().__init__()
        self._of_node: dict[str, dict[str, Slice]] = {}

    def of_node(self, name: str) -> tuple[Slice, ...]:
        """By name; without those that several nodes reach."""
        return tuple(each for _, each in sorted(self._of_node.get(name, {}).items()))

    def _changed(self, old: Slice | None, new: Slice | None) -> None:
        if old is not None and old.spec.nodeName:
            known = self._of_node[old.spec.nodeName]
            del known[old.metadata.name]
            if not known:
                del self._of_node[old.spec.nodeName]
        if new is not None and new.spec.nodeName:
            self._of_node.setdefault(new.spec.nodeName, {})[new.metadata.name] = new


class _Tracker(ClaimTracker):
    """Nothing is ever in flight: what Reserve decides is so at once."""

    def __init__(self, claims: Claims) -> None:
        super().__init__(claims)
        self._claims = claims

    def take_off(self, uid: str, allocation: devices.AllocationResult) -> None:
        self._claims.allocate(uid, allocation)


class Devices:
    """What a simulation has of devices. `listers` is what its plugins are to see.

    `begin` takes over how the cluster is; until then there are no devices.
    """

    def __init__(self, listers: Listers) -> None:
        self._source = listers
        self.claims, self.slices = Claims(), Slices()
        self.listers: Listers = {
            **listers,
            kinds.RESOURCE_CLAIM: self.claims,
            kinds.RESOURCE_SLICE: self.slices,
        }
        # Held here, so that it outlasts the plugins of one loop's simulation.
        self._manager = manager_of(self, lambda here: DeviceManager(here, lambda _: _Tracker(self.claims)))

    def lister(self, kind: Kind[M]) -> Lister[M]:
        return self.listers.get(kind, EMPTY_LISTER)

    def begin(self) -> None:
        """A new loop."""
        self.claims.reset(self._source.get(kinds.RESOURCE_CLAIM, EMPTY_LISTER).list())
        self.slices.reset(self._source.get(kinds.RESOURCE_SLICE, EMPTY_LISTER).list())

    # Forks

    def fork(self) -> None:
        self.claims.fork()
        self.slices.fork()

    def commit(self) -> None:
        self.claims.commit()
        self.slices.commit()

    def revert(self) -> None:
        self.claims.revert()
        self.slices.revert()

    # Pods

    def claims_of(self, pod: core.Pod) -> list[Claim]:
        """The pod's claims, of those that are there; with the one for its extended resources."""
        names = []
        for reference in pod.spec.resourceClaims:
            try:
                name, _ = claim_name(pod, reference)
            except ClaimError:
                continue
            names.append(name)
        if pod.status.HasField("extendedResourceClaimStatus"):
            names.append(pod.status.extendedResourceClaimStatus.resourceClaimName)
        found = (self.claims.get(name, pod.metadata.namespace) for name in names if name)
        return [claim for claim in found if claim is not None]

    def reserve(self, pod: core.Pod) -> None:
        """The pod, which has its place now, uses its claims."""
        for claim in self.claims_of(pod):
            if not is_reserved_for(claim, pod.metadata.uid):
                new = _copy(claim)
                new.status.reservedFor.add(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
                self.claims.put(new)

    def unreserve(self, pod: core.Pod) -> None:
        """The pod is to go elsewhere: a claim that is its own, or that nobody else uses, is free again."""
        extended = pod.status.extendedResourceClaimStatus.resourceClaimName
        for claim in self.claims_of(pod):
            if claim.metadata.name == extended:
                self.claims.drop(key_of(claim))  # made anew where the pod goes
                continue
            new = _without(claim, pod)
            if is_controlled_by(new, pod) or not new.status.reservedFor:
                new.status.ClearField("allocation")
            self.claims.put(new)

    def forget(self, pod: core.Pod) -> None:
        """The pod is gone, with its node: its own claims are gone too."""
        for claim in self.claims_of(pod):
            if is_controlled_by(claim, pod):
                self.claims.drop(key_of(claim))
            else:
                self.claims.put(_without(claim, pod))

    # Nodes

    def add_node(self, slices: Iterable[Slice], claims: Iterable[Claim]) -> None:
        """What a new node brings: its devices, and the claims of pods that come with it."""
        for each in slices:
            self.slices.put(each)
        for claim in claims:
            self.claims.put(claim)

    def remove_node(self, name: str) -> None:
        for each in self.slices.of_node(name):
            self.slices.drop(key_of(each))


def _copy(claim: Claim) -> Claim:
    copy = Claim()
    copy.CopyFrom(claim)
    return copy


def _without(claim: Claim, pod: core.Pod) -> Claim:
    """A copy that the pod does not use."""
    copy = _copy(claim)
    del copy.status.reservedFor[:]
    copy.status.reservedFor.extend(user for user in claim.status.reservedFor if user.uid != pod.metadata.uid)
    return copy


def renamed_slices(slices: Iterable[Slice], node_name: str, suffix: str) -> tuple[Slice, ...]:
    """The slices of a node as they would be of another one: of pools of its own."""
    made = []
    for each in slices:
        copy = Slice()
        copy.CopyFrom(each)
        copy.metadata.name = f"{each.metadata.name}-{suffix}"
        copy.metadata.uid = f"{each.metadata.uid}-{suffix}"
        copy.spec.pool.name = f"{each.spec.pool.name}-{suffix}"
        copy.spec.nodeName = node_name
        made.append(copy)
    return tuple(made)


def renamed_claims(
    claims: Iterable[Claim], owner: core.Pod, copy: core.Pod, pools: Iterable[str], suffix: str
) -> list[Claim]:
    """The pod's own claims as its copy on a copy of its node would have them; its devices are of that node.

    One whose devices are not all of the node cannot be had twice, and is left out.
    """
    known, made = frozenset(pools), []
    for claim in claims:
        results = claim.status.allocation.devices.results
        if not is_controlled_by(claim, owner) or any(result.pool not in known for result in results):
            continue
        new = _copy(claim)
        new.metadata.name = f"{claim.metadata.name}-{suffix}"
        new.metadata.uid = f"{claim.metadata.uid}-{suffix}"
        for reference in new.metadata.ownerReferences:
            if reference.uid == owner.metadata.uid:
                reference.name, reference.uid = copy.metadata.name, copy.metadata.uid
        for result in new.status.allocation.devices.results:
            result.pool = f"{result.pool}-{suffix}"
        if new.status.allocation.HasField("nodeSelector"):
            for term in new.status.allocation.nodeSelector.nodeSelectorTerms:
                for row in term.matchFields:
                    row.values[:] = [copy.spec.nodeName]
        del new.status.reservedFor[:]
        made.append(new)
    return made


def has_devices_of(slices: Sequence[Slice], template: Sequence[Slice]) -> bool:
    """Whether a node has published what nodes of its kind have: as many devices of each driver's pools."""
    missing = _counts(template)
    for count in _counts(slices):
        if count in missing:
            missing.remove(count)
    return not missing


def _counts(slices: Iterable[Slice]) -> list[tuple[str, int]]:
    pools: dict[tuple[str, str], int] = {}
    for each in slices:
        key = each.spec.driver, each.spec.pool.name
        pools[key] = pools.get(key, 0) + len(each.spec.devices)
    return sorted((driver, count) for (driver, _), count in pools.items())


__all__ = ["Claims", "Devices", "Slices", "Table", "has_devices_of", "renamed_claims", "renamed_slices"]
