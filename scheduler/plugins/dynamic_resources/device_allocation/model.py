"""Hold the values of the allocator: devices with their derived values, requests, and allocations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from google.protobuf.message import Message

from nominee.machinery.api.pb import core, devices
from nominee.machinery.cel.device_selector import DeviceValue, compile_selector, device_value
from nominee.machinery.cel.device_selector import Features as SelectorFeatures
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.resources.quantity import Quantity
from nominee.machinery.scheduling.node_affinity import NodeSelector

EXPRESSIONS_MAX = 32  # whose results a device keeps
RESULTS_MAX = 32  # devices in one claim's allocation
BRIEF_CONFIG_SINCE = Version(1, 37)
ALL = "All"
EXACT_COUNT = "ExactCount"
Amounts = dict[str, Quantity]


class AllocationError(Exception):
    """The claim or its class cannot be allocated anywhere; ends the scheduling cycle."""


class NodeAllocationError(AllocationError):
    """This node's devices cannot be judged; other nodes' may be."""


class DeadlineError(AllocationError):
    """The search took longer than it may."""


class DeviceId(NamedTuple):
    """The cluster-wide name of a device; prints as upstream's."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


class PoolId(NamedTuple):
    driver: str
    pool: str

    def __str__(self) -> str:
        return "/".join(self)


@dataclass(frozen=True, slots=True)
class Features:
    """The gates that change allocations (DRAAdminAccess and so on)."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable: bool = True
    taints: bool = True
    binding_conditions: bool = True  # with DRAResourceClaimDeviceStatus
    consumable_capacity: bool = True
    list_attributes: bool = False
    brief_config: bool = False  # from 1.37: no list of requests where it would name them all

    @classmethod
    def of(cls, gates: Gates, version: Version) -> Features:
        """Return the features of a scheduler of this version with these gates."""
        ready = gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus")
        return cls(
            admin_access=gates.enabled("DRAAdminAccess"),
            prioritized_list=gates.enabled("DRAPrioritizedList"),
            partitionable=gates.enabled("DRAPartitionableDevices"),
            taints=gates.enabled("DRADeviceTaints"),
            binding_conditions=ready,
            consumable_capacity=gates.enabled("DRAConsumableCapacity"),
            list_attributes=gates.enabled("DRAListTypeAttributes"),
            brief_config=version >= BRIEF_CONFIG_SINCE,
        )

    @property
    def selectors(self) -> SelectorFeatures:
        return SelectorFeatures(self.list_attributes, self.consumable_capacity)


def amounts_of(quantities: Mapping[str, Message]) -> Amounts:
    """Return parsed quantities by name."""
    return {name: Quantity.parse(getattr(q, "string", "") or "0") for name, q in quantities.items()}


@dataclass(frozen=True, slots=True)
class NodeTarget:
    """The nodes of a slice or a device: one node, all, or those that a selector matches.

    `known` is false when none of them is set: no node.
    """

    node_name: str = ""
    all_nodes: bool = False
    selector: NodeSelector | None = None

    @classmethod
    def of(cls, message: devices.ResourceSliceSpec | devices.Device) -> NodeTarget:
        selector = NodeSelector.read(message.nodeSelector) if message.HasField("nodeSelector") else None
        return cls(message.nodeName, message.allNodes, selector)

    @property
    def known(self) -> bool:
        return bool(self.node_name) or self.all_nodes or self.selector is not None

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if self.node_name:
            return self.node_name == name
        if self.all_nodes or self.selector is None:
            return self.all_nodes
        return self.selector.matches(labels, name)


class DeviceView:
    """One device of a slice. The variables of CEL, and the amounts, are made when first asked for."""

    __slots__ = (
        "_amounts",
        "_counters",
        "_matched",
        "_value",
        "id",
        "is_shareable",
        "is_tainted",
        "message",
        "needs_conditions",
        "slice",
        "target",
    )

    def __init__(self, slice_: SliceView, message: devices.Device) -> None:
        self.slice = slice_
        self.message = message
        self.id = DeviceId(slice_.driver, slice_.pool, message.name)
        self.target = NodeTarget.of(message) if slice_.per_device else NodeTarget()
        self.is_tainted = bool(message.taints)
        self.is_shareable = message.allowMultipleAllocations
        self.needs_conditions = bool(message.bindingConditions)
        self._matched: dict[tuple[str, SelectorFeatures], bool] = {}
        self._value: tuple[SelectorFeatures, DeviceValue] | None = None
        self._amounts: Amounts | None = None
        self._counters: tuple[tuple[str, Amounts], ...] | None = None

    def value(self, features: SelectorFeatures) -> DeviceValue:
        """Return the CEL value that selectors evaluate.

        Raises:
            EvaluationError: an attribute has no value.
        """
        if self._value is None or self._value[0] != features:
            self._value = features, device_value(self.id.driver, self.message, features)
        return self._value[1]

    def matches(self, expression: str, features: SelectorFeatures) -> bool:
        """Return whether the selector matches, evaluated once.

        Raises:
            CompileError: the expression does not compile.
            EvaluationError: it fails for this device.
        """
        key = expression, features
        known = self._matched.get(key)
        if known is None:
            known = compile_selector(expression, features).matches(self.value(features))
            if len(self._matched) >= EXPRESSIONS_MAX:
                self._matched.clear()
            self._matched[key] = known
        return known

    @property
    def amounts(self) -> Amounts:
        """Return the device's capacity by name."""
        if self._amounts is None:
            self._amounts = amounts_of({name: c.value for name, c in self.message.capacity.items()})
        return self._amounts

    @property
    def consumes(self) -> tuple[tuple[str, Amounts], ...]:
        """Return the device's use of shared counters: (counter set, amounts)."""
        if self._counters is None:
            self._counters = tuple(
                (c.counterSet, amounts_of({name: counter.value for name, counter in c.counters.items()}))
                for c in self.message.consumesCounters
            )
        return self._counters

    def reachable(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the node can use the device, given that it can use the slice."""
        return not self.slice.per_device or self.target.matches(name, labels)


class SliceView:
    """One ResourceSlice, read once for as long as it does not change."""

    __slots__ = (
        "count",
        "devices",
        "driver",
        "generation",
        "has_binding_conditions",
        "message",
        "name",
        "per_device",
        "per_device_set",
        "pool",
        "pool_id",
        "shared",
        "target",
    )

    def __init__(self, message: devices.ResourceSlice) -> None:
        spec = message.spec
        self.message = message
        self.name = message.metadata.name
        self.driver, self.pool = spec.driver, spec.pool.name
        self.pool_id = PoolId(self.driver, self.pool)
        self.generation, self.count = spec.pool.generation, spec.pool.resourceSliceCount
        self.per_device = spec.perDeviceNodeSelection
        self.per_device_set = spec.HasField("perDeviceNodeSelection")
        self.target = NodeTarget.of(spec)
        self.shared: dict[str, Amounts] | None = None
        if spec.sharedCounters:
            self.shared = {
                s.name: amounts_of({n: c.value for n, c in s.counters.items()}) for s in spec.sharedCounters
            }
        self.devices = tuple(DeviceView(self, device) for device in spec.devices)
        self.has_binding_conditions = any(device.needs_conditions for device in self.devices)

    def reachable(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the node can use the slice, or for per-device selection any of its devices."""
        if self.target.known:
            return self.target.matches(name, labels)
        return self.per_device and any(d.target.matches(name, labels) for d in self.devices)


@dataclass(frozen=True, slots=True)
class RequestView:
    """A request of a claim, or one alternative of it (`parent` then names the request)."""

    name: str
    parent: str
    class_name: str
    mode: str
    count: int
    admin_access: bool
    has_admin_access: bool
    selectors: Sequence[devices.DeviceSelector]
    tolerations: Sequence[devices.DeviceToleration]
    capacity: Amounts | None  # None: asks for none

    @classmethod
    def exact(cls, request: devices.DeviceRequest) -> RequestView:
        """Return a request without alternatives."""
        asked = request.exactly
        return cls(
            request.name, "", asked.deviceClassName, asked.allocationMode or EXACT_COUNT, _count(asked),
            asked.adminAccess, asked.HasField("adminAccess"), asked.selectors, asked.tolerations,
            _capacity(asked),
        )  # fmt: skip

    @classmethod
    def alternative(cls, request: devices.DeviceRequest, asked: devices.DeviceSubRequest) -> RequestView:
        return cls(
            asked.name, request.name, asked.deviceClassName, asked.allocationMode or EXACT_COUNT,
            _count(asked), False, False, asked.selectors, asked.tolerations, _capacity(asked),
        )  # fmt: skip

    @property
    def full_name(self) -> str:
        """Return the name in allocation results: `request` or `request/alternative`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def base_name(self) -> str:
        return self.parent or self.name


def _count(asked: devices.ExactDeviceRequest | devices.DeviceSubRequest) -> int:
    """Return the count; the API server defaults it to 1, a claim from a file may leave it out."""
    return asked.count if asked.HasField("count") else 1


def _capacity(asked: devices.ExactDeviceRequest | devices.DeviceSubRequest) -> Amounts | None:
    return amounts_of(asked.capacity.requests) if asked.HasField("capacity") else None


@dataclass(frozen=True, slots=True)
class AllocatedState:
    """The devices of other claims: whole ones, and the capacity taken of devices that are shared."""

    devices: Set[DeviceId] = frozenset()
    capacity: Mapping[DeviceId, Amounts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Node:
    """The parts of a node that the allocator needs."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    source: core.Node | None = None  # while it is the same object, nothing of the node has changed

    @classmethod
    def of(cls, node: core.Node) -> Node:
        return cls(node.metadata.name, node.metadata.labels, node)
