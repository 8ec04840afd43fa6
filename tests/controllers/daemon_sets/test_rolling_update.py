"""The pods that a rolling update replaces."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.controllers.daemon_sets.placement import Placement
from nominee.controllers.daemon_sets.rolling_update import plan_update
from nominee.machinery.api.pb import core
from tests.controllers.daemon_sets.builders import KEEPS, OLD, RUNS, daemon, daemon_set, placement


def _plan(at: Placement) -> tuple[list[str], list[str]]:
    work = plan_update(at)
    return sorted(work.create), sorted(each.metadata.name for each in work.delete)


def _old(number: int, *, ready: bool = True) -> core.Pod:
    return daemon(f"old{number}", f"n{number}", of=OLD, ready=ready)


def _new(number: int, *, ready: bool = True, **more: Any) -> core.Pod:
    return daemon(f"new{number}", f"n{number}", ready=ready, **more)


ALL_OLD = [_old(1), _old(2), _old(3)]


@pytest.mark.parametrize(
    ("unavailable", "pods", "deleted"),
    [
        (1, ALL_OLD, ["old1"]),
        (2, ALL_OLD, ["old1", "old2"]),
        ("34%", ALL_OLD, ["old1", "old2"]),  # rounded up
        ("100%", ALL_OLD, ["old1", "old2", "old3"]),
        (1, [_new(1), _old(2), _old(3)], ["old2"]),
        (1, [_new(1, ready=False), _old(2), _old(3)], []),
        (2, [_new(1, ready=False), _old(2), _old(3)], ["old2"]),
        (1, [_old(2), _old(3)], []),  # n1 has none: it is unavailable
        (1, [_old(1), _old(2, ready=False), _old(3)], ["old2"]),  # unavailable ones first
        (2, [_old(1), _old(2, ready=False), _old(3)], ["old1", "old2"]),
        (1, [_old(1, ready=False), _old(2, ready=False), _old(3)], ["old1", "old2"]),
        (1, [_old(1), _new(1), _old(2), _old(3)], []),  # two on a node: placing deletes one
        (1, [_new(1), _new(2), _new(3)], []),
    ],
)
def test_without_surge_old_pods_are_deleted(
    unavailable: int | str, pods: list[core.Pod], deleted: list[str]
) -> None:
    assert _plan(placement(daemon_set(unavailable=unavailable), *pods)) == ([], deleted)


@pytest.mark.parametrize(
    ("surge", "pods", "created", "deleted"),
    [
        (1, ALL_OLD, ["n1"], []),
        ("50%", ALL_OLD, ["n1", "n2"], []),
        (1, [*ALL_OLD, _new(1, ready=False)], [], []),
        (1, [*ALL_OLD, _new(1)], ["n2"], ["old1"]),
        (1, [_old(1), _old(2, ready=False), _old(3)], ["n1", "n2"], []),  # that one costs nothing
        (1, [_old(1), _old(2), _new(3), daemon("more", "n3")], [], []),
        (1, [_new(1), _new(2), _new(3)], [], []),
    ],
)
def test_with_surge_new_pods_come_first(
    surge: int | str, pods: list[core.Pod], created: list[str], deleted: list[str]
) -> None:
    assert _plan(placement(daemon_set(surge=surge, unavailable=0), *pods)) == (created, deleted)


def test_an_old_pod_on_a_node_that_should_have_none_goes_when_enough_are_available() -> None:
    owner, nodes = daemon_set(surge=1, unavailable=0), {"n1": KEEPS, "n2": RUNS}
    assert _plan(placement(owner, _old(1), _new(2, ready=False), nodes=nodes)) == ([], [])
    assert _plan(placement(owner, _old(1), _new(2), nodes=nodes)) == ([], ["old1"])
    assert _plan(placement(owner, _old(1, ready=False), _new(2, ready=False), nodes=nodes)) == ([], ["old1"])


def test_a_pod_that_became_ready_a_moment_ago_is_not_available_yet() -> None:
    owner = daemon_set(min_ready_seconds=30)
    pods = [_new(1, ready_since=980), _old(2), _old(3)]
    assert _plan(placement(owner, *pods)) == ([], [])
    assert _plan(placement(owner, *pods, now=1010)) == ([], ["old2"])


def test_on_delete_nothing_is_replaced() -> None:
    assert _plan(placement(daemon_set(on_delete=True), *ALL_OLD)) == ([], [])


def test_a_percentage_of_no_nodes_replaces_nothing() -> None:
    assert _plan(placement(daemon_set(unavailable="10%"), _old(1), nodes={"n1": KEEPS})) == ([], [])
    assert _plan(placement(daemon_set(unavailable=1), _old(1), nodes={"n1": KEEPS})) == ([], ["old1"])
