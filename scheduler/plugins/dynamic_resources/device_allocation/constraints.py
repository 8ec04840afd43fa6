"""Check constraints between the devices of one claim: an attribute that all share, or in which all differ.

An attribute's values are a set, with one member unless the attribute is a list (DRAListTypeAttributes): all
devices must have a value in common, or no two may have one. Devices are added and taken back like a stack.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from nominee.machinery.api.pb import devices
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import DeviceView, RequestView

Values = frozenset[tuple[str, object]]


class Constraint(Protocol):
    """A constraint of one claim, and the devices added to it so far."""

    def add(self, request: RequestView, device: DeviceView) -> bool:
        """Add the device if the constraint allows it; return whether it did."""
        ...

    def remove(self, request: RequestView, device: DeviceView) -> None:
        """Take back the last device that was added with the same arguments."""
        ...


def attribute_of(device: DeviceView, name: str) -> devices.DeviceAttribute | None:
    """Return an attribute by its full name, or without the domain when that is the driver's."""
    attributes = device.message.attributes
    if name in attributes:
        return attributes[name]
    domain, separator, identifier = name.partition("/")
    if separator and domain == device.id.driver and identifier in attributes:
        return attributes[identifier]
    return None


def values_of(attribute: devices.DeviceAttribute, lists: bool) -> Values:
    """Return the values of an attribute with their types; empty for an unknown type."""
    for kind in ("string", "int", "bool", "version"):
        if attribute.HasField(kind):
            return frozenset({(kind, getattr(attribute, kind))})
        if lists and (found := getattr(attribute, f"{kind}s")):
            return frozenset((kind, value) for value in found)
    return frozenset()


@dataclass(slots=True)
class _OnAttribute:
    attribute: str
    requests: frozenset[str]  # names; empty: all requests of the claim
    lists: bool
    _stack: list[Values] = field(default_factory=list)

    def _applies(self, request: RequestView) -> bool:
        return not self.requests or request.base_name in self.requests or request.full_name in self.requests

    def _with(self, values: Values) -> Values | None:
        raise NotImplementedError

    def add(self, request: RequestView, device: DeviceView) -> bool:
        if not self._applies(request):
            return True
        attribute = attribute_of(device, self.attribute)
        if attribute is None:
            return False
        values = values_of(attribute, self.lists)
        together = self._with(values) if self._stack else values
        if together is None:
            return False
        self._stack.append(together)
        return True

    def remove(self, request: RequestView, device: DeviceView) -> None:
        if self._applies(request):
            self._stack.pop()


class MatchAttribute(_OnAttribute):
    """All devices have the attribute, with a value in common."""

    __slots__ = ()

    def _with(self, values: Values) -> Values | None:
        return self._stack[-1] & values or None


class DistinctAttribute(_OnAttribute):
    """All devices have the attribute, and no two a value in common."""

    __slots__ = ()

    def _with(self, values: Values) -> Values | None:
        used = self._stack[-1]
        return None if not values or used & values else used | values


def constraints_of(claim: devices.ResourceClaim, lists: bool) -> list[Constraint]:
    """Return the constraints of a claim.

    Raises:
        ValueError: a constraint is of an unknown type.
    """
    found: list[Constraint] = []
    for index, message in enumerate(claim.spec.devices.constraints):
        requests = frozenset(message.requests)
        if message.HasField("matchAttribute"):
            found.append(MatchAttribute(message.matchAttribute, requests, lists))
        elif message.HasField("distinctAttribute"):
            found.append(DistinctAttribute(message.distinctAttribute, requests, lists))
        else:
            raise ValueError(f"constraint #{index}: empty constraint (unsupported constraint type?)")
    return found
