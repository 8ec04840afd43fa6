"""PodTopologySpread against a plain model that counts pods domain by domain, and what it leaves out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machinery.api import kinds
from machinery.api.pb import apps, core, meta
from machinery.api.selectors import LabelSelector
from machinery.scheduling.node_affinity import RequiredNodeAffinity
from machinery.scheduling.taints import find_untolerated
from machinery.wire import codec
from scheduler.framework.algorithm import schedule_pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.interface import Code
from scheduler.framework.profile import ArgumentError
from scheduler.framework.types import NodeInfo, PodInfo
from scheduler.plugins import pod_topology_spread
from scheduler.plugins.pod_topology_spread import PodTopologySpread
from scheduler.plugins.spread_constraints import HOSTNAME, ZONE
from tests.scheduler.builders import Desk, desk
from tests.scheduler.golden import ListLister

CROWDED = "node(s) didn't match pod topology spread constraints"
UNLABELLED = f"{CROWDED} (missing required label)"
LABELS: list[dict[str, str]] = [
    {},
    {"app": "a"},
    {"app": "b"},
    {"app": "a", "rev": "1"},
    {"app": "a", "rev": "2"},
]
TAINT = {"key": "gpu", "value": "x", "effect": "NoSchedule"}


def node_of(name: str, labels: Mapping[str, str], *, tainted: bool = False) -> core.Node:
    document = {
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"taints": [TAINT] if tainted else []},
        "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
    }
    return codec.from_json(core.Node, document)


def pod_of(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    namespace: str = "default",
    terminating: bool = False,
    owner: Mapping[str, Any] | None = None,
    on: str = "",
    **spec: Any,
) -> PodInfo:
    metadata: dict[str, Any] = {
        "name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": dict(labels or {}),
    }  # fmt: skip
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if owner is not None:
        metadata["ownerReferences"] = [{"controller": True, "uid": "u", **owner}]
    if on:
        spec["nodeName"] = on
    return PodInfo(codec.from_json(core.Pod, {"metadata": metadata, "spec": {"containers": [], **spec}}))


def constraint(
    key: str = "zone", *, skew: int = 1, hard: bool = True, select: Any = None, **more: Any
) -> dict[str, Any]:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "a"}} if select is None else select,
        **more,
    }


# The model


class Model:
    """As the documentation tells it, over lists."""

    def __init__(self, pod: PodInfo, nodes: list[NodeInfo]) -> None:
        self.pod = pod
        self.nodes = nodes

    def constraints(self, action: str) -> list[Any]:
        all_of = self.pod.pod.spec.topologySpreadConstraints
        return [each for each in all_of if each.whenUnsatisfiable == action]

    def selector(self, one: Any) -> LabelSelector:
        selector = LabelSelector.from_message(one.labelSelector if one.HasField("labelSelector") else None)
        labels = {k: self.pod.labels[k] for k in one.matchLabelKeys if k in self.pod.labels}
        return selector.adding(*LabelSelector.from_map(labels).requirements)

    def counts(self, one: Any, node: NodeInfo) -> bool:
        if one.nodeAffinityPolicy != "Ignore":
            required = RequiredNodeAffinity.of(self.pod.pod)
            if not required.matches(node.labels, node.name):
                return False
        taints = [core.Taint(key=k, value=v, effect=e) for k, v, e in node.taints]
        return one.nodeTaintsPolicy != "Honor" or not find_untolerated(taints, self.pod.pod.spec.tolerations)

    def pods_on(self, one: Any, node: NodeInfo) -> int:
        selector = self.selector(one)
        if selector.empty:
            return 0
        mine = [p for p in node.pods.values() if p.namespace == self.pod.namespace and not p.is_terminating]
        return sum(selector.matches(p.labels) for p in mine)

    def domains(self, one: Any, everywhere: list[Any]) -> dict[str, int]:
        found: dict[str, int] = {}
        for node in self.nodes:
            if all(each.topologyKey in node.labels for each in everywhere) and self.counts(one, node):
                value = node.labels[one.topologyKey]
                found[value] = found.get(value, 0) + self.pods_on(one, node)
        return found

    def rejection(self, node: NodeInfo) -> str | None:
        hard = self.constraints("DoNotSchedule")
        for one in hard:
            if one.topologyKey not in node.labels:
                return UNLABELLED
            domains = self.domains(one, hard)
            enough = len(domains) >= (one.minDomains if one.HasField("minDomains") else 1)
            lowest = min(domains.values()) if enough else 0
            own = int(self.selector(one).matches(self.pod.labels))
            if domains.get(node.labels[one.topologyKey], 0) + own - lowest > one.maxSkew:
                return CROWDED
        return None

    def scores(self, feasible: list[NodeInfo]) -> list[int]:
        soft = self.constraints("ScheduleAnyway")
        labelled = [n for n in feasible if all(each.topologyKey in n.labels for each in soft)]
        costs: dict[str, int] = {}
        for node in labelled:
            cost = 0.0
            for one in soft:
                if one.topologyKey == HOSTNAME:
                    size, count = len(labelled), self.pods_on(one, node)
                else:
                    size = len({n.labels[one.topologyKey] for n in labelled})
                    count = self.domains(one, soft).get(node.labels[one.topologyKey], 0)
                cost += count * math.log(size + 2) + (one.maxSkew - 1)
            costs[node.name] = math.floor(cost + 0.5)
        highest, lowest = max(costs.values(), default=0), min(costs.values(), default=0)
        return [
            0 if n.name not in costs
            else 100 * (highest + lowest - costs[n.name]) // highest if highest else 100
            for n in feasible
        ]  # fmt: skip


_SELECTS = st.sampled_from(
    (
        {"matchLabels": {"app": "a"}},
        {"matchLabels": {"app": "b"}},
        {"matchExpressions": [{"key": "rev", "operator": "DoesNotExist"}]},
        {},
    )
)


@st.composite
def constraint_documents(draw: st.DrawFn) -> list[dict[str, Any]]:
    found = []
    for key in draw(st.lists(st.sampled_from(("zone", "rack", HOSTNAME)), min_size=1, max_size=3)):
        hard = draw(st.booleans())
        more: dict[str, Any] = {}
        if hard and draw(st.booleans()):
            more["minDomains"] = draw(st.integers(1, 4))
        if draw(st.booleans()):
            more["matchLabelKeys"] = ["rev"]
        if draw(st.booleans()):
            more["nodeTaintsPolicy"] = draw(st.sampled_from(("Honor", "Ignore")))
        if draw(st.booleans()):
            more["nodeAffinityPolicy"] = draw(st.sampled_from(("Honor", "Ignore")))
        skew = draw(st.integers(1, 3))
        found.append(constraint(key, skew=skew, hard=hard, select=draw(_SELECTS), **more))
    return found


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Desk, PodInfo]:
    on = desk()
    names = [f"n{i}" for i in range(draw(st.integers(1, 6)))]
    for name in names:
        labels = {HOSTNAME: name} if draw(st.integers(0, 4)) else {}
        for key in ("zone", "rack"):
            value = draw(st.sampled_from(("x", "y", "z", "", None)))
            if value is not None:
                labels[key] = value
        on.add_nodes(node_of(name, labels, tainted=draw(st.booleans())))
    for index in range(draw(st.integers(0, 8))):
        on.cache.add_pod(some_pod(draw, f"p{index}", draw(st.sampled_from(names))))
    spec: dict[str, Any] = {"topologySpreadConstraints": draw(constraint_documents())}
    if draw(st.booleans()):
        spec["nodeSelector"] = {"zone": draw(st.sampled_from("xy"))}
    if draw(st.booleans()):
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    on.cache.update_snapshot(on.framework.snapshot)
    return on, pod_of("pending", labels=draw(st.sampled_from(LABELS)), **spec)


def some_pod(draw: st.DrawFn, name: str, on: str = "") -> PodInfo:
    return pod_of(
        name,
        on=on,
        labels=draw(st.sampled_from(LABELS)),
        namespace=draw(st.sampled_from(("default", "default", "other"))),
        terminating=draw(st.integers(0, 4)) == 0,
    )


def plugin_of(on: Desk) -> PodTopologySpread:
    found = on.framework.plugins["PodTopologySpread"]
    assert isinstance(found, PodTopologySpread)
    return found


@settings(max_examples=150, deadline=None)
@given(world=worlds())
def test_filter_is_as_the_model_says(world: tuple[Desk, PodInfo]) -> None:
    on, pod = world
    plugin, state, snapshot = plugin_of(on), CycleState(), on.framework.snapshot
    model = Model(pod, snapshot.nodes)
    wanted = [model.rejection(node) for node in snapshot.nodes]
    _, status = plugin.pre_filter(state, pod, snapshot)
    if not model.constraints("DoNotSchedule"):
        assert status is not None
        assert status.is_skip
        return
    assert status is None
    one_by_one = [plugin.filter(state, pod, node) for node in snapshot.nodes]
    assert [None if each is None else each.reasons[0] for each in one_by_one] == wanted
    size = len(snapshot)
    for rows in (slice(0, size), np.arange(size)[::-1], slice(1, size)):
        chosen = np.arange(size)[rows]
        mask = plugin.filter_all(state, pod, snapshot, rows)
        assert mask is not None
        assert mask.tolist() == [wanted[row] is None for row in chosen.tolist()]
        rejected = chosen[~mask]
        if len(rejected):
            statuses, index = plugin.explain_all(state, pod, snapshot, rejected)
            assert [statuses[i] for i in index.tolist()] == [one_by_one[row] for row in rejected.tolist()]


@settings(max_examples=100, deadline=None)
@given(world=worlds(), data=st.data())
def test_a_simulation_follows_pods_of_one_node(world: tuple[Desk, PodInfo], data: st.DataObject) -> None:
    """Pods that come and go count, in a clone only, as if they had been there at first."""
    on, pod = world
    plugin, state, snapshot = plugin_of(on), CycleState(), on.framework.snapshot
    if plugin.pre_filter(state, pod, snapshot)[1] is not None:
        return
    before = [plugin.filter(state, pod, node) for node in snapshot.nodes]
    row = data.draw(st.integers(0, len(snapshot) - 1))
    node, clone = snapshot.nodes[row].clone(), state.clone()
    selected = [Model(pod, []).selector(one) for one in Model(pod, []).constraints("DoNotSchedule")]
    # What upstream counts one way at first and another way in a simulation is left out.
    if any(selector.empty for selector in selected):
        return
    for removed in [each for each in node.pods.values() if not each.is_terminating]:
        if data.draw(st.booleans()):
            node.remove_pod(removed.uid)
            plugin.remove_pod(clone, pod, removed, node)
    added = data.draw(st.builds(lambda labels: pod_of("added", labels=labels), st.sampled_from(LABELS)))
    node.add_pod(added)
    plugin.add_pod(clone, pod, added, node)
    nodes = [node if i == row else other for i, other in enumerate(snapshot.nodes)]
    model = Model(pod, nodes)
    found = [plugin.filter(clone, pod, each) for each in nodes]
    reasons = [None if each is None else each.reasons[0] for each in found]
    assert reasons == [model.rejection(node) for node in nodes]
    assert [plugin.filter(state, pod, each) for each in snapshot.nodes] == before


@settings(max_examples=150, deadline=None)
@given(world=worlds(), data=st.data())
def test_scores_are_as_the_model_says(world: tuple[Desk, PodInfo], data: st.DataObject) -> None:
    on, pod = world
    plugin, state, snapshot = plugin_of(on), CycleState(), on.framework.snapshot
    rows = np.array(data.draw(st.permutations(range(len(snapshot)))), dtype=np.intp)
    rows = rows[: data.draw(st.integers(1, len(rows)))]
    model = Model(pod, snapshot.nodes)
    status = plugin.pre_score(state, pod, snapshot, rows)
    if not model.constraints("ScheduleAnyway"):
        assert status is not None
        assert status.is_skip
        return
    assert status is None
    nodes = snapshot.nodes_at(rows)
    raw = plugin.score_all(state, pod, snapshot, rows)
    assert raw.tolist() == [plugin.score(state, pod, node) for node in nodes]
    assert plugin.normalize(state, pod, raw).tolist() == model.scores(nodes)


# Beside the model


def test_an_empty_selector_counts_in_a_simulation_only() -> None:
    """Upstream counts no pod for `{}` at first, yet takes off those that a preemption removes."""
    on = desk()
    on.add_nodes(node_of("n1", {"zone": "a"}), node_of("n2", {"zone": "b"}))
    other = pod_of("other", on="n1")
    on.cache.add_pod(other)
    snapshot = on.framework.snapshot
    on.cache.update_snapshot(snapshot)
    plugin, state = plugin_of(on), CycleState()
    pod = pod_of("p", topologySpreadConstraints=[constraint(select={})])
    plugin.pre_filter(state, pod, snapshot)
    first, second = snapshot.nodes
    assert [plugin.filter(state, pod, node) for node in (first, second)] == [None, None]
    plugin.remove_pod(state, pod, other, first)
    assert plugin.filter(state, pod, first) is None
    assert plugin.filter(state, pod, second) is not None


@pytest.mark.parametrize(("hard", "text"), [(True, "get constraints from pod"), (False, "calculating")])
def test_a_selector_that_cannot_be_read_is_an_error(hard: bool, text: str) -> None:
    on = desk()
    on.add_nodes(node_of("n1", {"zone": "a"}))
    snapshot = on.framework.snapshot
    on.cache.update_snapshot(snapshot)
    wrong = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    pod = pod_of("p", topologySpreadConstraints=[constraint(hard=hard, select=wrong)])
    plugin, state = plugin_of(on), CycleState()
    if hard:
        status = plugin.pre_filter(state, pod, snapshot)[1]
    else:
        status = plugin.pre_score(state, pod, snapshot, slice(0, 1))
    assert status is not None
    assert status.code is Code.Error
    assert status.message().startswith(text)


# Default constraints


def replica_set(name: str, labels: Mapping[str, str]) -> apps.ReplicaSet:
    return apps.ReplicaSet(
        metadata=meta.ObjectMeta(name=name, namespace="default"),
        spec=apps.ReplicaSetSpec(selector=meta.LabelSelector(matchLabels=labels)),
    )


def service(name: str, labels: Mapping[str, str], namespace: str = "default") -> core.Service:
    return core.Service(
        metadata=meta.ObjectMeta(name=name, namespace=namespace), spec=core.ServiceSpec(selector=labels)
    )


OWNED = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
BY_LIST = {"defaultingType": "List", "defaultConstraints": [{
    "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]}  # fmt: skip


def with_defaults(args: Mapping[str, Any], *objects: Any) -> tuple[Desk, PodTopologySpread]:
    """Three nodes, the third without a zone; two pods of app=a on the first, one on the second."""
    by_kind: dict[Any, list[Any]] = {}
    for obj in objects:
        by_kind.setdefault(kinds.of(obj), []).append(obj)
    on = desk(environment={"listers": {kind: ListLister(found) for kind, found in by_kind.items()}})
    for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "")):
        on.add_nodes(node_of(name, {HOSTNAME: name, **({ZONE: zone} if zone else {})}))
    for name, where in (("p1", "n1"), ("p2", "n1"), ("p3", "n2")):
        on.cache.add_pod(pod_of(name, on=where, labels={"app": "a"}))
    on.cache.update_snapshot(on.framework.snapshot)
    return on, PodTopologySpread(args, on.framework)


@pytest.mark.parametrize(
    ("objects", "owner", "scored"),
    [
        ((), None, False),
        ((service("s", {"app": "a"}),), None, True),
        ((service("s", {"app": "b"}),), None, False),
        ((service("s", {"app": "a"}, "other"),), None, False),
        ((service("s", {}),), None, False),
        ((replica_set("web", {"app": "a"}),), OWNED, True),
        ((replica_set("web", {"app": "a"}),), {**OWNED, "controller": False}, False),
        ((replica_set("other", {"app": "a"}),), OWNED, False),
        ((replica_set("web", {"app": "a"}),), {**OWNED, "apiVersion": "apps/v2"}, False),
        ((), {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}, False),
    ],
)
def test_the_systems_defaults_need_a_service_or_a_controller(
    objects: tuple[Any, ...], owner: Mapping[str, Any] | None, scored: bool
) -> None:
    on, plugin = with_defaults({}, *objects)
    snapshot, state = on.framework.snapshot, CycleState()
    pod = pod_of("p", labels={"app": "a"}, owner=owner)
    _, status = plugin.pre_filter(state, pod, snapshot)
    assert status is not None
    assert status.is_skip
    rows = np.arange(3)
    status = plugin.pre_score(state, pod, snapshot, rows)
    assert (status is None) == scored
    if scored:
        raw = plugin.score_all(state, pod, snapshot, rows)
        # Hosts: log 5 a pod and 2; zones, no zone being one too: log 5 a pod and 4, nothing without a zone.
        assert raw.tolist() == [round(4 * math.log(5) + 6), round(2 * math.log(5) + 6), 2]
        assert plugin.normalize(state, pod, raw).tolist() == [16, 41, 100]


def test_own_constraints_replace_the_defaults() -> None:
    on, plugin = with_defaults(BY_LIST, service("s", {"app": "a"}))
    pod = pod_of("p", labels={"app": "a"}, topologySpreadConstraints=[constraint(ZONE, hard=False)])
    _, status = plugin.pre_filter(CycleState(), pod, on.framework.snapshot)
    assert status is not None
    assert status.is_skip


def test_defaults_by_list_may_be_hard() -> None:
    on, plugin = with_defaults(
        BY_LIST, service("s", {"app": "a"}), replica_set("web", {"app": "a", "rev": "1"})
    )
    state, snapshot = CycleState(), on.framework.snapshot
    loose = pod_of("p", labels={"app": "a"})
    assert plugin.pre_filter(state, loose, snapshot)[1] is None
    found = [plugin.filter(state, loose, node) for node in snapshot.nodes]
    assert [None if each is None else each.reasons[0] for each in found] == [CROWDED, None, UNLABELLED]
    # The service's labels and the controller's: no pod has all of them yet.
    owned = pod_of("q", labels={"app": "a", "rev": "1"}, owner=OWNED)
    assert plugin.pre_filter(state, owned, snapshot)[1] is None
    assert [plugin.filter(state, owned, node) is None for node in snapshot.nodes] == [True, True, False]


def listed(**changes: Any) -> dict[str, Any]:
    one = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", **changes}
    return {"defaultingType": "List", "defaultConstraints": [one]}


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"defaultingType": "None"}, "defaultingType"),
        ({"defaultConstraints": listed()["defaultConstraints"]}, "defaultingType"),
        (listed(maxSkew=0), "defaultConstraints[0].maxSkew"),
        (listed(topologyKey=""), "defaultConstraints[0].topologyKey"),
        (listed(topologyKey="a b"), "defaultConstraints[0].topologyKey"),
        (listed(whenUnsatisfiable=""), "defaultConstraints[0].whenUnsatisfiable"),
        (listed(whenUnsatisfiable="Never"), "defaultConstraints[0].whenUnsatisfiable"),
        (listed(labelSelector={}), "defaultConstraints[0].labelSelector"),
        ({"defaultingType": "List", "defaultConstraints": listed()["defaultConstraints"] * 2},
         "defaultConstraints[1]"),
    ],
)  # fmt: skip
def test_arguments_that_are_rejected(args: dict[str, Any], path: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        PodTopologySpread(args, desk().framework)
    assert caught.value.path == path


def test_no_node_is_looked_at_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    on = desk()
    for index in range(200):
        on.add_nodes(node_of(f"n{index}", {HOSTNAME: f"n{index}", "zone": "abc"[index % 3]}))
    for index in range(4):
        on.cache.add_pod(pod_of(f"p{index}", on=f"n{index * 3 + index % 2}", labels={"app": "a"}))
    on.cache.update_snapshot(on.framework.snapshot)

    def reject(*_: Any) -> None:
        pytest.fail("a node was looked at by itself")

    plugin = plugin_of(on)
    monkeypatch.setattr(plugin, "filter", reject)
    monkeypatch.setattr(plugin, "score", reject)
    both = [constraint(), constraint(HOSTNAME, hard=False)]
    pod = pod_of("p", labels={"app": "a"}, topologySpreadConstraints=both)
    rng, snapshot = on.framework.rng, on.framework.snapshot
    result = schedule_pod(on.framework, CycleState(), pod, snapshot, rng=rng, percentage=100)
    assert snapshot.get(result.node_name) is not None
    assert int(result.node_name[1:]) % 3 == 2  # the zone without pods


def test_an_updated_pod_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_topology_spread, "KNOWN_MAX", 2)
    on = desk()
    on.add_nodes(node_of("n1", {"zone": "a"}))
    snapshot = on.framework.snapshot
    on.cache.update_snapshot(snapshot)
    plugin = plugin_of(on)

    def allowed(pod: PodInfo) -> bool:
        state = CycleState()
        assert plugin.pre_filter(state, pod, snapshot)[1] is None
        return plugin.filter(state, pod, snapshot.nodes[0]) is None

    for name in ("p", "q", "r"):
        assert allowed(pod_of(name, topologySpreadConstraints=[constraint()]))
        assert not allowed(pod_of(name, topologySpreadConstraints=[constraint("rack")]))
        assert len(plugin._known) <= 2
