"""Addresses of nodes and pods do not overlap with one another, nor with those of Services."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from click.testing import CliRunner

from nominee.kubelet.__main__ import main
from nominee.kubelet.addresses import (
    CLOUD_NUMBERS,
    CLOUD_NUMBERS_FROM,
    LISTED_NODES_MAX,
    POD_NUMBERS,
    host_ip,
    pod_ip,
)

SERVICES = [ip_network("10.0.0.0/24"), ip_network("10.96.0.0/12")]
NUMBERS = [*range(LISTED_NODES_MAX), *range(CLOUD_NUMBERS_FROM, CLOUD_NUMBERS_FROM + CLOUD_NUMBERS)]


def test_every_node_and_its_pods_have_addresses_of_their_own() -> None:
    assert len({host_ip(number) for number in NUMBERS}) == len(NUMBERS)
    assert len({pod_ip(number, POD_NUMBERS[0]) for number in NUMBERS}) == len(NUMBERS)
    for number in NUMBERS[:: len(NUMBERS) // 1000]:
        network = ip_network(pod_ip(number, 0) + "/24")
        assert all(ip_address(pod_ip(number, pod)) in network for pod in (POD_NUMBERS[0], POD_NUMBERS[-1]))
        assert ip_address(host_ip(number)).is_private


@pytest.mark.parametrize("number", [0, 1, LISTED_NODES_MAX - 1, NUMBERS[LISTED_NODES_MAX], NUMBERS[-1]])
def test_no_pod_has_the_address_of_a_service(number: int) -> None:
    network = ip_network(pod_ip(number, 0) + "/24")
    assert not any(network.overlaps(services) for services in SERVICES)


def test_a_node_that_would_have_no_addresses_is_refused() -> None:
    words = ["--first-node", str(LISTED_NODES_MAX), "--nodes", "1"]
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 2
    assert "--first-node" in refused.output
