"""Which addresses nodes and their pods have. Pure.

A node's number gives its own address (172.16.0.0/16) and its pods' (a /24 of 10.0.0.0/8). Pods have no
address of 10.0.0.0/24 or 10.96.0.0/12, where clusters have their Services: kube-apiserver's default range,
which is ours too, and kubeadm's.
"""

from __future__ import annotations

LISTED_NODES_MAX = 95 * 256
"""Nodes of the command line have numbers below: their pods' addresses are 10.1.0.0 to 10.95.255.255."""
CLOUD_NUMBERS_FROM = 32_768
CLOUD_NUMBERS = 32_768
"""Nodes of the cloud have so many numbers from there on: their pods are in 10.128.0.0/9."""
POD_NUMBERS = range(2, 255)


def host_ip(node: int) -> str:
    return f"172.16.{node // 256}.{node % 256}"


def number_of(network: str) -> int | None:
    """Return the number whose pods are in this /24, of 10.1.0.0 to 10.255.255.0; None for another network."""
    first, second, third, _ = map(int, network.split("."))
    if first != 10 or second == 0:
        return None
    listed = (second - 1) * 256 + third
    return listed if listed < LISTED_NODES_MAX else second * 256 + third


def pod_ip(node: int, pod: int) -> str:
    """Return the address of a pod (a number of POD_NUMBERS) on the node with this number."""
    second = 1 + node // 256 if node < LISTED_NODES_MAX else node // 256
    return f"10.{second}.{node % 256}.{pod}"
