"""The decisions of the provisioner `delayed.nominee.dev`. Pure.

It behaves as an external provisioner built on sig-storage-lib-external-provisioner: it acts on claims that
name it, for WaitForFirstConsumer only once a node is selected; when that node is gone it gives the claim up
by dropping the selected-node annotation, since the pod could go nowhere else. The volume's name comes from
the claim's uid, so a second attempt, also after a crash, never makes a second volume.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nominee.controllers.volumes import annotations as names
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, storage
from nominee.machinery.scheduling.volume_matching import (
    SELECTED_NODE,
    claim_reference,
    class_of,
    delays_binding,
)
from nominee.machinery.wire.values.scalars import parse_seconds

_FAILURES_DIGITS = 9
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


class ParameterError(ValueError):
    """An invalid parameter of a storage class; the text names it."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The class's parameters: how long provisioning takes, and how many attempts fail first.

    `topology` is what a volume is restricted to: the selected node ("node", the default), its zone ("zone"),
    or nothing ("none").
    """

    delay_seconds: float = 0.0
    failures: int = 0
    topology: str = "node"

    @classmethod
    def of(cls, storage_class: storage.StorageClass) -> Parameters:
        """Return the parameters of a class. Raises: ParameterError, which names the parameter."""
        given = dict(storage_class.parameters)
        delay = _seconds("parameters.delay", given.pop("delay", "0"))
        failures = given.pop("failures", "0")
        if not (failures.isascii() and failures.isdigit() and len(failures) <= _FAILURES_DIGITS):
            raise ParameterError(f"parameters.failures: {failures!r} is not a count; use a number like 2")
        topology = given.pop("topology", "node")
        if topology not in ("node", "zone", "none"):
            raise ParameterError(f"parameters.topology: {topology!r} is not one of node, zone, none")
        if given:
            raise ParameterError(f"parameters.{min(given)}: unknown; there are delay, failures and topology")
        return cls(delay, int(failures), topology)

    def for_claim(self, claim: core.PersistentVolumeClaim) -> Parameters:
        """Return them with the delay of the claim's annotation. Raises: ParameterError, which names it."""
        text = claim.metadata.annotations.get(names.PROVISIONING_DELAY)
        if text is None:
            return self
        return replace(self, delay_seconds=_seconds(f"annotation {names.PROVISIONING_DELAY}", text))


def _seconds(what: str, text: str) -> float:
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise ParameterError(f"{what}: {error}; use a duration like 500ms or 2s") from None


@dataclass(frozen=True, slots=True)
class Nothing:
    """Do nothing: the claim is another provisioner's, not ready, or done."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The selected node is gone: drop the annotation so that the pod is scheduled again."""

    claim: core.PersistentVolumeClaim
    note: str


@dataclass(frozen=True, slots=True)
class Provision:
    """Create the volume."""

    parameters: Parameters
    volume: core.PersistentVolume


@dataclass(frozen=True, slots=True)
class Refuse:
    """The class's parameters or the claim's annotation are invalid."""

    note: str


Decision = Nothing | GiveUp | Provision | Refuse


def volume_name(claim: core.PersistentVolumeClaim) -> str:
    return f"pvc-{claim.metadata.uid}"


def decide(
    claim: core.PersistentVolumeClaim,
    storage_class: storage.StorageClass | None,
    node: core.Node | None,
    *,
    volume_exists: bool,
) -> Decision:
    """Return the decision for a claim; `node` is the selected one, None where there is no such node."""
    if storage_class is None or storage_class.provisioner != names.DELAYED_PROVISIONER:
        return Nothing()
    if claim.spec.volumeName or volume_exists or claim.metadata.HasField("deletionTimestamp"):
        return Nothing()
    if claim.metadata.annotations.get(names.STORAGE_PROVISIONER) != names.DELAYED_PROVISIONER:
        return Nothing()
    selected = claim.metadata.annotations.get(SELECTED_NODE, "")
    if delays_binding(storage_class):
        if not selected:
            return Nothing()
        if node is None:
            return GiveUp(
                without_selected_node(claim), f'failed to get target node: node "{selected}" not found'
            )
    try:
        parameters = Parameters.of(storage_class).for_claim(claim)
    except ParameterError as error:
        return Refuse(str(error))
    return Provision(parameters, volume_for(claim, storage_class, node, parameters))


def without_selected_node(claim: core.PersistentVolumeClaim) -> core.PersistentVolumeClaim:
    """Return the claim without its node, as it is given back to the scheduler."""
    new = copy_of(claim)
    new.metadata.annotations.pop(SELECTED_NODE, None)
    return new


def _topology(node: core.Node, topology: str) -> tuple[str, str] | None:
    labels = node.metadata.labels
    if topology == "zone" and ZONE in labels:
        return ZONE, labels[ZONE]
    if topology == "node":
        return HOSTNAME, labels.get(HOSTNAME, node.metadata.name)
    return None


def volume_for(
    claim: core.PersistentVolumeClaim,
    storage_class: storage.StorageClass,
    node: core.Node | None,
    parameters: Parameters,
) -> core.PersistentVolume:
    """Return the volume of a claim, with a reference to it."""
    volume = core.PersistentVolume()
    volume.metadata.name = volume_name(claim)
    volume.metadata.annotations[names.PROVISIONED_BY] = names.DELAYED_PROVISIONER
    spec = volume.spec
    spec.capacity["storage"].CopyFrom(claim.spec.resources.requests["storage"])
    spec.accessModes.extend(claim.spec.accessModes)
    spec.storageClassName = class_of(claim)
    spec.persistentVolumeReclaimPolicy = storage_class.reclaimPolicy or "Delete"
    spec.volumeMode = claim.spec.volumeMode or "Filesystem"
    if claim.spec.volumeAttributesClassName:
        spec.volumeAttributesClassName = claim.spec.volumeAttributesClassName
    source = spec.persistentVolumeSource.csi
    source.driver, source.volumeHandle = names.DELAYED_PROVISIONER, volume.metadata.name
    spec.claimRef.CopyFrom(claim_reference(claim))
    tied = _topology(node, parameters.topology) if node is not None else None
    if tied is not None:
        term = spec.nodeAffinity.required.nodeSelectorTerms.add()
        term.matchExpressions.add(key=tied[0], operator="In", values=[tied[1]])
    return volume
