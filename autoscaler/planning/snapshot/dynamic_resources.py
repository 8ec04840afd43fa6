"""Claims and devices of the cluster snapshot: those of the cluster, and the simulation's changes.

A pod that is scheduled in the simulation gets its devices as the scheduler would allocate them (its
DynamicResources plugin decides); they are released when the pod is moved. The tables live as long as the
autoscaler, so that what the plugin derives from claims follows their changes from loop to loop.

Source: cluster-autoscaler 1.36, dynamicresources snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from google.protobuf.message import Message

from nominee.autoscaler.planning.snapshot.forkable_table import ForkableTable
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import copy_of, is_controlled_by, key_of
from nominee.machinery.api.pb import core, devices
from nominee.scheduler.framework.interface import Lister
from nominee.scheduler.framework.runtime.environment import EMPTY_LISTER
from nominee.scheduler.plugins.dynamic_resources.pod_claims import ClaimError, claim_name, is_reserved_for
from nominee.scheduler.plugins.dynamic_resources.tracker import ClaimTracker, DeviceManager, manager_of

M = TypeVar("M", bound=Message)
Claim = devices.ResourceClaim
Slice = devices.ResourceSlice
Listers = Mapping[Kind[Any], Lister[Any]]


class ClaimTable(ForkableTable[Claim]):
    """Hold ResourceClaims, by UID too."""

    def __init__(self) -> None:
        super().__init__()
        self._by_uid: dict[str, Claim] = {}

    def _update_indexes(self, old: Claim | None, new: Claim | None) -> None:
        if old is not None:
            self._by_uid.pop(old.metadata.uid, None)
        if new is not None:
            self._by_uid[new.metadata.uid] = new

    def allocate(self, uid: str, allocation: devices.AllocationResult) -> None:
        """Set the allocation of the claim with this UID.

        The claim for extended resources does not exist in the API server yet: it is created here.
        """
        former = self._by_uid.get(uid)
        new = Claim() if former is None else copy_of(former)
        if former is None:
            new.metadata.name = new.metadata.uid = uid
        new.status.allocation.CopyFrom(allocation)
        self.put(new)


class SliceTable(ForkableTable[Slice]):
    """Hold ResourceSlices, by node too."""

    def __init__(self) -> None:
        super().__init__()
        self._by_node: dict[str, dict[str, Slice]] = {}

    def of_node(self, name: str) -> tuple[Slice, ...]:
        """Return the slices of a node, by name; without those that several nodes can reach."""
        return tuple(each for _, each in sorted(self._by_node.get(name, {}).items()))

    def _update_indexes(self, old: Slice | None, new: Slice | None) -> None:
        if old is not None and old.spec.nodeName:
            of_node = self._by_node[old.spec.nodeName]
            del of_node[old.metadata.name]
            if not of_node:
                del self._by_node[old.spec.nodeName]
        if new is not None and new.spec.nodeName:
            self._by_node.setdefault(new.spec.nodeName, {})[new.metadata.name] = new


class _Tracker(ClaimTracker):
    """Apply the allocations of Reserve at once: no allocation waits for a write to the API server."""

    def __init__(self, claims: ClaimTable) -> None:
        super().__init__(claims)
        self._claims = claims

    def take_off(self, uid: str, allocation: devices.AllocationResult) -> None:
        self._claims.allocate(uid, allocation)


class DynamicResources:
    """The claims and slices of the cluster snapshot. The simulation's plugins read `listers`.

    There are no devices until the first `refresh`.
    """

    def __init__(self, listers: Listers) -> None:
        self._source = listers
        self.claims, self.slices = ClaimTable(), SliceTable()
        self.listers: Listers = {
            **listers,
            kinds.RESOURCE_CLAIM: self.claims,
            kinds.RESOURCE_SLICE: self.slices,
        }
        # Referenced here, so that it outlives the plugins of one loop's simulation.
        self._manager = manager_of(self, lambda here: DeviceManager(here, lambda _: _Tracker(self.claims)))

    def lister(self, kind: Kind[M]) -> Lister[M]:
        """Return the lister of a kind; an empty one where the kind is not watched."""
        return self.listers.get(kind, EMPTY_LISTER)

    def refresh(self) -> None:
        """Take over the claims and slices of the cluster, for a new loop."""
        self.claims.reset(self._source.get(kinds.RESOURCE_CLAIM, EMPTY_LISTER).list())
        self.slices.reset(self._source.get(kinds.RESOURCE_SLICE, EMPTY_LISTER).list())

    # Forks

    def fork(self) -> None:
        """Begin changes that the matching `commit` keeps, or `revert` undoes."""
        self.claims.fork()
        self.slices.fork()

    def commit(self) -> None:
        """Keep the changes since the last fork."""
        self.claims.commit()
        self.slices.commit()

    def revert(self) -> None:
        """Undo the changes since the last fork."""
        self.claims.revert()
        self.slices.revert()

    # Pods

    def claims_of(self, pod: core.Pod) -> list[Claim]:
        """Return the pod's claims that exist, the one for its extended resources included."""
        names = []
        for reference in pod.spec.resourceClaims:
            try:
                name, _ = claim_name(pod, reference)
            except ClaimError:
                continue
            names.append(name)
        if pod.status.HasField("extendedResourceClaimStatus"):
            names.append(pod.status.extendedResourceClaimStatus.resourceClaimName)
        claims = (self.claims.get(name, pod.metadata.namespace) for name in names if name)
        return [claim for claim in claims if claim is not None]

    def reserve(self, pod: core.Pod) -> None:
        """Reserve the pod's claims for the pod, which has been scheduled."""
        for claim in self.claims_of(pod):
            if not is_reserved_for(claim, pod.metadata.uid):
                new = copy_of(claim)
                new.status.reservedFor.add(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
                self.claims.put(new)

    def unreserve(self, pod: core.Pod) -> None:
        """Release the pod's claims, since it is to be moved; deallocate those that no other pod uses."""
        extended = pod.status.extendedResourceClaimStatus.resourceClaimName
        for claim in self.claims_of(pod):
            if claim.metadata.name == extended:
                self.claims.drop(key_of(claim))  # created again where the pod is scheduled
                continue
            new = _not_reserved_for(claim, pod)
            if is_controlled_by(new, pod) or not new.status.reservedFor:
                new.status.ClearField("allocation")
            self.claims.put(new)

    def remove_pod(self, pod: core.Pod) -> None:
        """Remove the claims that the pod owns, and release the others: it is gone, with its node."""
        for claim in self.claims_of(pod):
            if is_controlled_by(claim, pod):
                self.claims.drop(key_of(claim))
            else:
                self.claims.put(_not_reserved_for(claim, pod))

    # Nodes

    def add_node(self, slices: Iterable[Slice], claims: Iterable[Claim]) -> None:
        """Add the devices of a new node, and the claims of the pods that come with it."""
        for each in slices:
            self.slices.put(each)
        for claim in claims:
            self.claims.put(claim)

    def remove_node(self, name: str) -> None:
        for each in self.slices.of_node(name):
            self.slices.drop(key_of(each))


def _not_reserved_for(claim: Claim, pod: core.Pod) -> Claim:
    copy = copy_of(claim)
    del copy.status.reservedFor[:]
    copy.status.reservedFor.extend(user for user in claim.status.reservedFor if user.uid != pod.metadata.uid)
    return copy
