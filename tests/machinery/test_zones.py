"""The zone of a node by its labels."""

from __future__ import annotations

import pytest

from nominee.machinery.api.pb import core
from nominee.machinery.api.zones import zone_of


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ("", "")),
        ({"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}, ("r", "z")),
        ({"topology.kubernetes.io/zone": "z", "failure-domain.beta.kubernetes.io/zone": "old"}, ("", "old")),
        ({"topology.kubernetes.io/zone": "z", "failure-domain.beta.kubernetes.io/zone": ""}, ("", "")),
    ],
)
def test_the_zone_of_a_node(labels: dict[str, str], zone: tuple[str, str]) -> None:
    node = core.Node()
    node.metadata.labels.update(labels)
    assert zone_of(node) == zone
