"""Containers that restart for a change of pod-level limits. Source: KEP-5419, "Resize Restart Policy"."""

from __future__ import annotations

import pytest

from kubelet.resize.actuation import ContainerResize, changed_limits, plan
from kubelet.resources.requirements import EMPTY, Requirements

OLD = Requirements.from_json({"limits": {"cpu": "200m", "memory": "200Mi"}})


@pytest.mark.parametrize(
    ("actuated", "allocated", "want"),
    [
        (OLD, OLD, set()),
        (OLD, Requirements.from_json({"limits": {"cpu": "0.2", "memory": "400Mi"}}), {"memory"}),
        (None, OLD, {"cpu", "memory"}),
        (OLD, None, {"cpu", "memory"}),
        (OLD, Requirements.from_json({"requests": {"cpu": "1"}, "limits": {"memory": "200Mi"}}), {"cpu"}),
        (None, Requirements.from_json({"requests": {"cpu": "1"}}), set()),
    ],
)
def test_changed_limits(
    actuated: Requirements | None, allocated: Requirements | None, want: set[str]
) -> None:
    assert changed_limits(actuated, allocated) == want


@pytest.mark.parametrize(
    ("inherits", "restart_for", "running", "restart"),
    [
        ({"memory"}, {"memory"}, True, ("a",)),
        ({"memory"}, {"cpu"}, True, ()),
        ({"cpu", "memory"}, {"cpu"}, True, ("a",)),
        (set(), {"cpu", "memory"}, True, ()),
        ({"memory"}, {"memory"}, False, ()),
    ],
)
def test_a_container_restarts_where_its_policy_asks_for_it_and_its_inherited_limit_changes(
    inherits: set[str], restart_for: set[str], running: bool, restart: tuple[str, ...]
) -> None:
    one = ContainerResize(
        name="a",
        actuated=EMPTY,
        allocated=EMPTY,
        inherits=frozenset(inherits),
        restart_for=frozenset(restart_for),
        running=running,
    )
    assert plan([one]).restart == restart
