"""For how much longer nodes must be unneeded."""

from __future__ import annotations

from unittest.mock import Mock

from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.scale_down.scale_down_input import NodeToBeRemoved
from nominee.autoscaler.planning.scale_down.unneeded_nodes import UnneededNodes
from nominee.machinery.api.pb import core


def _removal(name: str, ready: str) -> NodeToBeRemoved:
    found = core.Node()
    found.metadata.name = name
    found.status.conditions.add(type="Ready", status=ready)
    return NodeToBeRemoved(node=found, utilization=Mock(), pods_to_reschedule=())


def test_the_time_of_ready_nodes_is_another_one() -> None:
    nodes = UnneededNodes(Options(scale_down_unneeded_time=20.0, scale_down_unready_time=90.0))
    ready, unready = _removal("a", "True"), _removal("b", "False")
    nodes.update([ready], 100.0)
    nodes.update([ready, unready], 110.0)
    assert nodes.left_seconds(115.0) == {"a": 5.0, "b": 85.0}
    assert nodes.left_seconds(130.0) == {"a": 0.0, "b": 70.0}
