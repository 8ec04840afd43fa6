"""Node ports: the set of allocated ports, and the ports that a write of a Service takes and releases. Pure.

Stored as upstream's RangeAllocation: the range and a bit for each port (a big-endian number whose lowest bit
is the first port).

Source: kube-apiserver 1.36, registry/core/service/portallocator, registry/core/service/storage/alloc.go;
KEP-3668 (the lower part is allocated last).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from nominee.apiserver.kinds.core.services import validation as validation
from nominee.apiserver.registry.services.addresses import static_part
from nominee.apiserver.validation import field as fields
from nominee.machinery.api import errors
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

_STATIC_MIN, _STATIC_MAX, _STATIC_SHARE = 16, 128, 32
_ON_NODES = ("NodePort", "LoadBalancer")


@dataclass(frozen=True, slots=True)
class PortRange:
    """The range of `--service-node-port-range`, inclusive."""

    first: int = 30000
    last: int = 32767

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    def __contains__(self, port: int) -> bool:
        return self.first <= port <= self.last

    def candidates(self, rng: random.Random) -> Iterator[int]:
        """Yield every port once: from a random start in the upper part, then in the lower part."""
        size = self.last - self.first + 1
        below = static_part(size, least=_STATIC_MIN, most=_STATIC_MAX, share=_STATIC_SHARE)
        for begin, count in ((self.first + below, size - below), (self.first, below)):
            start = rng.randrange(count) if count else 0
            for step in range(count):
                yield begin + (start + step) % count


@dataclass(frozen=True, slots=True)
class TakenPorts:
    """The allocated ports of a range: bit N of `bits` is the port `first + N`."""

    range: PortRange
    bits: int = 0

    def __contains__(self, port: int) -> bool:
        return port in self.range and bool(self.bits >> (port - self.range.first) & 1)

    def __iter__(self) -> Iterator[int]:
        left = self.bits & ((1 << (self.range.last - self.range.first + 1)) - 1)
        while left:
            lowest = left & -left
            yield self.range.first + lowest.bit_length() - 1
            left ^= lowest

    def with_ports(self, ports: Iterable[int]) -> TakenPorts:
        bits = self.bits
        for port in ports:
            bits |= 1 << (port - self.range.first)
        return replace(self, bits=bits)

    def without(self, ports: Iterable[int]) -> TakenPorts:
        bits = self.bits
        for port in ports:
            if port in self.range:
                bits &= ~(1 << (port - self.range.first))
        return replace(self, bits=bits)

    @classmethod
    def of_message(cls, stored: core.RangeAllocation, wanted: PortRange) -> TakenPorts:
        """Read a RangeAllocation; of one for another range, the ports that are also in `wanted`."""
        first = int(stored.range.partition("-")[0] or wanted.first)
        found = cls(PortRange(first, wanted.last), int.from_bytes(stored.data, "big"))
        return found if first == wanted.first else cls(wanted).with_ports(p for p in found if p in wanted)

    def to_message(self) -> core.RangeAllocation:
        size = (self.bits.bit_length() + 7) // 8
        return core.RangeAllocation(range=str(self.range), data=self.bits.to_bytes(size, "big"))


class PortRefused(Exception):
    """A requested port cannot be allocated; `cause` names the field."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(slots=True)
class PortChange:
    """The ports that one write takes, and those that it releases once it is done."""

    taken: TakenPorts
    rng: random.Random
    allocated: list[int]
    released: list[int]

    def ask(self, port: int) -> str:
        """Take this port; return why that is not possible, or ""."""
        if port not in self.taken.range:
            return f"provided port is not in the valid range. The range of valid ports is {self.taken.range}"
        if port in self.taken:
            return "provided port is already allocated"
        self._take(port)
        return ""

    def next(self, what: str = "nodePort") -> int:
        """Take any free port.

        Raises: StatusError 500 when the range is full.
        """
        for port in self.taken.range.candidates(self.rng):
            if port not in self.taken:
                self._take(port)
                return port
        raise errors.internal(f"failed to allocate a {what}: range is full")

    def _take(self, port: int) -> None:
        self.taken = self.taken.with_ports([port])
        self.allocated.append(port)


def numbers(spec: core.ServiceSpec) -> list[int]:
    """Return the node ports of a Service; a port shared by several protocols counts once."""
    found = {port.nodePort: None for port in spec.ports if port.nodePort}
    if spec.healthCheckNodePort:
        found[spec.healthCheckNodePort] = None
    return list(found)


def concerns(new: core.ServiceSpec, old: core.ServiceSpec | None) -> bool:
    """Report whether a write involves node ports."""
    return new.type in _ON_NODES or (old is not None and old.type in _ON_NODES)


def change(
    new: core.ServiceSpec, old: core.ServiceSpec | None, taken: TakenPorts, rng: random.Random
) -> PortChange:
    """Allocate the node ports of `new` in place.

    Raises: PortRefused, StatusError 500.
    """
    made = PortChange(taken, rng, [], [])
    before = [port.nodePort for port in old.ports if port.nodePort] if old is not None else []
    if new.type in _ON_NODES:
        if old is None:
            _create(new, made)
        else:
            _update(new, before, made)
    if old is not None:
        after = {port.nodePort for port in new.ports} if new.type in _ON_NODES else set[int]()
        if old.type in _ON_NODES:
            made.released += dict.fromkeys(port for port in before if port not in after)
    _health_check(new, old, made)
    return made


def _gives(spec: core.ServiceSpec) -> bool:
    return spec.type == "NodePort" or (spec.type == "LoadBalancer" and spec.allocateLoadBalancerNodePorts)


def _create(spec: core.ServiceSpec, made: PortChange) -> None:
    """Allocate for a new Service: ports with the same number share a node port, also when one requests it."""
    given: dict[int, int] = {}
    for index, port in enumerate(spec.ports):
        if not port.nodePort and not _gives(spec):
            continue
        shared = given.get(port.port, 0)
        if shared and port.nodePort in (0, shared):
            port.nodePort = shared
            continue
        asked = port.nodePort or next(
            (other.nodePort for other in spec.ports if other.port == port.port and other.nodePort), 0
        )
        port.nodePort = _asked(index, asked, made) if asked else made.next()
        given.setdefault(port.port, port.nodePort)


def _update(spec: core.ServiceSpec, before: list[int], made: PortChange) -> None:
    for index, port in enumerate(spec.ports):
        if port.nodePort:
            if port.nodePort not in before and port.nodePort not in made.allocated:
                _asked(index, port.nodePort, made)
        elif _gives(spec):
            port.nodePort = made.next()


def _asked(index: int, port: int, made: PortChange) -> int:
    problem = made.ask(port)
    if problem:
        raise PortRefused(fields.invalid(f"spec.ports[{index}].nodePort", port, problem))
    return port


def _health_check(new: core.ServiceSpec, old: core.ServiceSpec | None, made: PortChange) -> None:
    needs = validation.needs_health_check(new)
    needed = old is not None and validation.needs_health_check(old)
    if needs and not needed:
        if not new.healthCheckNodePort:
            new.healthCheckNodePort = made.next("HealthCheck NodePort")
            return
        problem = made.ask(new.healthCheckNodePort)
        if problem:
            asked = f"failed to allocate requested HealthCheck NodePort {new.healthCheckNodePort}"
            raise errors.internal(f"{asked}: {problem}")
    elif needed and not needs and old is not None and old.healthCheckNodePort:
        made.released.append(old.healthCheckNodePort)
