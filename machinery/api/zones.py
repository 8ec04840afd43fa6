"""The zone of a node, as the scheduler and the node controller tell zones apart."""

from __future__ import annotations

from typing import Final

from nominee.machinery.api.pb import core

Zone = tuple[str, str]
"""A region and a zone of it; each may be ''."""

_REGIONS: Final = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONES: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


def zone_of(node: core.Node) -> Zone:
    """Return the region and zone of a node; the older labels come first.

    Source: k8s.io/component-helpers 1.36, node/topology GetZoneKey.
    """
    labels = node.metadata.labels
    region = next((labels[key] for key in _REGIONS if key in labels), "")
    return region, next((labels[key] for key in _ZONES if key in labels), "")
