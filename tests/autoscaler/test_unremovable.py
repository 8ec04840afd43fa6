"""Nodes that cannot be removed, and are not simulated again for a while."""

from __future__ import annotations

from nominee.autoscaler.planning.scale_down.unremovable import Reason, Unremovable, UnremovableNodes


def test_when_nodes_are_simulated_again() -> None:
    nodes = UnremovableNodes()
    why = Unremovable(Reason.NO_PLACE_TO_MOVE_PODS)
    nodes.add("n1", why)
    nodes.add_timeout("n2", why, 300.0)
    nodes.add_timeout("n3", why, 40.0)
    assert nodes.recheck_seconds(50.0) == {"n2": 250.0, "n3": 0.0}
    nodes.update(["n2", "n3"], 50.0)
    assert nodes.recheck_seconds(50.0) == {"n2": 250.0}
