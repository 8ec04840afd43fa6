"""On the hot path no in-tree plugin looks at nodes one by one."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.scheduling.algorithm import schedule_pod
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from tests.scheduler.builders import desk, node, pod


@pytest.fixture
def columns_only(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A framework of 300 nodes whose plugins reject to look at a single one."""
    on = desk(without=("DefaultPreemption",))
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    on.add_nodes(*(node(f"n{i}", taints=[taint] if i % 3 == 0 else []) for i in range(300)))
    on.cache.update_snapshot(on.framework.snapshot)

    def reject(*_: Any) -> None:
        pytest.fail("a node was looked at by itself")

    for filtering in on.framework.filter_plugins:
        monkeypatch.setattr(filtering, "filter", reject)
    for scoring in on.framework.score_plugins:
        monkeypatch.setattr(scoring, "score", reject)
    return on.framework


BUSY: dict[str, Any] = {
    "nodeSelector": {"kubernetes.io/hostname": "n7"},
    "containers": [
        {"name": "c", "image": "web", "ports": [{"containerPort": 80, "hostPort": 80}],
         "resources": {"requests": {"cpu": "1"}}}
    ],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}]}},
}  # fmt: skip


@pytest.mark.parametrize("spec", [{}, BUSY], ids=["plain", "busy"])
def test_scheduling(columns_only: Any, spec: dict[str, Any]) -> None:
    snapshot, rng = columns_only.snapshot, columns_only.rng
    result = schedule_pod(columns_only, CycleState(), pod("a", **spec), snapshot, rng=rng)
    assert result.node_name == ("n7" if spec else result.node_name)


def test_explain(columns_only: Any) -> None:
    snapshot, rng = columns_only.snapshot, columns_only.rng
    with pytest.raises(FitError) as caught:
        schedule_pod(columns_only, CycleState(), pod("big", cpu="5"), snapshot, rng=rng)
    assert str(caught.value) == (
        "0/300 nodes are available: 100 node(s) had untolerated taint(s), 200 Insufficient cpu."
    )
