"""Nominations: held also for nodes that do not exist, and gone with their pods."""

from __future__ import annotations

from nominee.scheduler.framework.interface import NominatingInfo, NominatingMode
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.types import PodInfo
from tests.scheduler.builders import pod


def names(nominator: Nominator, node: str) -> list[str]:
    return [p.name for p in nominator.pods_on(node)]


def override(node: str) -> NominatingInfo:
    return NominatingInfo(NominatingMode.Override, node)


def test_the_status_nominates_unless_it_is_overridden() -> None:
    nominator = Nominator()
    nominator.add(pod("a", nominated="n1"))
    nominator.add(pod("b", nominated="n1"), override("n2"))
    nominator.add(pod("c", nominated="n1"), NominatingInfo(NominatingMode.NoOp))
    nominator.add(pod("d"))
    assert names(nominator, "n1") == ["a", "c"]
    assert names(nominator, "n2") == ["b"]


def test_an_empty_override_clears() -> None:
    nominator = Nominator()
    nominator.add(pod("a", nominated="n1"))
    nominator.add(pod("a", nominated="n1"), override(""))
    assert len(nominator) == 0


def test_a_pod_has_one_nomination() -> None:
    nominator = Nominator()
    nominator.add(pod("a"), override("n1"))
    nominator.add(pod("a"), override("n2"))
    assert names(nominator, "n1") == []
    assert nominator.node_of("uid-a") == "n2"


def test_a_nomination_in_memory_outlives_an_update_without_it() -> None:
    nominator = Nominator()
    old = pod("a")
    nominator.add(old, override("n1"))
    nominator.update(old.pod, pod("a"))
    assert names(nominator, "n1") == ["a"]


def test_any_other_update_follows_the_status() -> None:
    nominator = Nominator()
    old = pod("a")
    nominator.add(old, override("n1"))
    set_elsewhere = pod("a", nominated="n9")
    nominator.update(old.pod, set_elsewhere)
    assert nominator.node_of("uid-a") == "n9"
    nominator.update(set_elsewhere.pod, pod("a"))
    assert nominator.node_of("uid-a") == ""


def test_nodes_that_do_not_exist_leave_nothing_behind() -> None:
    nominator = Nominator()
    for i in range(50):
        nominator.add(pod(f"p{i}"), override(f"never-{i}"))
    for i in range(50):
        nominator.delete(f"uid-p{i}")
    nominator.delete("uid-unknown")
    assert len(nominator) == 0
    assert dict(nominator.by_node) == {}


def test_a_pod_that_was_bound_meanwhile_is_not_nominated() -> None:
    bound: set[str] = {"uid-a"}

    def is_pending(info: PodInfo) -> bool:
        return info.uid not in bound

    nominator = Nominator(is_pending)
    nominator.add(pod("a"), override("n1"))
    nominator.add(pod("b"), override("n1"))
    assert names(nominator, "n1") == ["b"]
