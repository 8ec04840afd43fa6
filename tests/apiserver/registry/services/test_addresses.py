"""Ranges, node ports and what is repaired of them: the pure parts of the allocation of Services."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.registry.services import addresses, node_ports
from nominee.apiserver.registry.services.addresses import AddressRange
from nominee.apiserver.registry.services.node_ports import PortRange, PortRefused, TakenPorts
from nominee.apiserver.registry.services.repair import GRACE_SECONDS, SIGHTINGS, PortLeaks, plan_addresses
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core, networking
from nominee.machinery.wire import codec, envelope

RANGE = AddressRange(ipaddress.IPv4Network("10.0.0.0/24"))
PORTS = PortRange()
NOW = 1000.0


def cidr(name: str, *ranges: str, ready: str = "", deleted: bool = False) -> networking.ServiceCIDR:
    made = networking.ServiceCIDR()
    made.metadata.name = name
    made.spec.cidrs.extend(ranges)
    if ready:
        made.status.conditions.add(type="Ready", status=ready)
    if deleted:
        made.metadata.deletionTimestamp.seconds = 1
    return made


def test_which_ranges_give_addresses() -> None:
    found = [
        cidr("kubernetes", "10.0.0.0/24", ready="True"),
        cidr("again", "10.0.0.0/24"),
        cidr("new", "10.1.0.0/28", "fd00::/64"),
        cidr("refused", "10.2.0.0/24", ready="False"),
        cidr("going", "10.3.0.0/24", ready="True", deleted=True),
    ]
    shown = [str(each.network) for each in addresses.ready_ranges(found)]
    assert shown == ["10.0.0.0/24", "10.1.0.0/28"]


@given(prefix=st.integers(min_value=20, max_value=30), seed=st.integers(0, 1000))
def test_each_address_of_a_range_comes_once_and_the_lower_ones_last(prefix: int, seed: int) -> None:
    network = ipaddress.IPv4Network(f"10.0.0.0/{prefix}")
    got = list(AddressRange(network).candidates(random.Random(seed)))
    assert sorted(got) == sorted(str(each) for each in network.hosts())
    below = addresses.static_part(network.num_addresses, least=16, most=256, share=16)
    lower = {str(network.network_address + 1 + step) for step in range(below)}
    assert set(got[len(got) - below :]) == lower


@given(seed=st.integers(0, 1000))
def test_each_port_comes_once_and_the_lower_ones_last(seed: int) -> None:
    got = list(PORTS.candidates(random.Random(seed)))
    assert sorted(got) == list(range(30000, 32768))
    assert set(got[-86:]) == set(range(30000, 30086))


@given(st.sets(st.integers(30000, 32767)))
def test_taken_ports_are_stored_as_upstreams(ports: set[int]) -> None:
    taken = TakenPorts(PORTS).with_ports(ports)
    stored = taken.to_message()
    assert stored.range == "30000-32767"
    assert int.from_bytes(stored.data, "big") == sum(1 << (port - 30000) for port in ports)
    assert TakenPorts.of_message(stored, PORTS) == taken
    assert set(TakenPorts.of_message(stored, PortRange(30100, 30200))) == {
        port for port in ports if 30100 <= port <= 30200
    }
    assert set(taken.without(list(ports)[:1])) == ports - set(list(ports)[:1])


def test_the_taken_ports_are_in_order_and_within_the_range() -> None:
    taken = TakenPorts(PORTS).with_ports([32767, 30000, 30500])

    assert list(taken) == [30000, 30500, 32767]
    assert list(TakenPorts(PortRange(30000, 30500), taken.bits)) == [30000, 30500]
    assert list(TakenPorts(PORTS)) == []


def spec(kind: str = "NodePort", *ports: tuple[int, int, str], **more: object) -> core.ServiceSpec:
    """`ports` are (port, nodePort, protocol)."""
    listed = [{"port": port, "nodePort": node, "protocol": protocol} for port, node, protocol in ports]
    return codec.from_json(core.ServiceSpec, {"type": kind, "ports": listed, **more})


LOCAL = {"externalTrafficPolicy": "Local", "allocateLoadBalancerNodePorts": True}


def test_ports_of_a_new_service() -> None:
    taken = TakenPorts(PORTS)
    new = spec("NodePort", (80, 0, "TCP"), (80, 30001, "UDP"), (81, 0, "TCP"), (82, 30001, "SCTP"))
    with pytest.raises(PortRefused, match="already allocated") as caught:
        node_ports.change(new, None, taken, random.Random(1))
    assert caught.value.cause.field == "spec.ports[3].nodePort"
    new = spec("NodePort", (80, 0, "TCP"), (80, 30001, "UDP"), (81, 0, "TCP"))
    made = node_ports.change(new, None, taken, random.Random(1))
    assert [port.nodePort for port in new.ports][:2] == [30001, 30001]
    assert sorted(made.allocated) == sorted({30001, new.ports[2].nodePort})
    assert set(made.taken) == set(made.allocated)
    # A port is taken whatever its protocol: upstream's bitmap knows none.
    with pytest.raises(PortRefused, match="already allocated"):
        node_ports.change(spec("NodePort", (1, 30001, "SCTP")), None, made.taken, random.Random(1))
    with pytest.raises(PortRefused, match="The range of valid ports is 30000-32767"):
        node_ports.change(spec("NodePort", (1, 80, "TCP")), None, taken, random.Random(1))


def test_a_balancer_has_ports_where_it_asks_and_one_for_health() -> None:
    new = spec("LoadBalancer", (80, 0, "TCP"), (81, 30002, "TCP"), **LOCAL)
    new.allocateLoadBalancerNodePorts = False
    made = node_ports.change(new, None, TakenPorts(PORTS), random.Random(1))
    assert [port.nodePort for port in new.ports] == [0, 30002]
    assert made.allocated == [30002, new.healthCheckNodePort]


def test_ports_of_a_changed_service() -> None:
    old = spec("NodePort", (80, 30001, "TCP"), (81, 30002, "TCP"))
    taken = TakenPorts(PORTS).with_ports([30001, 30002, 30003])
    new = spec("NodePort", (80, 30001, "TCP"), (82, 0, "TCP"))
    made = node_ports.change(new, old, taken, random.Random(1))
    assert (made.allocated, made.released) == ([new.ports[1].nodePort], [30002])
    # Ports are given back once the write is done: until then no other Service may have them.
    assert 30002 in made.taken
    with pytest.raises(PortRefused):
        node_ports.change(spec("NodePort", (80, 30003, "TCP")), old, taken, random.Random(1))
    made = node_ports.change(spec("ClusterIP", (80, 30001, "TCP")), old, taken, random.Random(1))
    assert (made.allocated, made.released) == ([], [30001, 30002])
    balancer = spec("LoadBalancer", (80, 30001, "TCP"), healthCheckNodePort=30003, **LOCAL)
    made = node_ports.change(spec("ClusterIP", (80, 0, "TCP")), balancer, taken, random.Random(1))
    assert made.released == [30001, 30003]


# Repair.


def service(name: str, *given: str, node_port: int = 0) -> core.Service:
    made = core.Service()
    made.metadata.name, made.metadata.namespace = name, "default"
    made.spec.type, made.spec.clusterIP = "ClusterIP", given[0] if given else ""
    made.spec.clusterIPs.extend(given)
    made.spec.ports.add(port=80, nodePort=node_port)
    return made


def stored(address: str, owner: str, *, age: float = 2 * GRACE_SECONDS, **parent: str) -> CachedObject:
    made = addresses.address_object(address, service(owner))
    made.metadata.creationTimestamp.seconds = int(NOW - age)
    for name, value in parent.items():
        setattr(made.spec.parentRef, name, value)
    return CachedObject(kinds.IP_ADDRESS, "", address, 7, stored=envelope.encode(made))


def bare(address: str, owner: str) -> CachedObject:
    """Without the allocator's labels."""
    made = addresses.address_object(address, service(owner))
    made.metadata.labels.clear()
    return CachedObject(kinds.IP_ADDRESS, "", address, 7, stored=envelope.encode(made))


@pytest.mark.parametrize(
    ("services", "found", "deleted", "created", "duplicates"),
    [
        ([service("a", "10.0.0.1")], [stored("10.0.0.1", "a")], [], [], 0),
        # A Service of a time before IPAddresses, or whose IPAddress was deleted.
        ([service("a", "10.0.0.1")], [], [], ["10.0.0.1"], 0),
        ([service("a", "None"), service("b", "")], [], [], [], 0),
        # Outside of all ranges there is nothing to be repaired.
        ([service("a", "10.9.0.1")], [], [], [], 0),
        # A server ended between the two writes of a creation, or of a deletion.
        ([], [stored("10.0.0.1", "a")], ["10.0.0.1"], [], 0),
        ([], [stored("10.0.0.1", "a", age=GRACE_SECONDS)], [], [], 0),
        # Another one was taken meanwhile.
        ([service("a", "10.0.0.2")], [stored("10.0.0.1", "a"), stored("10.0.0.2", "a")], ["10.0.0.1"], [], 0),
        ([service("a", "10.0.0.1")], [stored("10.0.0.1", "gone")], ["10.0.0.1"], ["10.0.0.1"], 0),
        ([service("a", "10.0.0.1")], [bare("10.0.0.1", "a")], ["10.0.0.1"], ["10.0.0.1"], 0),
        ([service("a", "10.0.0.1")], [stored("10.0.0.1", "a", resource="gateways")],
         ["10.0.0.1"], ["10.0.0.1"], 0),
        ([], [stored("10.0.0.1", "a", resource="gateways")], ["10.0.0.1"], [], 0),
        # Addresses of others are not the allocator's business.
        ([], [bare("10.0.0.1", "a")], [], [], 0),
        ([service("a", "10.0.0.1"), service("b", "10.0.0.1")], [stored("10.0.0.1", "a")], [], [], 1),
        ([service("a", "10.0.0.1"), service("b", "10.0.0.1")], [], [], ["10.0.0.1"], 0),
    ],
)  # fmt: skip
def test_what_is_repaired(
    services: Sequence[core.Service],
    found: Sequence[CachedObject],
    deleted: list[str],
    created: list[str],
    duplicates: int,
) -> None:
    plan = plan_addresses(services, found, [RANGE], NOW)
    assert [each.name for each in plan.delete] == deleted
    assert [each.metadata.name for each in plan.create] == created
    assert len(plan.duplicates) == duplicates


def test_leaked_ports_are_given_back_after_some_time() -> None:
    leaks, taken = PortLeaks(), TakenPorts(PORTS).with_ports([30001, 30002])
    services = [service("a", "10.0.0.1", node_port=30001), service("b", "10.0.0.2", node_port=30005)]
    for _ in range(SIGHTINGS):
        assert set(leaks.rebuilt(services, taken)) == {30001, 30002, 30005}
    assert set(leaks.rebuilt(services, taken)) == {30001, 30005}
    # One that is used in between begins again.
    assert set(leaks.rebuilt([*services, service("c", "", node_port=30002)], taken)) == {30001, 30002, 30005}
    assert 30002 in leaks.rebuilt(services, taken)
