"""Counts of pods by selector, followed through changes, equal those counted from scratch."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import LabelSelector
from nominee.machinery.wire import codec
from nominee.scheduler.framework.cluster import label_groups
from nominee.scheduler.framework.cluster.label_groups import pods_matching, pods_matching_by_domain
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from tests.scheduler.builders import node, pod

SELECTORS = [LabelSelector.parse(text) for text in ("app=a", "app in (a,b)", "!app", "tier", "")]
LABELS: list[dict[str, str]] = [{}, {"app": "a"}, {"app": "b"}, {"app": "a", "tier": "x"}, {"tier": "y"}]
ZONES = ("", "a", "b")


def labelled(name: str, namespace: str, labels: dict[str, str], *, terminating: bool = False) -> PodInfo:
    metadata: dict[str, Any] = {
        "name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels,
    }  # fmt: skip
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return PodInfo(codec.from_json(core.Pod, {"metadata": metadata}))


def counted(snapshot: Snapshot, namespace: str, selector: LabelSelector) -> list[int]:
    return [
        sum(
            pod.namespace == namespace and not pod.is_terminating and selector.matches(pod.labels)
            for pod in info.pods.values()
        )
        for info in snapshot.nodes
    ]


def zoned(name: str, zone: str) -> core.Node:
    """A node in a zone; "": in none."""
    made = node(name)
    if zone:
        made.metadata.labels["zone"] = zone
    return made


class Following(RuleBasedStateMachine):
    """Nodes and pods come, change and go; forks are made and reverted."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot = Snapshot([NodeInfo("n0", node("n0"))])
        self.numbers = 0
        self.forks = 0

    @rule(with_pods=st.integers(0, 2), zone=st.sampled_from(ZONES))
    def add_node(self, with_pods: int, zone: str) -> None:
        self.numbers += 1
        info = NodeInfo(f"m{self.numbers}", zoned(f"m{self.numbers}", zone))
        for index in range(with_pods):
            info.add_pod(labelled(f"q{self.numbers}-{index}", "a", LABELS[index + 1]))
        self.snapshot.add_node(info)

    @precondition(lambda self: len(self.snapshot) > 1)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        self.snapshot.remove_node(data.draw(st.sampled_from(self.snapshot.nodes)).name)

    @precondition(lambda self: not self.forks)
    @rule(data=st.data())
    def reorder(self, data: st.DataObject) -> None:
        self.snapshot.reorder(data.draw(st.permutations([info.name for info in self.snapshot.nodes])))

    @rule(
        data=st.data(),
        labels=st.sampled_from(LABELS),
        namespace=st.sampled_from("ab"),
        terminating=st.booleans(),
    )
    def add_pod(self, data: st.DataObject, labels: dict[str, str], namespace: str, terminating: bool) -> None:
        self.numbers += 1
        added = labelled(f"p{self.numbers}", namespace, labels, terminating=terminating)
        self.snapshot.add_pod(added, data.draw(st.sampled_from(self.snapshot.nodes)).name)

    @rule(data=st.data(), labels=st.sampled_from(LABELS), zone=st.sampled_from((None, *ZONES)))
    def replace_node(self, data: st.DataObject, labels: dict[str, str], zone: str | None) -> None:
        """As the cache does it: another NodeInfo with one pod changed, and perhaps in another zone."""
        if self.forks:
            return
        info = data.draw(st.sampled_from(self.snapshot.nodes)).clone()
        if info.pods:
            changed = data.draw(st.sampled_from(sorted(info.pods.values(), key=lambda each: each.name)))
            info.add_pod(labelled(changed.name, changed.namespace, labels))
        if zone is not None:
            info.set_node(zoned(info.name, zone))
        self.snapshot.put(info)

    @precondition(lambda self: any(info.pods for info in self.snapshot.nodes))
    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        info = data.draw(st.sampled_from([info for info in self.snapshot.nodes if info.pods]))
        self.snapshot.remove_pod(data.draw(st.sampled_from(sorted(info.pods))), info.name)

    @rule()
    def fork(self) -> None:
        if self.forks < 5:
            self.forks += 1
            self.snapshot.fork()

    @precondition(lambda self: self.forks)
    @rule()
    def revert(self) -> None:
        self.forks -= 1
        self.snapshot.revert()

    @invariant()
    def counts_are_right(self) -> None:
        for selector in SELECTORS:
            for namespace in "ab":
                found = pods_matching(self.snapshot, namespace, selector).tolist()
                assert found == counted(self.snapshot, namespace, selector), (namespace, str(selector))
                self.domains_are_right(namespace, selector, found)

    def domains_are_right(self, namespace: str, selector: LabelSelector, counts: list[int]) -> None:
        for label in ("kubernetes.io/hostname", "zone"):
            column = self.snapshot.label_column(label)
            found = pods_matching_by_domain(self.snapshot, namespace, selector, label)
            wanted: dict[str, int] = {}
            for info, count in zip(self.snapshot.nodes, counts, strict=True):
                if label in info.labels:
                    wanted[info.labels[label]] = wanted.get(info.labels[label], 0) + count
            assert {value: int(found[column.id_of(value)]) for value in wanted} == wanted
            assert int(found.sum()) == sum(wanted.values())


TestFollowing = Following.TestCase
TestFollowing.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_old_queries_are_dropped_and_answered_again(monkeypatch: Any) -> None:
    monkeypatch.setattr(label_groups, "ANSWERS_MAX", 2)
    snapshot = Snapshot([NodeInfo(name, node(name)) for name in ("n0", "n1")])
    snapshot.add_pod(labelled("p", "a", {"app": "a"}), "n1")
    for _ in range(2):
        for selector in SELECTORS:
            assert pods_matching(snapshot, "a", selector).tolist() == counted(snapshot, "a", selector)
    assert pods_matching(snapshot, pod("other").namespace, SELECTORS[0]).tolist() == [0, 0]
