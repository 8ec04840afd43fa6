"""Reservations and finalizers that outlive their reason: claims, volumes, leases. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from google.protobuf.message import Message

from nominee.lab.chaos.rest.state import Finding, State, in_order, name_of
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is, has_ended, is_terminating, metadata_of
from nominee.machinery.api.pb import core, devices
from nominee.machinery.api.volume_claims import claims_of
from nominee.machinery.runtime.clock import from_time

_PROTECTION: Final = "kubernetes.io/pvc-protection"
_FOREGROUND: Final = "foregroundDeletion"
_LEADERS: Final = {"kube-scheduler": "scheduler", "cluster-autoscaler": "autoscaler"}
"""The component that holds a lease of kube-system."""


def resource_claims(state: State) -> Iterator[Finding]:
    """Find claims that are reserved for pods which do not exist or have ended, or allocated for none."""
    if CONTROLLERS not in state.running:
        return
    pods = {pod.metadata.uid: pod for pod in state.of(kinds.POD)}
    for claim in state.of(kinds.RESOURCE_CLAIM):
        if is_unreserved(claim) and claim.metadata.uid not in state.unreserved_claims:
            yield Finding(name_of(claim), "is allocated, and reserved for no pod")
        for consumer in claim.status.reservedFor:
            pod = pods.get(consumer.uid)
            if consumer.resource == "pods" and (pod is None or has_ended(pod)):
                why = "does not exist" if pod is None else "has ended"
                yield Finding(name_of(claim), f"is reserved for pod {consumer.name}, which {why}")


def is_unreserved(claim: devices.ResourceClaim) -> bool:
    """Return whether a claim is allocated, and reserved for none."""
    return claim.status.HasField("allocation") and not claim.status.reservedFor


def devices_of_claims(state: State) -> Iterator[Finding]:
    """Find devices that are allocated to two claims."""
    holders: dict[str, str] = {}
    for claim in state.of(kinds.RESOURCE_CLAIM):
        for result in claim.status.allocation.devices.results:
            if result.adminAccess or result.HasField("shareID"):
                continue
            device = f"device {_device(result)}"
            holder = holders.setdefault(device, name_of(claim))
            if holder != name_of(claim):
                yield Finding(device, f"is allocated to {holder} and to {name_of(claim)}")


def _device(result: devices.DeviceRequestAllocationResult) -> str:
    return f"{result.driver}/{result.pool}/{result.device}"


def volume_claims(state: State) -> Iterator[Finding]:
    """Find volume claims that are bound on one side only, or that are kept for a pod which is gone."""
    if CONTROLLERS not in state.running:
        return
    volumes = {volume.metadata.name: volume for volume in state.of(kinds.PERSISTENT_VOLUME)}
    for claim in state.of(kinds.PERSISTENT_VOLUME_CLAIM):
        if is_terminating(claim):
            is_kept = _PROTECTION in claim.metadata.finalizers
            if is_kept and not any(_uses(pod, claim) for pod in state.of(kinds.POD)):
                yield Finding(name_of(claim), "terminates with its protection, and no pod uses it")
        elif claim.status.phase == "Bound":
            volume = volumes.get(claim.spec.volumeName)
            if volume is None or volume.spec.claimRef.uid != claim.metadata.uid:
                text = f"is bound to the volume {claim.spec.volumeName}, which is not bound to it"
                yield Finding(name_of(claim), text)
    for volume in volumes.values():
        owner = state.by_uid.get(volume.spec.claimRef.uid)
        named = owner.spec.volumeName if isinstance(owner, core.PersistentVolumeClaim) else ""
        if volume.status.phase == "Bound" and named != volume.metadata.name:
            text = f"is bound to the claim {volume.spec.claimRef.name}, which is not bound to it"
            yield Finding(name_of(volume), text)
        else:
            yield from _phases(volume, owner)


def _phases(volume: core.PersistentVolume, owner: Message | None) -> Iterator[Finding]:
    """Find phases of a volume, and of its claim `owner`, that do not follow from their references.

    A volume that terminates may have any. One whose claim names no volume, or another one, is being bound, or
    waits for its deletion; one whose reference has no uid is a user's reservation.
    Source: kube-controller-manager 1.36, volume/persistentvolume/pv_controller.go, syncVolume.
    """
    uid, name = volume.spec.claimRef.uid, volume.metadata.name
    if is_terminating(volume):
        return
    if not isinstance(owner, core.PersistentVolumeClaim):
        expected = {"Released", "Failed"} if uid else {"Available"}
    elif owner.spec.volumeName == name:
        expected = {"Bound"}
        if owner.status.phase != "Bound":
            yield Finding(name_of(owner), f"is {owner.status.phase}, and bound to the volume {name}")
    else:
        return
    if volume.status.phase not in expected:
        yield Finding(name_of(volume), f"is {volume.status.phase}, and should be {in_order(expected)}")


def _uses(pod: core.Pod, claim: core.PersistentVolumeClaim) -> bool:
    """Return whether a pod keeps a claim, also one that has ended (podUsesPVC)."""
    return pod.metadata.namespace == claim.metadata.namespace and claim.metadata.name in claims_of(pod)


def foreground_deletions(state: State) -> Iterator[Finding]:
    """Find owners that wait for dependents to be deleted, and have none."""
    if CONTROLLERS not in state.running:
        return
    owners = {
        reference.uid
        for row in state.objects.values()
        for each in row
        for reference in metadata_of(each).ownerReferences
    }
    for row in state.objects.values():
        for each in row:
            metadata = metadata_of(each)
            waits = metadata.HasField("deletionTimestamp") and _FOREGROUND in metadata.finalizers
            if waits and metadata.uid not in owners and metadata.uid not in state.other_owners:
                yield Finding(name_of(each), "waits for the deletion of dependents, and has none")


def empty_namespaces(state: State) -> Iterator[Finding]:
    """Find namespaces that terminate although no content is left that takes time or has a finalizer.

    The conditions say so, since not all kinds are observed.
    """
    if CONTROLLERS not in state.running:
        return
    for namespace in state.of(kinds.NAMESPACE):
        has_own = namespace.metadata.finalizers or list(namespace.spec.finalizers) != ["kubernetes"]
        has_content = condition_is(namespace.status.conditions, "NamespaceContentRemaining")
        if is_terminating(namespace) and not has_own and not has_content:
            yield Finding(name_of(namespace), "terminates, and no content of it remains")
        phase, is_deleted = namespace.status.phase, is_terminating(namespace)
        if is_deleted is not (phase == "Terminating"):
            deleted = "is deleted" if is_deleted else "is not deleted"
            yield Finding(name_of(namespace), f"has the phase {phase}, and {deleted}")


def leader_leases(state: State) -> Iterator[Finding]:
    """Find leases of leaders that ended, while a process of the component runs that could take them."""
    for lease in state.of(kinds.LEASE):
        component = _LEADERS.get(lease.metadata.name, "")
        spec = lease.spec
        if lease.metadata.namespace != "kube-system" or component not in state.running:
            continue
        if spec.holderIdentity and from_time(spec.renewTime) + spec.leaseDurationSeconds < state.now:
            yield Finding(name_of(lease), f"has ended, and {spec.holderIdentity} is still its holder")
