"""A plugin from outside that returns True in place of a status is named, with the method and the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    FilterError,
    FilterPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    Status,
)
from nominee.scheduler.framework.runtime.framework import Framework
from tests.scheduler.builders import UNREAD, Scripted, desk, node, pod
from tests.scheduler.performing import binding_plugins

YES: Any = True
A, N = pod("a"), "n1"


class Yes(PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, PreScorePlugin, Scripted):
    """Returns True everywhere."""

    def __init__(self, *, extends: bool = False) -> None:
        super().__init__("Yes", YES, (YES, 0.0), (YES, False), YES, YES, (None, YES))
        self.extends = extends

    def pre_enqueue(self, *_: object) -> Any:
        return YES

    def pre_filter(self, *_: object) -> tuple[None, Status | None]:
        return None, None if self.extends else YES

    def pre_filter_extensions(self) -> Any:
        return self if self.extends else None

    def add_pod(self, *_: object) -> Any:
        return YES

    def filter(self, *_: object) -> Any:
        return YES

    def pre_score(self, *_: object) -> Any:
        return YES


def framework(plugin: Yes) -> Framework:
    prepared = desk(plugin)
    prepared.add_nodes(node("n1"), node("n2"))
    prepared.cache.update_snapshot(prepared.framework.snapshot)
    return prepared.framework


def check(status: Status | None, method: str, *, named: bool = True) -> None:
    assert status is not None
    assert status.code is Code.Error
    assert status.plugin == "Yes"
    (text,) = status.reasons
    assert ('"Yes"' in text) == named
    assert text.endswith(f"TypeError: {method} returned True (bool); expected None or a Status")


@pytest.mark.parametrize(
    ("method", "run"),
    [
        ("pre_enqueue", lambda f, s: f.run_pre_enqueue_plugins(A)),
        ("pre_filter", lambda f, s: f.run_pre_filter_plugins(s, A, f.snapshot)[1]),
        ("filter", lambda f, s: f.run_filter_plugins(s, A, f.snapshot.nodes[0])),
        ("pre_score", lambda f, s: f.run_pre_score_plugins(s, A, f.snapshot, np.arange(2))),
        ("reserve", lambda f, s: f.run_reserve_plugins(s, A, N)),
        ("permit", lambda f, s: f.run_permit_plugins(s, A, N)[0]),
        ("pre_bind_pre_flight", lambda f, s: f.run_pre_bind_pre_flights(s, A, N)),
    ],
)
def test_at_an_extension_point(method: str, run: Callable[[Framework, CycleState], Status | None]) -> None:
    check(run(framework(Yes()), CycleState()), method)


def test_in_post_filter() -> None:
    _, status = framework(Yes()).run_post_filter_plugins(CycleState(), A, UNREAD)
    check(status, "post_filter", named=False)  # the event's text, as upstream's, has the reasons alone


def test_where_filter_is_called_for_many_nodes() -> None:
    found = framework(Yes())
    with pytest.raises(FilterError, match='running "Yes" filter plugin: TypeError: filter returned True'):
        found.filter_rows(CycleState(), A, found.snapshot, slice(0, 2))


def test_in_a_simulation_of_preemption() -> None:
    found = framework(Yes(extends=True))
    status = found.run_pre_filter_extension_add_pod(CycleState(), A, pod("b"), found.snapshot.nodes[0])
    check(status, "AddPod")


@pytest.mark.parametrize(
    ("method", "run"),
    [
        ("pre_bind", lambda f, s: binding_plugins(f).pre_bind(f, s, A, N)),
        ("bind", lambda f, s: binding_plugins(f).bind(f, s, A, N)),
    ],
)
async def test_where_a_pod_is_bound(
    method: str, run: Callable[[Framework, CycleState], Awaitable[Status | None]]
) -> None:
    check(await run(framework(Yes()), CycleState()), method)
