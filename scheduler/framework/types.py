"""Hold pods and nodes as the scheduler sees them: the object, and values derived from it once.

Source: kube-scheduler 1.36, framework types. Amounts are integers: cpu in milli-units, the rest in units.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.machinery.api.volume_claims import claims_of
from nominee.machinery.resources.quantity import milli, value
from nominee.machinery.runtime.clock import from_time
from nominee.scheduler.framework import resource_columns
from nominee.scheduler.framework.affinity_terms import PodTerms, pod_terms
from nominee.scheduler.framework.pod_requests import (
    DEFAULT_MEMORY_BYTES,
    DEFAULT_MILLI_CPU,
    ResourceOptions,
    is_plain,
    missing_request_defaults,
    pod_requests,
)
from nominee.scheduler.framework.resource_columns import CPU

Amounts = tuple[tuple[int, int], ...]  # (column, amount) of the resources that are not zero
HostPort = tuple[str, str, int]  # ip ("0.0.0.0" for any), protocol, port
Taint = tuple[str, str, str]  # key, value, effect
Disk = tuple[str, str, tuple[str, ...], bool]  # type, what names it, Ceph monitors, whether read-only

ANY_IP: Final = "0.0.0.0"


DEFAULT_OPTIONS: Final = ResourceOptions()


class PodInfo:
    """A pod and the values derived from it, computed at first use and then kept.

    Immutable like the message it wraps; a changed pod gets a new PodInfo. Everything after `options` is lazy.
    """

    __slots__ = (
        "affinity",
        "claims",
        "direct_claims",
        "disks",
        "fit_requests",
        "held_requests",
        "host_ports",
        "images",
        "is_plain",
        "key",
        "labels",
        "name",
        "namespace",
        "nonzero",
        "options",
        "pod",
        "pod_terms",
        "priority",
        "requests",
        "resource_claims",
        "started",
        "uid",
        "volume_count",
    )

    pod: core.Pod
    uid: str
    namespace: str
    name: str
    priority: int
    options: ResourceOptions
    key: ObjectKey
    is_plain: bool  # one container and nothing else that counts
    requests: Amounts  # with the status of a resize in progress: what the pod takes on its node
    fit_requests: Amounts  # by the spec alone: what a pending pod requests
    held_requests: Amounts  # allocated and actual, without what a resize in progress desires
    nonzero: tuple[int, int]  # cpu, memory with defaults for containers that request none
    host_ports: tuple[HostPort, ...]
    labels: dict[str, str]
    claims: tuple[str, ...]  # names of PersistentVolumeClaims in the pod's namespace
    direct_claims: tuple[str, ...]  # of these the ones that volumes name: not those of ephemeral volumes
    resource_claims: frozenset[str]  # names of ResourceClaims that the pod names, or that were made for it
    started: float | None  # status.startTime, seconds since the epoch
    volume_count: int  # of all types
    disks: tuple[Disk, ...]  # inline disks that pods on one node cannot always share
    images: tuple[str, ...]  # with tags, a name per container (init containers too) and image volume
    affinity: core.Affinity | None
    pod_terms: PodTerms | None  # None: neither pod affinity nor pod anti-affinity

    def __init__(self, pod: core.Pod, options: ResourceOptions = DEFAULT_OPTIONS) -> None:
        metadata = pod.metadata
        self.pod = pod
        self.uid = metadata.uid
        self.namespace = metadata.namespace
        self.name = metadata.name
        self.priority = pod.spec.priority
        self.options = options

    def __getattr__(self, name: str) -> Any:
        """Fill a slot that is still empty."""
        derive = _DERIVED.get(name)
        if derive is None:
            raise AttributeError(f"PodInfo has no attribute {name!r}")
        result = derive(self)
        setattr(self, name, result)
        return result

    @property
    def is_terminating(self) -> bool:
        return self.pod.metadata.HasField("deletionTimestamp")

    def __repr__(self) -> str:
        return f"<PodInfo {self.namespace}/{self.name}>"


def _amounts(requests: dict[str, int]) -> Amounts:
    pairs = []
    for name, amount in requests.items():
        column = resource_columns.column_of(name)
        if column is not None and amount:
            pairs.append((column, amount))
    pairs.sort()
    return tuple(pairs)


def _requests(info: PodInfo) -> Amounts:
    if info.is_plain:
        found = pod_requests(info.pod, info.options, use_status=False)
        info.nonzero = (
            found.get("cpu", DEFAULT_MILLI_CPU),
            found.get("memory", DEFAULT_MEMORY_BYTES),
        )
        return _amounts(found)
    return _amounts(pod_requests(info.pod, info.options, use_status=info.options.in_place_resize))


def _fit_requests(info: PodInfo) -> Amounts:
    status = info.pod.status
    if info.is_plain or not (status.containerStatuses or status.initContainerStatuses):
        return info.requests
    return _amounts(pod_requests(info.pod, info.options, use_status=False))


def _held_requests(info: PodInfo) -> Amounts:
    if info.is_plain or not info.options.in_place_resize:
        return info.requests
    return _amounts(pod_requests(info.pod, info.options, use_status=True, use_desired=False))


def _nonzero(info: PodInfo) -> tuple[int, int]:
    if info.is_plain:
        _requests(info)
        return info.nonzero
    use_status = info.options.in_place_resize
    missing = missing_request_defaults(info.pod, info.options, use_status=use_status)
    found = pod_requests(info.pod, info.options, use_status=use_status, defaults=missing)
    return found.get("cpu", 0), found.get("memory", 0)


def _host_ports(info: PodInfo) -> tuple[HostPort, ...]:
    """Return the host ports of containers and sidecars; other init containers hold theirs for a while."""
    spec = info.pod.spec
    found: list[HostPort] = []
    sidecars = [c for c in spec.initContainers if c.restartPolicy == "Always"]
    for container in itertools.chain(spec.containers, sidecars):
        found.extend(
            (port.hostIP or ANY_IP, port.protocol or "TCP", port.hostPort)
            for port in container.ports
            if port.hostPort > 0
        )
    return tuple(found)


def _claims(info: PodInfo) -> tuple[str, ...]:
    """Return the claims by name, those of ephemeral volumes by the name that they get."""
    return tuple(claims_of(info.pod))


def _resource_claims(info: PodInfo) -> frozenset[str]:
    spec, status = info.pod.spec, info.pod.status
    names = {reference.resourceClaimName for reference in spec.resourceClaims}
    names |= {made.resourceClaimName for made in status.resourceClaimStatuses}
    return frozenset(names - {""})


def _direct_claims(info: PodInfo) -> tuple[str, ...]:
    return tuple(
        volume.volumeSource.persistentVolumeClaim.claimName
        for volume in info.pod.spec.volumes
        if volume.HasField("volumeSource") and volume.volumeSource.HasField("persistentVolumeClaim")
    )


def _disks(info: PodInfo) -> tuple[Disk, ...]:
    """Return the GCE, AWS, iSCSI and Ceph disks that the pod names itself; an AWS disk is never shared."""
    found: list[Disk] = []
    for volume in info.pod.spec.volumes:
        if not volume.HasField("volumeSource"):
            continue
        source = volume.volumeSource
        if source.HasField("gcePersistentDisk"):
            gce = source.gcePersistentDisk
            found.append(("gce", gce.pdName, (), gce.readOnly))
        if source.HasField("awsElasticBlockStore"):
            found.append(("aws", source.awsElasticBlockStore.volumeID, (), False))
        if source.HasField("iscsi"):
            found.append(("iscsi", source.iscsi.iqn, (), source.iscsi.readOnly))
        if source.HasField("rbd"):
            rbd = source.rbd
            found.append(("rbd", f"{rbd.pool}/{rbd.image}", tuple(rbd.monitors), rbd.readOnly))
    return tuple(found)


def _images(info: PodInfo) -> tuple[str, ...]:
    spec = info.pod.spec
    names = [normalized_image_name(c.image) for c in itertools.chain(spec.initContainers, spec.containers)]
    names.extend(
        normalized_image_name(volume.volumeSource.image.reference)
        for volume in spec.volumes
        if volume.HasField("volumeSource") and volume.volumeSource.HasField("image")
    )
    return tuple(names)


def normalized_image_name(name: str) -> str:
    """Return the name with `:latest` where it has neither tag nor digest, as nodes report images."""
    if name.rfind(":") <= name.rfind("/"):
        name += ":latest"
    return name


def _started(info: PodInfo) -> float | None:
    status = info.pod.status
    return from_time(status.startTime) if status.HasField("startTime") else None


_DERIVED: dict[str, Callable[[PodInfo], Any]] = {
    "is_plain": lambda info: is_plain(info.pod),
    "key": lambda info: ObjectKey(info.namespace, info.name),
    "requests": _requests,
    "fit_requests": _fit_requests,
    "held_requests": _held_requests,
    "nonzero": _nonzero,
    "host_ports": _host_ports,
    "labels": lambda info: dict(info.pod.metadata.labels),
    "claims": _claims,
    "direct_claims": _direct_claims,
    "resource_claims": _resource_claims,
    "started": _started,
    "volume_count": lambda info: len(info.pod.spec.volumes),
    "disks": _disks,
    "images": _images,
    "affinity": lambda info: info.pod.spec.affinity if info.pod.spec.HasField("affinity") else None,
    "pod_terms": lambda info: pod_terms(info.pod),
}


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """A pod in the scheduling queue and its history there. Times are seconds since the epoch.

    Source: kube-scheduler 1.36, framework types, QueuedPodInfo.
    """

    pod_info: PodInfo
    timestamp: float  # when it was created in the queue, or its last failure
    attempts: int = 0  # how often it was popped
    last_attempt_start: float | None = None  # last pop; later events are those of the pod in flight
    backoff_expiration: float | None = None
    unschedulable_count: int = 0  # failures that named a plugin; backoff grows with it
    consecutive_errors_count: int = 0  # failures since the last rejection by a plugin; error backoff
    initial_attempt_timestamp: float | None = None  # first pop, for the SLI metric
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    gating_plugin: str = ""  # the PreEnqueue plugin that holds it back
    gating_plugin_events: tuple[Any, ...] = ()  # ClusterEvents that may make that plugin let it go
    scheduling_cycle: int = 0
    was_flushed_from_unschedulable: bool = False

    @property
    def gated(self) -> bool:
        return self.gating_plugin != ""

    @property
    def pod(self) -> core.Pod:
        return self.pod_info.pod

    @property
    def rejectors(self) -> set[str]:
        """Return all plugins that rejected the pod in its last attempt."""
        return self.unschedulable_plugins | self.pending_plugins


class ImageState:
    """One image over the whole cluster: its size in bytes and the nodes that have it."""

    __slots__ = ("nodes", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.nodes: set[str] = set()


_EMPTY_IMAGES: dict[str, ImageState] = {}


class NodeInfo:
    """A node and the sums over its pods. `node` is None while only pods on it are known (imaginary)."""

    __slots__ = (
        "allocatable",
        "allowed_pods",
        "generation",
        "images",
        "labels",
        "name",
        "node",
        "nonzero_cpu",
        "nonzero_memory",
        "pods",
        "requested",
        "taints",
        "unschedulable",
        "used_ports",
    )

    node: core.Node | None
    pods: dict[str, PodInfo]  # by uid, in order of arrival
    requested: list[int]  # by resource column; may be shorter than the numbering
    allocatable: list[int]  # as above
    used_ports: frozenset[HostPort]
    images: dict[str, ImageState]  # by every name of the image

    def __init__(self, name: str, node: core.Node | None = None) -> None:
        self.name = name
        self.pods = {}
        self.requested = [0, 0, 0]
        self.nonzero_cpu = 0
        self.nonzero_memory = 0
        self.used_ports = frozenset()
        self.generation = 0
        self.images = _EMPTY_IMAGES
        self.set_node(node)

    def set_node(self, node: core.Node | None) -> None:
        """Take over the node object; None: the node is gone, its pods may stay."""
        self.node = node
        self.allocatable = [0, 0, 0]
        self.allowed_pods = 0
        self.labels: dict[str, str] = {}
        self.taints: tuple[Taint, ...] = ()
        self.unschedulable = False
        if node is None:
            return
        for name, quantity in node.status.allocatable.items():
            if name == "pods":
                self.allowed_pods = value(quantity)
            elif name == "cpu":
                self.allocatable[CPU] = milli(quantity)
            else:
                column = resource_columns.column_of(name)
                if column is not None:
                    _extend(self.allocatable, column)
                    self.allocatable[column] = value(quantity)
        self.labels = dict(node.metadata.labels)
        self.taints = tuple((t.key, t.value, t.effect) for t in node.spec.taints)
        self.unschedulable = node.spec.unschedulable

    def add_pod(self, pod: PodInfo) -> None:
        """Count the pod in. A pod that is there already is replaced."""
        if pod.uid in self.pods:
            self.remove_pod(pod.uid)
        self.pods[pod.uid] = pod
        self._account(pod, 1)
        if pod.host_ports:
            self.used_ports |= frozenset(pod.host_ports)

    def remove_pod(self, uid: str) -> PodInfo | None:
        """Remove the pod and its amounts; return None if it is not there.

        A host port goes with its first pod even if another pod (bound by another scheduler) holds it too, as
        upstream does.
        """
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self._account(pod, -1)
            if pod.host_ports:
                self.used_ports -= frozenset(pod.host_ports)
        return pod

    def _account(self, pod: PodInfo, sign: int) -> None:
        requested = self.requested
        for column, amount in pod.requests:
            if column >= len(requested):
                _extend(requested, column)
            requested[column] += sign * amount
        cpu, memory = pod.nonzero
        self.nonzero_cpu += sign * cpu
        self.nonzero_memory += sign * memory

    def clone(self) -> NodeInfo:
        """Return an independent copy; pods and the node object are shared, being immutable."""
        other = NodeInfo.__new__(NodeInfo)
        other.name = self.name
        other.node = self.node
        other.pods = self.pods.copy()
        other.requested = self.requested.copy()
        other.allocatable = self.allocatable  # replaced as a whole by set_node, never changed
        other.allowed_pods = self.allowed_pods
        other.labels = self.labels
        other.taints = self.taints
        other.unschedulable = self.unschedulable
        other.nonzero_cpu = self.nonzero_cpu
        other.nonzero_memory = self.nonzero_memory
        other.used_ports = self.used_ports
        other.images = self.images
        other.generation = self.generation
        return other

    def allocatable_of(self, column: int) -> int:
        return self.allocatable[column] if column < len(self.allocatable) else 0

    def requested_of(self, column: int) -> int:
        return self.requested[column] if column < len(self.requested) else 0

    def __repr__(self) -> str:
        return f"<NodeInfo {self.name}: {len(self.pods)} pods>"


def _extend(amounts: list[int], column: int) -> None:
    """Make room for the column. Called on a list that no clone shares."""
    amounts.extend([0] * (column + 1 - len(amounts)))


def ports_conflict(used: frozenset[HostPort], wanted: Iterable[HostPort]) -> bool:
    """Return whether a host port is taken; 0.0.0.0 means every address."""
    if not used:
        return False
    for ip, protocol, port in wanted:
        if ip == ANY_IP:
            if any(p == port and q == protocol for _, q, p in used):
                return True
        elif (ip, protocol, port) in used or (ANY_IP, protocol, port) in used:
            return True
    return False
