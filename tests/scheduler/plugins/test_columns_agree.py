"""A plugin gives the same verdicts and reasons for many nodes at once as for one, and the model's scores."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import FilterPlugin
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.runtime.environment import Environment
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.profile import ExtensionPoint, Profile
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.registry import DEFAULT_PLUGINS, IN_TREE, default_profile
from tests.scheduler.clusters import clusters
from tests.scheduler.plugins.score_model import model

_STRATEGIES: list[dict[str, Any]] = [
    {},
    {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}},
    {
        "NodeResourcesFit": {
            "ignoredResources": ["example.com/gpu"],
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": [{"name": "cpu", "weight": 3}, {"name": "example.com/gpu", "weight": 2}],
                "requestedToCapacityRatio": {
                    "shape": [{"utilization": 0, "score": 7}, {"utilization": 60, "score": 1}]
                },
            },
        },
        "NodeResourcesBalancedAllocation": {
            "resources": [{"name": "cpu"}, {"name": "memory"}, {"name": "example.com/gpu"}]
        },
        "NodeAffinity": {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 5,
                        "preference": {
                            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]
                        },
                    }
                ],
            }
        },
    },
]


def framework_of(
    nodes: list[core.Node], pods: list[core.Pod], args: dict[str, Any], version: Version
) -> Framework:
    cache, snapshot = Cache(), Snapshot()
    for node in nodes:
        cache.put_node(node)
    for pod in pods:
        cache.add_pod(PodInfo(pod))
    cache.update_snapshot(snapshot)
    environment = Environment(
        snapshot=snapshot,
        nominator=Nominator(),
        gates=Gates("scheduler", version),
        version=version,
        clock=FakeClock(),
        rng=random.Random(0),
    )
    profile = Profile(points=default_profile().points, args=args)
    return Framework(profile, IN_TREE, environment)


@pytest.mark.parametrize("args", _STRATEGIES, ids=["default", "most", "ratio"])
@settings(max_examples=40, deadline=None)
@given(
    cluster=clusters(),
    shape=st.sampled_from(("slice", "indices", "first", "rest")),
    version=st.sampled_from((Version(1, 35), Version(1, 36))),
)
def test_filters_agree(
    cluster: tuple[list[core.Node], list[core.Pod], core.Pod],
    shape: str,
    version: Version,
    args: dict[str, Any],
) -> None:
    nodes, pods, pending = cluster
    framework = framework_of(nodes, pods, args, version)
    snapshot, pod, state = framework.snapshot, PodInfo(pending), CycleState()
    _, status, _ = framework.run_pre_filter_plugins(state, pod, snapshot)
    if status is not None:
        return
    size = len(snapshot)
    rows: Any = {
        "slice": slice(0, size),
        "indices": np.arange(size, dtype=np.intp),
        "first": slice(0, 1),
        "rest": slice(1, size),
    }[shape]
    chosen = np.arange(size, dtype=np.intp)[rows]
    for plugin in framework.filter_plugins:
        if plugin.name in state.skip_filter_plugins:
            continue
        statuses = [plugin.filter(state, pod, snapshot.nodes[row]) for row in chosen.tolist()]
        mask = plugin.filter_all(state, pod, snapshot, rows)
        found = np.ones(len(chosen), dtype=bool) if mask is None else mask
        assert found.tolist() == [s is None for s in statuses], plugin.name
        rejected = chosen[~found]
        if len(rejected):
            distinct, index = plugin.explain_all(state, pod, snapshot, rejected)
            assert [distinct[i] for i in index.tolist()] == [s for s in statuses if s is not None]


@pytest.mark.parametrize("args", _STRATEGIES, ids=["default", "most", "ratio"])
@settings(max_examples=40, deadline=None)
@given(cluster=clusters(), version=st.sampled_from((Version(1, 35), Version(1, 36))))
def test_scores_are_as_the_model_says(
    cluster: tuple[list[core.Node], list[core.Pod], core.Pod], version: Version, args: dict[str, Any]
) -> None:
    nodes, pods, pending = cluster
    framework = framework_of(nodes, pods, args, version)
    snapshot, pod, state = framework.snapshot, PodInfo(pending), CycleState()
    rows = np.arange(len(snapshot), dtype=np.intp)[::-1]
    scorers = model(args, snapshot, version)
    status = framework.run_pre_score_plugins(state, pod, snapshot, rows)
    if status is not None:
        assert "NodeAffinity" in status.message()  # a preference that cannot be understood is an error
        return
    for plugin in framework.score_plugins:
        if plugin.name in state.skip_score_plugins:
            continue
        scores = plugin.score_all(state, pod, snapshot, rows)
        if plugin.name in scorers:
            score = scorers[plugin.name]
            assert scores.tolist() == [score(pod, snapshot.nodes[row]) for row in rows.tolist()], plugin.name
        normal = plugin.normalize(state, pod, scores)
        assert all(0 <= score <= 100 for score in normal.tolist()), plugin.name


def test_every_scoring_plugin_has_a_weight() -> None:
    weights = {e.name: e.weight for e in DEFAULT_PLUGINS}
    scoring = default_profile().points[ExtensionPoint.SCORE]
    assert {e.name: e.weight for e in scoring} == {e.name: weights[e.name] for e in scoring}
    assert weights["TaintToleration"] == 3


def _rejects(cluster: tuple[list[core.Node], list[core.Pod], core.Pod], name: str) -> bool:
    """Whether the plugin is asked about the cluster, and rejects a node but not all."""
    nodes, pods, pending = cluster
    framework = framework_of(nodes, pods, {}, Version(1, 36))
    snapshot, pod, state = framework.snapshot, PodInfo(pending), CycleState()
    _, status, _ = framework.run_pre_filter_plugins(state, pod, snapshot)
    if status is not None or name in state.skip_filter_plugins:
        return False
    plugin = framework.plugins[name]
    assert isinstance(plugin, FilterPlugin)
    mask = plugin.filter_all(state, pod, snapshot, slice(0, len(snapshot)))
    return mask is not None and 0 < int(mask.sum()) < len(mask)


# Plugins whose two forms other modules hold together, on clusters that give them work.
ELSEWHERE = {
    "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",  # test_volume_plugins
    "NodeDeclaredFeatures",  # test_node_declared_features
    "InterPodAffinity", "PodTopologySpread",  # test_inter_pod_affinity, test_pod_topology_spread
}  # fmt: skip
TWO_FORMS = sorted(
    name
    for name, plugin in IN_TREE.items()
    if issubclass(plugin, FilterPlugin) and plugin.filter_all is not FilterPlugin.filter_all
)


@pytest.mark.parametrize("name", sorted(set(TWO_FORMS) - ELSEWHERE))
def test_the_clusters_give_every_plugin_with_two_forms_work(name: str) -> None:
    """Else the tests above would say nothing about it. NoSuchExample if there is no such cluster."""
    find(
        clusters(),
        lambda cluster: _rejects(cluster, name),
        settings=settings(max_examples=3000, deadline=None, phases=[Phase.generate]),
    )
