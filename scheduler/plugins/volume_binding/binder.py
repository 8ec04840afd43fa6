"""Decide whether a pod's claims can be bound on one node, and bind them.

`claims_of`, `find`, `assume` and `revert` decide and change the assumptions; `bind` returns the I/O as data.
Source: kube-scheduler 1.36, volume binder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import is_controlled_by, resource_version_of
from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import LabelSelector, SelectorError
from nominee.machinery.scheduling.volume_matching import (
    SELECTED_NODE,
    bound_copy,
    class_of,
    delays_binding,
    is_fully_bound,
    reaches,
    requested_bytes,
)
from nominee.scheduler.framework.api.io_steps import RETRIED, Failpoint, IoSteps, Sleep, Update
from nominee.scheduler.framework.interface import Handle
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.volume_binding.assumptions import Assumptions
from nominee.scheduler.plugins.volume_binding.candidates import (
    candidates,
    choose,
    provisions,
    topology_allows,
    topology_of,
    with_room,
)

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

WRITTEN = "scheduler.volumes.written"
"""Failpoint: the claims name their node; no volume has been made for them yet."""
POLL_SECONDS: Final = 1.0

Claim = core.PersistentVolumeClaim
Volume = core.PersistentVolume


class VolumeError(Exception):
    """The pod's claims cannot be used; the text is worded as upstream's."""


@dataclass(frozen=True, slots=True)
class PodVolumeClaims:
    """A pod's claims by the way in which they are bound."""

    bound: tuple[Claim, ...] = ()
    delayed: tuple[Claim, ...] = ()  # wait for the pod's node
    immediate: tuple[Claim, ...] = ()  # not bound although they do not wait for a pod


@dataclass(frozen=True, slots=True)
class NodeVolumes:
    """The decisions for one node: volumes to bind to claims, claims to be provisioned."""

    bindings: tuple[tuple[Volume, Claim], ...] = ()
    provisions: tuple[Claim, ...] = ()


class VolumeBinder:
    """Decides and performs the binding of claims, with the assumptions of this process."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.claims = Assumptions(handle, kinds.PERSISTENT_VOLUME_CLAIM)
        self.volumes = Assumptions(handle, kinds.PERSISTENT_VOLUME)

    # Decisions

    def problem_of(self, pod: PodInfo) -> str:
        """Return why the pod cannot use its claims at all, or ""."""
        for volume in pod.pod.spec.volumes:
            name, ephemeral = claim_name(pod, volume)
            if not name:
                continue
            claim = self._handle.lister(kinds.PERSISTENT_VOLUME_CLAIM).get(name, pod.namespace)
            if claim is None:
                if ephemeral:
                    waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
                    return f'{waiting} "{name}"'
                return f'persistentvolumeclaim "{name}" not found'
            if claim.status.phase == "Lost":
                volume_name = claim.spec.volumeName
                return (
                    f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_name}"'
                )
            if claim.metadata.HasField("deletionTimestamp"):
                return f'persistentvolumeclaim "{name}" is being deleted'
            if ephemeral and not is_controlled_by(claim, pod.pod):
                return f"PVC {pod.namespace}/{name} was not created for pod {pod.key} (pod is not owner)"
        return ""

    def claims_of(self, pod: PodInfo) -> PodVolumeClaims:
        """Return the pod's claims by how they are bound.

        Raises:
            VolumeError: a claim was deleted meanwhile.
        """
        bound, delayed, immediate = [], [], []
        for name in pod.claims:
            claim = self.claims.get(name, pod.namespace)
            if claim is None:
                raise VolumeError(f'error getting PVC "{pod.namespace}/{name}": not found')
            if is_fully_bound(claim):
                bound.append(claim)
            elif not claim.spec.volumeName and self._delays(claim):
                delayed.append(claim)
            else:
                immediate.append(claim)
        return PodVolumeClaims(tuple(bound), tuple(delayed), tuple(immediate))

    def _delays(self, claim: Claim) -> bool:
        return delays_binding(self._handle.lister(kinds.STORAGE_CLASS).get(class_of(claim)))

    def all_bound(self, pod: PodInfo) -> bool:
        for name in pod.claims:
            claim = self.claims.get(name, pod.namespace)
            if claim is None or not is_fully_bound(claim):
                return False
        return True

    def candidates_for(self, claim: Claim) -> list[Volume]:
        """Return the volumes that suit the claim on some node; see `candidates.py`.

        Raises:
            VolumeError: the claim's selector is invalid.
        """
        try:
            return candidates(claim, self.volumes.list())
        except SelectorError as error:
            key = f"{claim.metadata.namespace}/{claim.metadata.name}"
            raise VolumeError(f"error creating internal label selector for claim: {key}: {error}") from None

    def find(self, claims: PodVolumeClaims, node: NodeInfo) -> tuple[NodeVolumes, list[str]]:
        """Return the volumes to bind and provision on the node, or the reasons why it is rejected.

        Raises:
            VolumeError: a claim cannot be checked.
        """
        conflict, missing = self._check_bound(claims.bound, node)
        volumes, bindable, roomy = self._find_delayed(claims.delayed, node)
        reasons = []
        if conflict:
            reasons.append(NODE_CONFLICT)
        if not bindable:
            reasons.append(BIND_CONFLICT)
        if not roomy:
            reasons.append(NOT_ENOUGH_SPACE)
        if missing:
            reasons.append(VOLUME_MISSING)
        return volumes, reasons

    def _check_bound(self, bound: Sequence[Claim], node: NodeInfo) -> tuple[bool, bool]:
        """Return whether the node cannot reach a bound volume, and whether one is missing; the first only."""
        for claim in bound:
            volume = self.volumes.get(claim.spec.volumeName)
            if volume is None:
                return False, True
            if not reaches(volume, node.labels):
                return True, False
        return False, False

    def _find_delayed(self, delayed: Sequence[Claim], node: NodeInfo) -> tuple[NodeVolumes, bool, bool]:
        """Return the bindings, whether all claims can be had here, and whether there is space for them."""
        to_match, to_provision = [], []
        for claim in delayed:
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected is None:
                to_match.append(claim)
            elif selected != node.name:
                return NodeVolumes(), False, True
            else:
                to_provision.append(claim)
        bindings: list[tuple[Volume, Claim]] = []
        taken: set[str] = set()
        for claim in sorted(to_match, key=requested_bytes):
            volume = choose(self.candidates_for(claim), node.labels, taken)
            if volume is None:
                to_provision.append(claim)
            else:
                taken.add(volume.metadata.name)
                bindings.append((volume, claim))
        for claim in to_provision:
            if not self.can_provision(claim, node):
                return NodeVolumes(), False, True
            if not self.has_space(claim, node):
                return NodeVolumes(), True, False
        return NodeVolumes(tuple(bindings), tuple(to_provision)), True, True

    def can_provision(self, claim: Claim, node: NodeInfo) -> bool:
        """Return whether a volume can be provisioned for the claim so that the node reaches it."""
        name = class_of(claim)
        storage_class = self._handle.lister(kinds.STORAGE_CLASS).get(name)
        if storage_class is None:
            raise VolumeError(f'failed to find storage class "{name}"')
        return provisions(storage_class) and topology_allows(storage_class, node.labels)

    def has_space(self, claim: Claim, node: NodeInfo) -> bool:
        """Return whether the driver's storage that the node reaches has capacity for the claim's volume."""
        reachable = self.spaces_for(claim)
        return reachable is None or any(selector.matches(node.labels) for selector in reachable)

    def spaces_for(self, claim: Claim) -> list[LabelSelector] | None:
        """Return selectors of the nodes that reach storage with capacity for the volume; one must match.

        None: the driver does not publish capacity (CSIDriver, `storageCapacity`), or nothing is requested, so
        every node has room.
        """
        storage_class = self._handle.lister(kinds.STORAGE_CLASS).get(class_of(claim))
        if storage_class is None or "storage" not in claim.spec.resources.requests:
            return None
        driver = self._handle.lister(kinds.CSI_DRIVER).get(storage_class.provisioner)
        if driver is None or not driver.spec.storageCapacity:
            return None
        name = storage_class.metadata.name
        capacities = self._handle.lister(kinds.CSI_STORAGE_CAPACITY).list()
        of_class = [capacity for capacity in capacities if capacity.storageClassName == name]
        found = (topology_of(capacity) for capacity in with_room(of_class, requested_bytes(claim)))
        return [selector for selector in found if selector is not None]

    # Assumptions

    def assume(self, volumes: NodeVolumes, node_name: str) -> NodeVolumes:
        """Assume the bindings, so that other pods see these volumes as taken; return the changed objects."""
        bindings = []
        for volume, claim in volumes.bindings:
            taken = bound_copy(volume, claim)
            if taken is not volume:
                self.volumes.assume(taken)
            bindings.append((taken, claim))
        to_provision = []
        for claim in volumes.provisions:
            selected = Claim()
            selected.CopyFrom(claim)
            selected.metadata.annotations[SELECTED_NODE] = node_name
            self.claims.assume(selected)
            to_provision.append(selected)
        return NodeVolumes(tuple(bindings), tuple(to_provision))

    def revert(self, volumes: NodeVolumes) -> None:
        """Stop believing it."""
        for volume, _ in volumes.bindings:
            self.volumes.restore(volume.metadata.name)
        for claim in volumes.provisions:
            self.claims.restore(claim.metadata.name, claim.metadata.namespace)

    # Writes

    def bind(
        self, pod: PodInfo, volumes: NodeVolumes, node_name: str, *, timeout_seconds: float
    ) -> IoSteps[None]:
        """Write the decisions and wait until all claims are bound.

        It takes a second at least: the first look comes after a pause, as all (kube-scheduler 1.36,
        volumeBinder.BindPodVolumes). Where a look and the end of the time coincide, the end counts.
        What was written stays: the selected node goes on pinning the pod until the provisioner gives up.

        Raises:
            StatusError: a write was refused.
            VolumeError: the volumes cannot be bound, or it takes too long.
        """
        written = yield from self._write(volumes)
        yield Failpoint(WRITTEN, {"pod": f"{pod.namespace}/{pod.name}", "node": node_name})
        clock = self._handle.clock
        deadline = clock.monotonic() + timeout_seconds
        while True:
            left = deadline - clock.monotonic()
            yield Sleep(min(POLL_SECONDS, max(left, 0.0)))
            if left <= POLL_SECONDS:
                raise VolumeError("binding volumes: context deadline exceeded")
            if self._is_bound(pod, written, node_name):
                return

    def _write(self, volumes: NodeVolumes) -> IoSteps[NodeVolumes]:
        """Write volumes and claims, again while the API server cannot be reached.

        A restart of the API server must not cost the pod its node: the reservation lives in this process.
        A write whose answer was lost is a conflict the second time, and the next attempt finds it done.
        """
        bindings: list[tuple[Volume, Claim]] = []
        to_provision: list[Claim] = []
        try:
            for volume, claim in volumes.bindings:
                bindings.append(((yield Update(volume, attempts=RETRIED)), claim))
            for claim in volumes.provisions:
                to_provision.append((yield Update(claim, attempts=RETRIED)))  # noqa: PERF401  # finally counts them
        finally:
            self.revert(
                NodeVolumes(volumes.bindings[len(bindings) :], volumes.provisions[len(to_provision) :])
            )
        return NodeVolumes(tuple(bindings), tuple(to_provision))

    def _is_bound(self, pod: PodInfo, written: NodeVolumes, node_name: str) -> bool:
        """Return whether all is bound. The first that is not bound yet ends the look.

        What is gone is named as upstream's listers and caches name it.
        Source: kube-scheduler 1.36, volumeBinder.checkBindings.

        Raises:
            VolumeError: it never will be.
        """
        node = self._handle.lister(kinds.NODE).get(node_name)
        if node is None:
            raise VolumeError(
                f'binding volumes: failed to get node "{node_name}": node "{node_name}" not found'
            )
        if self._handle.lister(kinds.POD).get(pod.name, pod.namespace) is None:
            raise VolumeError(f'binding volumes: pod does not exist any more: pod "{pod.name}" not found')
        return all(self._is_volume_bound(volume, claim, node) for volume, claim in written.bindings) and all(
            self._is_claim_provisioned(claim, node) for claim in written.provisions
        )

    def _is_volume_bound(self, volume: Volume, claim: Claim, node: core.Node) -> bool:
        name = volume.metadata.name
        seen = self.volumes.real(name)
        seen_claim = self.claims.real(claim.metadata.name, claim.metadata.namespace)
        if seen is None or seen_claim is None:
            missing = f'v1.PersistentVolume "{name}"' if seen is None else _named(claim)
            raise VolumeError(f"binding volumes: failed to check binding: could not find {missing}")
        if _is_older(seen, volume):
            return False
        if not reaches(seen, node.metadata.labels):
            raise VolumeError(_affinity_error(seen, node))
        if not seen.spec.HasField("claimRef") or not seen.spec.claimRef.uid:
            raise VolumeError(f'binding volumes: ClaimRef got reset for pv "{name}"')
        return is_fully_bound(seen_claim)

    def _is_claim_provisioned(self, claim: Claim, node: core.Node) -> bool:
        name = claim.metadata.name
        seen = self.claims.real(name, claim.metadata.namespace)
        if seen is None:
            missing = f"could not find {_named(claim)}"
            raise VolumeError(f"binding volumes: failed to check provisioning pvc: {missing}")
        if _is_older(seen, claim):
            return False
        annotations = seen.metadata.annotations
        if not annotations:
            raise VolumeError(f'binding volumes: selectedNode annotation reset for PVC "{name}"')
        if annotations.get(SELECTED_NODE, "") != node.metadata.name:
            raise VolumeError(f'binding volumes: provisioning failed for PVC "{name}"')
        if seen.spec.volumeName:
            volume = self.volumes.real(seen.spec.volumeName)
            if volume is None:
                return False  # the watch of volumes is behind
            if not reaches(volume, node.metadata.labels):
                raise VolumeError(_affinity_error(volume, node))
        return is_fully_bound(seen)


def claim_name(pod: PodInfo, volume: core.Volume) -> tuple[str, bool]:
    """Return the claim that a pod's volume uses ("": none), and whether it is the pod's own (ephemeral)."""
    if not volume.HasField("volumeSource"):
        return "", False
    source = volume.volumeSource
    if source.HasField("persistentVolumeClaim"):
        return source.persistentVolumeClaim.claimName, False
    if source.HasField("ephemeral"):
        return f"{pod.name}-{volume.name}", True
    return "", False


def _is_older(seen: Volume | Claim, written: Volume | Claim) -> bool:
    """Return whether the watch has not shown our write yet."""
    return resource_version_of(seen) < resource_version_of(written)


def _named(claim: Claim) -> str:
    """Return the claim's name in errors of upstream's cache of claims (AssumeCache, NotFoundError)."""
    return f'v1.PersistentVolumeClaim "{claim.metadata.namespace}/{claim.metadata.name}"'


def _affinity_error(volume: Volume, node: core.Node) -> str:
    names = f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.metadata.name}"'
    return f"binding volumes: {names}: no matching NodeSelectorTerms"
