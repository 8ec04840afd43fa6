"""Arguments of plugins: what is rejected, and where the fault is said to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nominee.scheduler.framework.runtime.profile import ArgumentError
from nominee.scheduler.plugins.node_resources.scoring import RequestedToCapacityRatio
from nominee.scheduler.plugins.registry import IN_TREE
from tests.scheduler.builders import desk


def by_ratio(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    ratio = {"shape": shape}
    return {"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": ratio}}


def scoring(**strategy: Any) -> dict[str, Any]:
    return {"scoringStrategy": strategy}


NEAR = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
ADDED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NEAR]}}
FIT, SHAPE = "NodeResourcesFit", "scoringStrategy.requestedToCapacityRatio.shape"


@pytest.mark.parametrize(
    ("plugin", "args", "path"),
    [
        (FIT, scoring(type="Best"), "scoringStrategy.type"),
        (FIT, scoring(resources=[{"name": "cpu", "weight": 101}]), "scoringStrategy.resources[0].weight"),
        (FIT, scoring(resources=[{"name": "pods"}]), "scoringStrategy.resources[0].name"),
        (FIT, scoring(resources=[{"name": "cpu"}, {"name": "cpu"}]), "scoringStrategy.resources[1]"),
        (FIT, scoring(type="RequestedToCapacityRatio"), SHAPE),
        (FIT, by_ratio((50, 1), (50, 2)), f"{SHAPE}[1].utilization"),
        (FIT, by_ratio((101, 1)), f"{SHAPE}[0].utilization"),
        (FIT, by_ratio((50, 11)), f"{SHAPE}[0].score"),
        (FIT, {"ignoredResourceGroups": ["example.com/gpu"]}, "ignoredResourceGroups[0]"),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}]},
            "resources[0].weight",
        ),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 101}, "minCandidateNodesPercentage"),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute"),
        (
            "DefaultPreemption",
            {"minCandidateNodesAbsolute": 0, "minCandidateNodesPercentage": 0},
            "minCandidateNodesPercentage",
        ),
        ("VolumeBinding", {"bindTimeoutSeconds": -1}, "bindTimeoutSeconds"),
        ("NodeAffinity", {"addedAffinity": ADDED}, "addedAffinity"),
    ],
)
def test_rejected(plugin: str, args: dict[str, Any], path: str) -> None:
    factory: Any = IN_TREE[plugin]
    with pytest.raises(ArgumentError) as caught:
        factory(args, desk().framework)
    assert caught.value.path == path


def test_a_bent_line_rounds_towards_zero_as_go_does() -> None:
    falling = RequestedToCapacityRatio((1,), [(0, 10), (70, 3), (100, 0)])
    used = np.array([0, 1, 35, 70, 85, 100, 150])
    assert falling.scores([used], [np.full_like(used, 100)]).tolist() == [100, 99, 65, 30, 15, 0, 0]
