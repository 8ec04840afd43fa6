"""The Node object that a kubelet registers, and the status it keeps. Source: kubelet 1.36, nodestatus."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from nominee.kubelet import addresses
from nominee.kubelet.options import NodeShape
from nominee.machinery.api import objects
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version
from nominee.machinery.resources.pod_resources import is_extended
from nominee.machinery.runtime import clock

PORT = 10250
RUNTIME_VERSION = "0.2.0"
"""The version of the emulated container runtime: that of this package."""
HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Name and place of a node: `number` gives its addresses and its zone."""

    name: str
    number: int
    provider_id: str = ""
    template: core.Node | None = None
    """The template of its node group in the cloud; None for a node of the command line."""
    address: str = ""
    """Its own address; "" for that of its number."""
    adopted: bool = False
    """Another cluster made the node: only its conditions are this kubelet's."""

    @property
    def host_ip(self) -> str:
        return self.address or addresses.host_ip(self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """Facts of a node's status beside its identity."""

    version: Version
    declared_features: tuple[str, ...] = ()
    shape: NodeShape = field(default_factory=NodeShape)


def new_node(identity: Identity, facts: NodeFacts, now: float) -> core.Node:
    """Return the Node object to create."""
    node = core.Node()
    template = identity.template
    if template is not None:
        node.spec.taints.extend(template.spec.taints)
        for key, value in template.metadata.annotations.items():
            node.metadata.annotations[key] = value
    node.metadata.name = identity.name
    node.metadata.annotations["volumes.kubernetes.io/controller-managed-attach-detach"] = "true"
    for key, value in labels(identity, facts.shape).items():
        node.metadata.labels[key] = value
    if identity.provider_id:
        node.spec.providerID = identity.provider_id
    write_status(node.status, identity, facts, now)
    return node


def labels(identity: Identity, shape: NodeShape) -> dict[str, str]:
    """Return the labels that the kubelet sets and keeps."""
    own = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }
    if shape.zones:
        own["topology.kubernetes.io/zone"] = shape.zones[identity.number % len(shape.zones)]
    if shape.region:
        own["topology.kubernetes.io/region"] = shape.region
    own |= shape.labels
    if identity.template is not None:
        own |= dict(identity.template.metadata.labels)
    own["kubernetes.io/hostname"] = identity.name
    return own


def capacity(identity: Identity, shape: NodeShape) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return capacity and allocatable."""
    template = identity.template
    if template is None:
        return shape.capacity, shape.capacity
    whole = {name: quantity.string for name, quantity in template.status.capacity.items()}
    free = {name: quantity.string for name, quantity in template.status.allocatable.items()}
    return whole or free, free or whole


def write_status(status: core.NodeStatus, identity: Identity, facts: NodeFacts, now: float) -> None:
    """Set all that the kubelet owns; conditions and fields of other clients stay."""
    _write_conditions(status, now)
    if identity.adopted:
        return
    _write_capacity(status, *capacity(identity, facts.shape))
    del status.addresses[:]
    status.addresses.add(type="InternalIP", address=identity.host_ip)
    status.addresses.add(type="Hostname", address=identity.name)
    status.daemonEndpoints.kubeletEndpoint.Port = PORT
    _write_info(status.nodeInfo, identity.name)
    write_version(status, facts)


def write_version(status: core.NodeStatus, facts: NodeFacts) -> None:
    """Set the version of the kubelet, and the features that it declares."""
    status.nodeInfo.kubeletVersion = f"v{facts.version}.0"
    del status.declaredFeatures[:]
    status.declaredFeatures.extend(facts.declared_features)


def _write_conditions(status: core.NodeStatus, now: float) -> None:
    for type_, value, reason, message in HEALTHY:
        row = core.NodeCondition(type=type_, status=value, reason=reason, message=message)
        row.lastHeartbeatTime.CopyFrom(clock.to_time(now))
        objects.set_condition(status.conditions, row, clock.to_time(now))


def _write_capacity(status: core.NodeStatus, whole: Mapping[str, str], free: Mapping[str, str]) -> None:
    """Set the node's resources, and make allocatable those that other clients have added to its capacity.

    Those are extended resources. Source: kubelet 1.36, nodestatus.MachineInfo.
    """
    for name, text in whole.items():
        status.capacity[name].string = text
    for name in [name for name in status.allocatable if is_extended(name) and name not in status.capacity]:
        del status.allocatable[name]
    for name, quantity in status.capacity.items():
        status.allocatable[name].string = free.get(name, quantity.string)


def _write_info(info: core.NodeSystemInfo, name: str) -> None:
    machine = hashlib.sha256(f"machine/{name}".encode()).hexdigest()
    info.machineID = machine[:32]
    info.systemUUID = info.bootID = (
        f"{machine[:8]}-{machine[8:12]}-{machine[12:16]}-{machine[16:20]}-{machine[20:32]}"
    )
    info.kernelVersion = "6.1.0"
    info.osImage = "Nominee"
    info.containerRuntimeVersion = f"nominee://{RUNTIME_VERSION}"
    info.operatingSystem = "linux"
    info.architecture = "amd64"


def same_but_heartbeat(one: core.NodeStatus, other: core.NodeStatus) -> bool:
    """Return whether two statuses differ at most in heartbeat times."""
    copies = []
    for status in (one, other):
        copy = copy_of(status)
        for condition in copy.conditions:
            condition.ClearField("lastHeartbeatTime")
        copies.append(copy)
    return copies[0] == copies[1]
