"""Simulations: what if there were another node, or one less?"""

from __future__ import annotations

from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.framework.scheduling.simulation import Simulator
from nominee.scheduler.framework.types import NodeInfo
from nominee.scheduler.plugins.registry import IN_TREE, default_profile
from tests.scheduler.builders import VERSION, node, pod


def simulator(nodes: int) -> Simulator:
    made = Simulator(default_profile(), IN_TREE, gates=Gates("autoscaler", VERSION), clock=FakeClock())
    for i in range(nodes):
        made.snapshot.add_node(NodeInfo(f"n{i}", node(f"n{i}")))
    return made


def test_a_check_returns_the_reason() -> None:
    sim = simulator(2)
    assert sim.check(pod("a"), "n1") is None
    too_big = sim.check(pod("a", cpu="5"), "n1")
    assert too_big is not None
    assert too_big.reasons == ("Insufficient cpu",)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert sim.check(pod("a", affinity={"nodeAffinity": required}), "n1") is not None
