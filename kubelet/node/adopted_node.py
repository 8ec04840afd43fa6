"""Nodes of another cluster that a kubelet goes on running, under their own names (`nominee import`). Pure.

The annotation marks them. It is "" until a kubelet has adopted the node, and then has the version that this
kubelet emulated; docs/design/027-import.md, "Kubelets adopt nodes".
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from zlib import crc32

from nominee.kubelet import addresses
from nominee.kubelet.node.node_object import Identity
from nominee.machinery.api.objects import ADOPTED
from nominee.machinery.api.pb import core

_POD_PREFIX_BITS = 24


@dataclass(frozen=True, slots=True)
class AdoptedShare:
    """The marked nodes that one of several kubelet processes adopts; `0/2` is the first of two."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> AdoptedShare:
        """Parse `0/2`. Raises: ValueError for anything else."""
        index, _, count = text.partition("/")
        share = cls(int(index), int(count))
        if not 0 <= share.index < share.count:
            raise ValueError(f"{text}: the first number must be below the second one")
        return share

    def identities(self, nodes: Iterable[core.Node]) -> Iterator[Identity]:
        """Yield the nodes of this share, of all nodes of the cluster."""
        for node in nodes:
            if ADOPTED in node.metadata.annotations and self._has(node.metadata.name):
                yield identity(node)

    def _has(self, name: str) -> bool:
        return crc32(name.encode()) % self.count == self.index


def identity(node: core.Node) -> Identity:
    """Return the identity of a marked node; its addresses are those that it had."""
    return Identity(
        name=node.metadata.name,
        number=_number(node),
        provider_id=node.spec.providerID,
        address=next((row.address for row in node.status.addresses if row.type == "InternalIP"), ""),
        adopted=True,
    )


def is_new(node: core.Node) -> bool:
    """Return whether no kubelet has adopted the node yet: its pods are still as another cluster left them."""
    return not node.metadata.annotations.get(ADOPTED, "none")


def _number(node: core.Node) -> int:
    """Return the number that gives new pods addresses of the node's range, if that is 10.x.y.0/24.

    Else one by its name, as nodes of the cloud have: two nodes of a large cluster may have the same.
    """
    try:
        pods = ipaddress.IPv4Network(node.spec.podCIDR)
    except ValueError:
        pods = None
    if pods is not None and pods.prefixlen == _POD_PREFIX_BITS:
        number = addresses.number_of(str(pods.network_address))
        if number is not None:
            return number
    return addresses.CLOUD_NUMBERS_FROM + crc32(node.metadata.name.encode()) % addresses.CLOUD_NUMBERS
