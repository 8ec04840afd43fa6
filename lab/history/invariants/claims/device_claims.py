"""A device is allocated to one claim, and a claim keeps its allocation while pods use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from cachetools import LRUCache

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.former_objects import FORMER_POD, FormerObjects
from nominee.lab.history.invariants.checking.leaders import Leaders
from nominee.lab.history.invariants.checking.pods import ended_pod, is_terminal
from nominee.lab.history.invariants.checking.preemptions import PODS_MAX
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import LEASE, POD, RESOURCE_CLAIM
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import devices

_SCHEDULER: Final = "kube-scheduler"


class Device(NamedTuple):
    """The identity of a device."""

    driver: str
    pool: str
    name: str


class DeviceClaims(Checker):
    """Follows the allocations of claims, and the pods for which they are reserved.

    Devices that several claims may have are left out: those with adminAccess, and shares of a device with
    consumable capacity (KEP-5018, KEP-5075).
    Source: KEP-4381; kube-apiserver 1.36, ResourceClaim validation; resourceclaim controller.
    """

    about = Invariant(
        name="devices-have-one-claim",
        description="A device is allocated to one claim, a reserved claim is allocated and keeps its "
        "devices, and it stays reserved for a bound pod until the pod has ended.",
        checks="writes of resource claims",
        exceptions={
            "new-leader": "another scheduler became the leader shortly before; a write of the former leader "
            "may have been under way",
            "stale-start": "WatchListClient is off: a scheduler that was restarted may begin with an older "
            "state",
            **FORMER_POD,
        },
    )
    kinds = frozenset({RESOURCE_CLAIM, POD, LEASE})
    reads_settings = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._claims: dict[Device, Revision] = {}
        self._pods: dict[str, Revision] = {}
        self._gone: LRUCache[str, None] = LRUCache(PODS_MAX)
        self._unknown: dict[str, Revision] = {}
        self._is_complete = True
        self._leaders = Leaders(_SCHEDULER)
        self._former = FormerObjects()

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a pod or a leader, or check a claim."""
        self._is_complete = self._is_complete and not revision.is_state
        if revision.kind is LEASE:
            self._leaders.observe(revision)
        elif revision.kind is POD:
            self._observe_pod(revision)
        else:
            yield from self._observe_claim(revision)

    def _observe_pod(self, revision: Revision) -> None:
        self._former.observe(revision)
        ended, pod = ended_pod(revision), revision.after(POD)
        if ended is not None:
            self._pods.pop(ended.metadata.uid, None)
            self._gone[ended.metadata.uid] = None
        if pod is not None:
            self._pods[pod.metadata.uid] = revision
            self._unknown.pop(pod.metadata.uid, None)

    def _observe_claim(self, revision: Revision) -> Iterator[Violation]:
        self.checked += 1
        before, claim = revision.before(RESOURCE_CLAIM), revision.after(RESOURCE_CLAIM)
        if before is not None and claim is not None and before.metadata.uid == claim.metadata.uid:
            yield from self._check_change(before, claim, revision)
        for device in () if before is None else devices_of(before):
            holder = self._claims.get(device)
            if holder is not None and holder.key == revision.key:
                del self._claims[device]
        if claim is None:
            return
        if claim.status.reservedFor and not claim.status.HasField("allocation"):
            yield self.violation("the claim is reserved, and it is not allocated", revision)
        for device in devices_of(claim):
            yield from self._take(device, revision)
        for user in claim.status.reservedFor:
            if user.resource == "pods" and user.uid not in self._pods and user.uid not in self._gone:
                self._unknown.setdefault(user.uid, revision)

    def _take(self, device: Device, revision: Revision) -> Iterator[Violation]:
        holder = self._claims.get(device)
        if holder is None:
            self._claims[device] = revision
        elif self._leaders.changed_before(revision.time):
            self.allow("new-leader")
        elif "scheduler" not in self.settings.lists_newest:
            self.allow("stale-start")
        else:
            yield self.violation(
                f"device {device.name!r} of pool {device.pool!r} (driver {device.driver}) is allocated to "
                f"this claim, and {holder.subject} has it",
                holder,
                revision,
            )

    def _check_change(
        self, before: devices.ResourceClaim, claim: devices.ResourceClaim, revision: Revision
    ) -> Iterator[Violation]:
        old, new = before.status, claim.status
        if old.HasField("allocation") and new.HasField("allocation") and old.allocation != new.allocation:
            yield self.violation("the claim's allocation was replaced by another one", revision)
        users = {user.uid for user in new.reservedFor}
        for user in old.reservedFor:
            seen = self._pods.get(user.uid)
            if user.uid in users or seen is None:
                continue
            pod = seen.after(POD)
            if pod is None or not pod.spec.nodeName or is_terminal(pod) or is_terminating(pod):
                continue
            is_freed = not new.HasField("allocation")
            if self._former.was_deleted(seen.key, revision.time, self.served_time):
                self.allow("former-pod")
            elif not is_freed and self._leaders.changed_before(revision.time):
                # Unreserve of a scheduler whose binding came after that of its successor.
                self.allow("new-leader")
            else:
                lost = "deallocated" if is_freed else "no longer reserved"
                yield self.violation(
                    f"the claim is {lost} while {seen.subject} uses it on node {pod.spec.nodeName!r}",
                    seen,
                    revision,
                )

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Report reservations for pods that never existed."""
        if not self._is_complete:
            return
        for uid, revision in self._unknown.items():
            yield self.violation(f"the claim was reserved for a pod that never existed (uid {uid})", revision)


def devices_of(claim: devices.ResourceClaim) -> Iterator[Device]:
    """Yield the devices that are allocated to the claim alone."""
    for result in claim.status.allocation.devices.results:
        if not result.adminAccess and not result.shareID and not result.consumedCapacity:
            yield Device(result.driver, result.pool, result.device)
