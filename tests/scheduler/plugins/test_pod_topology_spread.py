"""PodTopologySpread against the model, and errors, loops and parsing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code
from nominee.scheduler.framework.scheduling.algorithm import schedule_pod
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.pod_topology_spread import PodTopologySpread
from nominee.scheduler.plugins.pod_topology_spread import plugin as plugin_module
from nominee.scheduler.plugins.pod_topology_spread.constraints import HOSTNAME
from tests.scheduler.builders import Desk, desk
from tests.scheduler.plugins.spread_model import (
    LABELS,
    Model,
    constraint,
    node_of,
    pod_of,
)

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


def test_no_node_is_filtered_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_an_updated_pod_is_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_module, "KNOWN_MAX", 2)
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
