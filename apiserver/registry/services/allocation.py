"""Cluster addresses and node ports of Services.

What is taken is what the other Services have, and what requests under way were given; upstream keeps it in
objects of its own (IPAddress, and a bitmap of ports), with the same answers to a client. With several API
servers on one etcd two creations at once may be given the same address: see docs/design.
Source: kube-apiserver 1.36, registry/core/service/storage (alloc.go), ipallocator, portallocator.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from apiserver.registry.services import carry_over, families
from apiserver.validation import field as fields
from apiserver.validation import services as validation
from apiserver.validation.service_addresses import NONE
from machinery.api import errors
from machinery.api.errors import Cause, StatusError
from machinery.api.kinds import SERVICE
from machinery.api.pb import core


@dataclass(frozen=True, slots=True)
class Ranges:
    """`--service-cluster-ip-range` and `--service-node-port-range`; the ports are inclusive."""

    addresses: ipaddress.IPv4Network = field(default_factory=lambda: ipaddress.IPv4Network("10.0.0.0/24"))
    first_port: int = 30000
    last_port: int = 32767


DEFAULT_RANGES = Ranges()
UNKNOWN_SECONDS = 10.0
"""For a write that nobody waits for any more to be seen, or never: etcd gives one up after seven seconds."""


@dataclass(slots=True)
class Taken:
    """What cannot be given: addresses, and ports by protocol."""

    addresses: set[str] = field(default_factory=set)
    ports: set[tuple[str, int]] = field(default_factory=set)

    def add(self, spec: core.ServiceSpec) -> None:
        self.addresses.update(each for each in spec.clusterIPs or (spec.clusterIP,) if each not in ("", NONE))
        self.ports.update((port.protocol, port.nodePort) for port in spec.ports if port.nodePort)
        if spec.healthCheckNodePort:
            self.ports.add(("TCP", spec.healthCheckNodePort))


class Claim:
    """What one request was given, until its write is known to all, or failed.

    A request that ends before anybody knows (?timeout=, etcd's silence) may have written all the same: what
    it was given is nobody else's for UNKNOWN_SECONDS more.
    """

    def __init__(self, allocator: Allocator, owner: tuple[str, str]) -> None:
        self._allocator = allocator
        self.owner = owner
        self.taken = Taken()
        allocator.claims.append(self)

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or (isinstance(error, StatusError) and error.code < 500):
            self.close()
        else:
            asyncio.get_running_loop().call_later(UNKNOWN_SECONDS, self.close)

    def close(self) -> None:
        self._allocator.claims.remove(self)


class Allocator:
    """See the module. `known` gives the Services that there are."""

    def __init__(
        self,
        known: Callable[[], Iterable[core.Service]],
        rng: random.Random,
        ranges: Ranges = DEFAULT_RANGES,
    ) -> None:
        self._known = known
        self._rng = rng
        self._ranges = ranges
        self.claims: list[Claim] = []

    def allocate(self, new: Any, old: Any | None) -> Claim:
        """Complete `new` in place; raises 422. The claim is the caller's to close."""
        if old is not None:
            carry_over.patch_allocated(new.spec, old.spec)
        carry_over.normalize_addresses(new.spec, old.spec if old is not None else None)
        causes = families.complete(new.spec, old.spec if old is not None else None)
        if causes:
            raise errors.invalid(SERVICE, new.metadata.name, causes)
        taken = self._taken(new)
        claim = Claim(self, (new.metadata.namespace, new.metadata.name))
        try:
            causes = self._address(new, taken) or self._ports(new, taken)
            if causes:
                raise errors.invalid(SERVICE, new.metadata.name, causes)
            claim.taken.add(new.spec)
        except BaseException:
            claim.close()
            raise
        return claim

    def _taken(self, new: core.Service) -> Taken:
        taken = Taken()
        for other in self._known():
            own = (other.metadata.namespace, other.metadata.name)
            if own != (new.metadata.namespace, new.metadata.name):
                taken.add(other.spec)
        for claim in self.claims:
            if claim.owner == (new.metadata.namespace, new.metadata.name):
                # Of two writes of one object one fails; who comes again may have the same.
                continue
            taken.addresses |= claim.taken.addresses
            taken.ports |= claim.taken.ports
        return taken

    def _address(self, new: core.Service, taken: Taken) -> list[Cause]:
        spec = new.spec
        if spec.type == "ExternalName" or spec.clusterIP == NONE:
            return []
        asked = spec.clusterIP
        problem = ""
        if asked:
            address = ipaddress.ip_address(asked)
            if address not in self._ranges.addresses:
                problem = (
                    f"the provided IP ({asked}) is not in the valid range."
                    f" The range of valid IPs is {self._ranges.addresses}"
                )
            elif asked in taken.addresses:
                problem = "provided IP is already allocated"
        else:
            found = next(self._free_addresses(taken), "")
            if found and not new.metadata.name:
                # Upstream's address is an object that refers to its Service by name.
                problem = (
                    f'IPAddress.networking.k8s.io "{found}" is invalid: spec.parentRef.name: Required value'
                )
            elif not found:
                problem = "range is full"
            else:
                spec.clusterIP = found
        if problem:
            what = f"failed to allocate IP {asked}: " if asked else "failed to allocate IP: "
            shown = list(spec.clusterIPs) or [""]
            return [fields.invalid("spec.clusterIPs", shown, what + problem)]
        if not spec.clusterIPs:
            spec.clusterIPs.append(spec.clusterIP)
        return []

    def _free_addresses(self, taken: Taken) -> Iterator[str]:
        """From a random place on, since an address that was just given back may still be in use."""
        ranges = self._ranges.addresses
        count = ranges.num_addresses - 2
        start = self._rng.randrange(max(count, 1))
        for step in range(count):
            address = str(ranges.network_address + 1 + (start + step) % count)
            if address not in taken.addresses:
                yield address

    def _ports(self, new: core.Service, taken: Taken) -> list[Cause]:
        spec = new.spec
        wanted = spec.type == "NodePort" or (
            spec.type == "LoadBalancer" and spec.allocateLoadBalancerNodePorts
        )
        own = Taken()
        for index, port in enumerate(spec.ports):
            if spec.type not in ("NodePort", "LoadBalancer"):
                continue
            if port.nodePort:
                problem = self._port_problem(port.protocol, port.nodePort, taken)
                if problem:
                    return [fields.invalid(f"spec.ports[{index}].nodePort", port.nodePort, problem)]
                own.ports.add((port.protocol, port.nodePort))
        given: dict[int, int] = {}
        for port in spec.ports:
            if wanted and not port.nodePort:
                # The same port of two protocols is the same port on the nodes, where that is free.
                number = given.get(port.port) or self._free_port(port.protocol, taken, own)
                port.nodePort = given[port.port] = number
                own.ports.add((port.protocol, number))
        if validation.needs_health_check(spec):
            if spec.healthCheckNodePort:
                problem = self._port_problem("TCP", spec.healthCheckNodePort, taken)
                if problem:
                    asked = f"failed to allocate requested HealthCheck NodePort {spec.healthCheckNodePort}"
                    raise errors.internal(f"{asked}: {problem}")
            else:
                spec.healthCheckNodePort = self._free_port("TCP", taken, own)
        return []

    def _port_problem(self, protocol: str, number: int, taken: Taken) -> str:
        ranges = self._ranges
        if not ranges.first_port <= number <= ranges.last_port:
            return (
                "provided port is not in the valid range."
                f" The range of valid ports is {ranges.first_port}-{ranges.last_port}"
            )
        return "provided port is already allocated" if (protocol, number) in taken.ports else ""

    def _free_port(self, protocol: str, taken: Taken, own: Taken) -> int:
        ranges = self._ranges
        count = ranges.last_port - ranges.first_port + 1
        start = self._rng.randrange(count)
        for step in range(count):
            number = ranges.first_port + (start + step) % count
            if (protocol, number) not in taken.ports and (protocol, number) not in own.ports:
                return number
        raise errors.internal("failed to allocate a nodePort: range is full")
