"""Simulations: what if there were another node, or one less?"""

from __future__ import annotations

from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.framework.scheduling.simulation import Simulator
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.registry import IN_TREE, default_profile
from tests.scheduler.builders import VERSION, node, pod


def simulator(nodes: int) -> Simulator:
    made = Simulator(default_profile(), IN_TREE, gates=Gates("autoscaler", VERSION), clock=FakeClock())
    for i in range(nodes):
        made.snapshot.add_node(NodeInfo(f"n{i}", node(f"n{i}")))
    return made


def test_pods_are_placed_in_turn_until_nothing_fits() -> None:
    sim = simulator(2)
    placed = [sim.place(pod(f"p{i}", cpu="2")) for i in range(5)]
    assert placed == ["n0", "n1", "n0", "n1", None]


def test_another_node_would_help_and_is_taken_back() -> None:
    sim = simulator(1)
    full = [pod("a", cpu="3"), pod("b", cpu="3")]
    assert sim.place(full[0]) == "n0"
    sim.snapshot.fork()
    sim.snapshot.add_node(NodeInfo("template", node("template")))
    assert sim.place(full[1]) == "template"
    sim.snapshot.revert()
    assert sim.place(full[1]) is None
    assert len(sim.snapshot) == 1


def test_a_node_can_go_when_its_pods_fit_elsewhere() -> None:
    sim = simulator(2)
    for i in range(2):
        assert sim.place(pod(f"p{i}", cpu="1")) == f"n{i}"
    sim.snapshot.fork()
    leaving = sim.snapshot.get("n0")
    assert leaving is not None
    pods: list[PodInfo] = list(leaving.pods.values())
    sim.snapshot.remove_node("n0")
    assert [sim.place(p) for p in pods] == ["n1"]
    sim.snapshot.revert()
    assert [sorted(n.pods) for n in sim.snapshot.nodes] == [["uid-p0"], ["uid-p1"]]


def test_a_check_returns_the_reason() -> None:
    sim = simulator(2)
    assert sim.check(pod("a"), "n1") is None
    too_big = sim.check(pod("a", cpu="5"), "n1")
    assert too_big is not None
    assert too_big.reasons == ("Insufficient cpu",)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert sim.check(pod("a", affinity={"nodeAffinity": required}), "n1") is not None
    assert sim.place(pod("a"), lambda info: info.name == "n1") == "n1"
