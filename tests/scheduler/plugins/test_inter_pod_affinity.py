"""InterPodAffinity against its model, on clusters that change step by step, and its arguments and hints."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import codec
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Status
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.runtime.environment import Environment
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.profile import ArgumentError, Profile
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from nominee.scheduler.plugins.inter_pod_affinity.existing_terms import ExistingTerms
from nominee.scheduler.plugins.registry import IN_TREE, default_profile
from tests.scheduler import builders
from tests.scheduler.golden import ListLister
from tests.scheduler.plugins import affinity_model
from tests.scheduler.plugins.affinity_model import Model

V1_36 = Version(1, 36)
NODES = [f"n{i}" for i in range(6)]
VERSIONS = st.sampled_from((Version(1, 33), V1_36))
ARGS = st.fixed_dictionaries(
    {},
    optional={
        "hardPodAffinityWeight": st.sampled_from((0, 1, 100)),
        "ignorePreferredTermsOfExistingPods": st.booleans(),
    },
)


def plugin_of(snapshot: Snapshot, args: dict[str, Any], version: Version = V1_36) -> InterPodAffinity:
    environment = Environment(
        snapshot=snapshot,
        nominator=Nominator(),
        gates=Gates("scheduler", version),
        version=version,
        clock=FakeClock(),
        rng=random.Random(0),
        listers={kinds.NAMESPACE: ListLister(affinity_model.namespaces())},
    )
    profile = Profile(points=default_profile().points, args={"InterPodAffinity": args})
    found = Framework(profile, IN_TREE, environment).plugins["InterPodAffinity"]
    assert isinstance(found, InterPodAffinity)
    return found


def model_of(snapshot: Snapshot, args: dict[str, Any], version: Version) -> Model:
    return Model(
        {n.name: n.node for n in snapshot.nodes if n.node is not None},
        {n.name: [pod.pod for pod in n.pods.values()] for n in snapshot.nodes},
        args.get("hardPodAffinityWeight", 1),
        args.get("ignorePreferredTermsOfExistingPods", False),
        version >= Version(1, 34),
    )


def reason(status: Status | None) -> str | None:
    return None if status is None else status.message()


def rejections(
    plugin: InterPodAffinity, state: CycleState, pod: PodInfo, snapshot: Snapshot
) -> list[str | None]:
    """One node at a time."""
    return [reason(plugin.filter(state, pod, node)) for node in snapshot.nodes]


def check_filter(plugin: InterPodAffinity, model: Model, pod: PodInfo, snapshot: Snapshot) -> None:
    wanted = [model.rejection(pod.pod, model.nodes[node.name]) for node in snapshot.nodes]
    state = CycleState()
    _, status = plugin.pre_filter(state, pod, snapshot)
    if status is not None:
        assert status.is_skip
        assert set(wanted) <= {None}
        return
    assert rejections(plugin, state, pod, snapshot) == wanted
    for rows in (slice(0, len(wanted)), slice(1, len(wanted)), np.arange(len(wanted), dtype=np.intp)[::-1]):
        mask = plugin.filter_all(state, pod, snapshot, rows)
        expected = np.array(wanted, dtype=object)[rows]
        found = np.ones(len(expected), dtype=bool) if mask is None else mask
        assert found.tolist() == [r is None for r in expected.tolist()]
        rejected = np.arange(len(wanted), dtype=np.intp)[rows][~found]
        distinct, index = plugin.explain_all(state, pod, snapshot, rejected)
        assert [distinct[i].message() for i in index.tolist()] == [r for r in expected.tolist() if r]


def check_scores(plugin: InterPodAffinity, model: Model, pod: PodInfo, snapshot: Snapshot) -> None:
    wanted = [model.score(pod.pod, model.nodes[node.name]) for node in snapshot.nodes]
    rows = np.arange(len(wanted), dtype=np.intp)
    state = CycleState()
    status = plugin.pre_score(state, pod, snapshot, rows)
    if status is not None:
        assert status.is_skip
        assert set(wanted) <= {0}
        return
    found = plugin.score_all(state, pod, snapshot, rows)
    assert found.tolist() == wanted
    normal = plugin.normalize(state, pod, found).tolist()
    low, high = min(wanted), max(wanted)
    assert normal == [int(100.0 * ((w - low) / float(high - low))) if high > low else 0 for w in wanted]


class ChangingCluster(RuleBasedStateMachine):
    """Nodes and pods come, change and go; one snapshot follows, whose derived counts must stay right."""

    @initialize(data=st.data(), args=ARGS, version=VERSIONS)
    def start(self, data: st.DataObject, args: dict[str, Any], version: Version) -> None:
        self.cache, self.snapshot = Cache(), Snapshot()
        self.bound: dict[str, PodInfo] = {}
        self.nodes: set[str] = set()
        self.args, self.version = args, version
        self.plugin = plugin_of(self.snapshot, args, version)
        self.pending = [PodInfo(data.draw(affinity_model.pods(f"q{i}"))) for i in range(3)]
        for name in NODES[:3]:
            self.set_node(data, name)

    @rule(data=st.data(), name=st.sampled_from(NODES))
    def set_node(self, data: st.DataObject, name: str) -> None:
        self.cache.put_node(data.draw(affinity_model.nodes(name)))
        self.nodes.add(name)

    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        if self.nodes:
            name = data.draw(st.sampled_from(sorted(self.nodes)))
            self.nodes.discard(name)
            self.cache.remove_node(name)

    @rule(data=st.data(), index=st.integers(0, 7))
    def set_pod(self, data: st.DataObject, index: int) -> None:
        name = f"p{index}"
        known = self.bound.get(name)
        node = data.draw(st.sampled_from(NODES)) if known is None else known.pod.spec.nodeName
        pod = PodInfo(data.draw(affinity_model.pods(name, node)))
        if known is None:
            self.cache.add_pod(pod)
        else:
            self.cache.update_pod(pod)
        self.bound[name] = pod

    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        if self.bound:
            self.cache.remove_pod(self.bound.pop(data.draw(st.sampled_from(sorted(self.bound)))))

    @invariant()
    def as_the_model_says(self) -> None:
        self.cache.update_snapshot(self.snapshot)
        model = model_of(self.snapshot, self.args, self.version)
        for pod in self.pending:
            check_filter(self.plugin, model, pod, self.snapshot)
            check_scores(self.plugin, model, pod, self.snapshot)

    def teardown(self) -> None:
        """What was counted for pods that are gone takes no room."""
        if not hasattr(self, "cache"):
            return
        for pod in self.bound.values():
            self.cache.remove_pod(pod)
        self.cache.update_snapshot(self.snapshot)
        present = self.snapshot.companion(ExistingTerms)
        present.follow(self.snapshot)
        assert not present.anti
        assert not present.scored


TestChangingCluster = ChangingCluster.TestCase
TestChangingCluster.settings = settings(max_examples=60, stateful_step_count=12, deadline=None)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_pods_that_come_and_go_in_a_simulation(data: st.DataObject) -> None:
    """AddPod and RemovePod lead where PreFilter on the changed nodes leads, and leave the original alone."""
    nodes = [data.draw(affinity_model.nodes(name)) for name in NODES[:4]]
    cache, snapshot = Cache(), Snapshot()
    placed = []
    for node in nodes:
        cache.put_node(node)
    for index in range(data.draw(st.integers(1, 5))):
        on = data.draw(st.sampled_from(NODES[:4]))
        pod = PodInfo(data.draw(affinity_model.pods(f"p{index}", on)))
        cache.add_pod(pod)
        placed.append((pod, on))
    cache.update_snapshot(snapshot)
    plugin = plugin_of(snapshot, {})
    pending = PodInfo(data.draw(affinity_model.pods("q")))
    original = CycleState()
    _, status = plugin.pre_filter(original, pending, snapshot)
    if status is not None:
        return
    before = rejections(plugin, original, pending, snapshot)
    state, extensions = original.clone(), plugin.pre_filter_extensions()
    assert extensions is not None
    changed = Snapshot([node.clone() for node in snapshot.nodes])
    for step in range(data.draw(st.integers(1, 4))):
        leaves = data.draw(st.booleans())
        if leaves and placed:
            pod, on = placed.pop(data.draw(st.integers(0, len(placed) - 1)))
            changed.remove_pod(pod.uid, on)
            extensions.remove_pod(state, pending, pod, changed.nodes[changed.row_of[on]])
        else:
            on = data.draw(st.sampled_from(NODES[:4]))
            pod = PodInfo(data.draw(affinity_model.pods(f"new{step}")))
            placed.append((pod, on))
            changed.add_pod(pod, on)
            extensions.add_pod(state, pending, pod, changed.nodes[changed.row_of[on]])
        model = model_of(changed, {}, V1_36)
        assert rejections(plugin, state, pending, changed) == [
            model.rejection(pending.pod, model.nodes[node.name]) for node in changed.nodes
        ]
    assert rejections(plugin, original, pending, snapshot) == before


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_forks_are_followed(data: st.DataObject) -> None:
    """A snapshot that is forked, changed and reverted gives the verdicts of its present state."""
    snapshot = Snapshot()
    plugin = plugin_of(snapshot, {})
    cache = Cache()
    for name in NODES[:3]:
        cache.put_node(data.draw(affinity_model.nodes(name)))
    cache.add_pod(PodInfo(data.draw(affinity_model.pods("p0", "n0"))))
    cache.update_snapshot(snapshot)
    pending = PodInfo(data.draw(affinity_model.pods("q")))

    def check() -> None:
        model = model_of(snapshot, {}, V1_36)
        check_filter(plugin, model, pending, snapshot)
        check_scores(plugin, model, pending, snapshot)

    check()
    snapshot.fork()
    snapshot.add_pod(PodInfo(data.draw(affinity_model.pods("p1"))), "n1")
    check()
    snapshot.fork()
    snapshot.remove_node("n0")
    check()
    snapshot.revert()
    check()
    snapshot.remove_pod("uid-p0", "n0")
    check()
    snapshot.revert()
    check()


@pytest.mark.parametrize("weight", [-1, 101])
def test_hard_weight_out_of_range(weight: int) -> None:
    with pytest.raises(ArgumentError) as caught:
        plugin_of(Snapshot(), {"hardPodAffinityWeight": weight})
    assert caught.value.path == "hardPodAffinityWeight"
    assert caught.value.message == f"Invalid value: {weight}: not in valid range [0-100]"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("hardPodAffinityWeight", "5", "expected an integer"),
        ("hardPodAffinityWeight", True, "expected an integer"),
        ("ignorePreferredTermsOfExistingPods", 1, "expected a boolean"),
    ],
)
def test_arguments_of_the_wrong_type(name: str, value: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        plugin_of(Snapshot(), {name: value})
    assert (caught.value.path, caught.value.message) == (name, message)


def test_terms_that_cannot_be_parsed() -> None:
    pod = core.Pod()
    terms = pod.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution
    terms.add(topologyKey="zone").labelSelector.matchExpressions.add(key="a", operator="Near")
    snapshot = Snapshot()
    _, status = plugin_of(snapshot, {}).pre_filter(CycleState(), PodInfo(pod), snapshot)
    assert status is not None
    assert status.code.name == "UnschedulableAndUnresolvable"
    assert status.message() == (
        'parsing pod: requiredAffinityTerms: "Near" is not a valid label selector operator'
    )


@pytest.mark.parametrize(
    ("version", "expression", "rejected"),
    [
        (Version(1, 33), {"operator": "NotIn", "values": ["a"]}, False),
        (V1_36, {"operator": "NotIn", "values": ["a"]}, True),
        (V1_36, {"operator": "In", "values": ["b"]}, False),
        (V1_36, {"operator": "In", "values": ["a"]}, True),
    ],
)
def test_negative_namespace_selectors(version: Version, expression: dict[str, Any], rejected: bool) -> None:
    """Since 1.34 a term that excludes a namespace means its pods all the same (kubernetes#141526)."""
    term = {
        "topologyKey": "host",
        "labelSelector": {},
        "namespaceSelector": {"matchExpressions": [{"key": "team", **expression}]},
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    node = codec.from_json(core.Node, {"metadata": {"name": "n0", "labels": {"host": "n0"}}})
    info = NodeInfo("n0", node)
    info.add_pod(builders.pod("there", on="n0"))
    snapshot, pending, state = Snapshot([info]), builders.pod("q", affinity=affinity), CycleState()
    plugin = plugin_of(snapshot, {}, version)
    _, status = plugin.pre_filter(state, pending, snapshot)
    assert status is None
    assert (plugin.filter(state, pending, info) is not None) == rejected


NEAR = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}]}}  # fmt: skip


def test_without_terms_nothing_is_evaluated() -> None:
    """A plain pod skips the plugin, and an existing pod's affinity counts in scores only."""
    info = NodeInfo("n0", codec.from_json(core.Node, {"metadata": {"name": "n0", "labels": {"zone": "z"}}}))
    info.add_pod(builders.pod("plain", on="n0"))
    snapshot = Snapshot([info])
    plugin, pending, rows = plugin_of(snapshot, {}), builders.pod("q"), np.arange(1, dtype=np.intp)
    pending.pod.metadata.labels["app"] = "a"

    def skips() -> tuple[bool, bool]:
        _, filtering = plugin.pre_filter(CycleState(), pending, snapshot)
        scoring = plugin.pre_score(CycleState(), pending, snapshot, rows)
        return (
            filtering is not None and filtering.is_skip,
            scoring is not None and scoring.is_skip,
        )

    assert skips() == (True, True)
    snapshot.add_pod(builders.pod("near", on="n0", affinity=NEAR), "n0")
    assert skips() == (True, False)
    snapshot.remove_pod("uid-near", "n0")
    assert skips() == (True, True)
