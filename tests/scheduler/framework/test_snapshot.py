"""A snapshot that is updated step by step equals one built from scratch; forks can be reverted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nominee.machinery.api.pb import core
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.columns import Column
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from tests.scheduler.clusters import node_documents, pod_documents, read_node, read_pod

NODES = [f"n{i}" for i in range(20)]  # more than the snapshot has room for at first


def columns_of(snapshot: Snapshot) -> None:
    """Makes sure that derived columns exist."""
    snapshot.label_column("zone")
    snapshot.column("taints", lambda info: info.taints)
    snapshot.column("ports", lambda info: info.used_ports, follows_pods=True)


def picture(snapshot: Snapshot) -> dict[str, Any]:
    """Everything that plugins can see."""
    columns_of(snapshot)
    resources = 8
    size = len(snapshot)
    pods = {node.name: sorted(node.pods) for node in snapshot.nodes}
    derived = {
        str(key): [column.values[i] for i in column.ids[:size].tolist()]
        for key, column in sorted(snapshot._columns.items(), key=lambda item: str(item[0]))
        if isinstance(column, Column)
    }
    return {
        "names": [node.name for node in snapshot.nodes],
        "rows": dict(snapshot.row_of),
        "pods": pods,
        "allocatable": [snapshot.allocatable_of(r).tolist() for r in range(resources)],
        "requested": [snapshot.requested_of(r).tolist() for r in range(resources)],
        "free": [snapshot.free_of(r).tolist() for r in range(resources)],
        "nonzero": [snapshot.nonzero_of(r).tolist() for r in (0, 1)],
        "pods_free": snapshot.pods_free.tolist(),
        "unschedulable": snapshot.unschedulable.tolist(),
        "counts": (snapshot.unschedulable_count, snapshot.tainted_count, snapshot.image_count),
        "derived": derived,
    }


def rebuilt(cache: Cache) -> Snapshot:
    nodes = []
    for name in cache.node_names():
        info = cache.get_node(name)
        assert info is not None
        # Sums are added up again, not copied.
        fresh = NodeInfo(name, info.node)
        fresh.images = info.images
        for pod in info.pods.values():
            fresh.add_pod(pod)
        # But for a port that two pods hold: it goes with the first of them (see NodeInfo.remove_pod).
        assert info.used_ports <= fresh.used_ports
        fresh.used_ports = info.used_ports
        nodes.append(fresh)
    return Snapshot(nodes)


class CacheMachine(RuleBasedStateMachine):
    """Random changes of the cache, with the snapshot updated now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.snapshot = Snapshot()
        self.nodes: dict[str, core.Node] = {}
        self.bound: dict[str, PodInfo] = {}
        self.assumed: dict[str, tuple[PodInfo, str]] = {}
        self.numbers = iter(range(10**6))

    @rule(data=st.data(), name=st.sampled_from(NODES))
    def set_node(self, data: st.DataObject, name: str) -> None:
        node = read_node(data.draw(node_documents(name)))
        self.cache.put_node(node)
        self.nodes[name] = node

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        del self.nodes[name]
        self.cache.remove_node(name)

    @rule(data=st.data(), node=st.sampled_from(NODES))
    def add_pod(self, data: st.DataObject, node: str) -> None:
        name = f"p{next(self.numbers)}"
        pod = PodInfo(read_pod(data.draw(pod_documents(name, node))))
        self.cache.add_pod(pod)
        self.bound[pod.uid] = pod

    @precondition(lambda self: self.bound)
    @rule(data=st.data())
    def update_pod(self, data: st.DataObject) -> None:
        old = self.bound[data.draw(st.sampled_from(sorted(self.bound)))]
        document = data.draw(pod_documents(old.name, old.pod.spec.nodeName))
        pod = PodInfo(read_pod(document))
        self.cache.update_pod(pod)
        self.bound[pod.uid] = pod

    @precondition(lambda self: self.bound)
    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.bound)))
        self.cache.remove_pod(self.bound.pop(uid))

    @rule(data=st.data(), node=st.sampled_from(NODES))
    def assume(self, data: st.DataObject, node: str) -> None:
        name = f"p{next(self.numbers)}"
        document = data.draw(pod_documents(name))
        document["spec"].pop("nodeName", None)
        pod = PodInfo(read_pod(document))
        self.cache.assume_pod(pod, node)
        self.assumed[pod.uid] = (pod, node)

    @precondition(lambda self: self.assumed)
    @rule(data=st.data(), elsewhere=st.booleans())
    def confirm(self, data: st.DataObject, elsewhere: bool) -> None:
        pod, node = self.assumed.pop(data.draw(st.sampled_from(sorted(self.assumed))))
        bound = core.Pod()
        bound.CopyFrom(pod.pod)
        bound.spec.nodeName = "n0" if elsewhere else node
        info = PodInfo(bound)
        self.cache.add_pod(info)
        self.bound[info.uid] = info

    @precondition(lambda self: self.assumed)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        pod, _ = self.assumed.pop(data.draw(st.sampled_from(sorted(self.assumed))))
        self.cache.forget_pod(pod)

    @rule()
    def update_snapshot(self) -> None:
        columns_of(self.snapshot)
        self.cache.update_snapshot(self.snapshot)
        assert picture(self.snapshot) == picture(rebuilt(self.cache))

    @invariant()
    def counts(self) -> None:
        assert self.cache.pod_count == len(self.bound) + len(self.assumed)
        assert set(self.cache.assumed_pods()) == set(self.assumed)
        assert self.cache.node_count == len(self.nodes)


class ForkMachine(RuleBasedStateMachine):
    """Random changes in nested forks; each revert brings back exactly what was there."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot = Snapshot(NodeInfo(name, core.Node()) for name in NODES[:3])
        for info in self.snapshot.nodes:
            assert info.node is not None
        columns_of(self.snapshot)
        self.before: list[dict[str, Any]] = []
        self.numbers = iter(range(10**6))

    @precondition(lambda self: len(self.before) < 4)
    @rule()
    def fork(self) -> None:
        self.before.append(picture(self.snapshot))
        self.snapshot.fork()

    @precondition(lambda self: self.before)
    @rule()
    def revert(self) -> None:
        self.snapshot.revert()
        assert picture(self.snapshot) == self.before.pop()

    @precondition(lambda self: self.before)
    @rule()
    def commit(self) -> None:
        now = picture(self.snapshot)
        self.snapshot.commit()
        self.before.pop()
        assert picture(self.snapshot) == now

    @rule(data=st.data(), name=st.sampled_from(NODES[:6]))
    def add_node(self, data: st.DataObject, name: str) -> None:
        if name in self.snapshot.row_of:
            with pytest.raises(ValueError, match=name):
                self.snapshot.add_node(NodeInfo(name))
        else:
            self.snapshot.add_node(NodeInfo(name, read_node(data.draw(node_documents(name)))))

    @precondition(lambda self: len(self.snapshot) > 0)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        self.snapshot.remove_node(data.draw(st.sampled_from(sorted(self.snapshot.row_of))))

    @precondition(lambda self: len(self.snapshot) > 0)
    @rule(data=st.data())
    def add_pod(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(sorted(self.snapshot.row_of)))
        name = f"p{next(self.numbers)}"
        self.snapshot.add_pod(PodInfo(read_pod(data.draw(pod_documents(name, node)))), node)

    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        places = sorted((uid, node.name) for node in self.snapshot.nodes for uid in node.pods)
        if places:
            uid, node = data.draw(st.sampled_from(places))
            assert self.snapshot.remove_pod(uid, node) is not None
        assert picture(self.snapshot) == picture(Snapshot(self.snapshot.nodes))


TestCache = CacheMachine.TestCase
TestCache.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestFork = ForkMachine.TestCase
TestFork.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


def test_zones_take_turns() -> None:
    cache, snapshot = Cache(), Snapshot()
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c"), ("b2", "b")):
        node = core.Node()
        node.metadata.name = name
        node.metadata.labels["topology.kubernetes.io/zone"] = zone
        cache.put_node(node)
    cache.update_snapshot(snapshot)
    assert [node.name for node in snapshot.nodes] == ["a1", "b1", "c1", "a2", "b2"]
