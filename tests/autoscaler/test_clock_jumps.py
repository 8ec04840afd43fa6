"""Jumps of the wall clock: what the autoscaler times itself takes as long as without one, as upstream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nominee.autoscaler.options import Compat
from nominee.autoscaler.result import LoopResult
from nominee.machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import autoscaler, new_world, node, pod
from tests.autoscaler.harness import Harness
from tests.autoscaler.world import World

DAY_SECONDS = 86_400.0
Check = Callable[[Harness, LoopResult], bool]


def jump(clock: FakeClock, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the wall clock jump; `clock.monotonic` is as before."""
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + seconds)


def empty_node(*, ready: bool = True) -> World:
    world = new_world(FakeClock(), target=1)
    node(world, "n1", ready=ready)
    return world


def full_node() -> World:
    """Return a world in which a pending pod needs a second node."""
    world = empty_node()
    pod(world, "full", "1900m", on="n1")
    pod(world, "waits", "1500m", unschedulable=True)
    return world


def refusing() -> World:
    world = full_node()
    world.fail_increase = ["ng1"]
    return world


def nominated() -> World:
    world = new_world(FakeClock(), target=2)
    node(world, "n1")
    node(world, "n2")
    pod(world, "busy", "1200m", on="n2")
    pod(world, "binding", "500m", nominated="n1")
    return world


def unregistered() -> World:
    world = new_world(FakeClock(), target=2)
    node(world, "n1")
    pod(world, "full", "1900m", on="n1")
    world.extra_instances["ng1"] = ["m2"]
    return world


def deleting(it: Harness, result: LoopResult) -> bool:
    return result.empty == ["n1"]


def warm(it: Harness, result: LoopResult) -> bool:
    return not result.in_cooldown


def backed_off(it: Harness, result: LoopResult) -> bool:
    return it.state.registry.backoff.status("ng1", it.state.clock.monotonic()) is None


def timed_out(it: Harness, result: LoopResult) -> bool:
    return "ng1" not in it.state.registry.scale_ups.requests


def removed(it: Harness, result: LoopResult) -> bool:
    return any(event.reason == "DeleteUnregistered" for event in result.events)


def unneeded(it: Harness, result: LoopResult) -> bool:
    return it.state.planner.unneeded_names() == ["n1"]


@pytest.mark.parametrize("jump_seconds", [-DAY_SECONDS, DAY_SECONDS])
@pytest.mark.parametrize(
    ("world", "compat", "flags", "seconds", "is_over"),
    [
        pytest.param(empty_node, Compat.V1_36, {}, 60.0, deleting, id="unneeded time"),
        pytest.param(
            lambda: empty_node(ready=False),
            Compat.V1_36,
            {"scale_down_unready_time": 100.0},
            100.0,
            deleting,
            id="unready time",
        ),
        pytest.param(full_node, Compat.V1_36, {}, 600.0, warm, id="delay after add"),
        pytest.param(refusing, Compat.V1_36, {}, 300.0, backed_off, id="back-off"),
        pytest.param(full_node, Compat.V1_36, {}, 900.0, timed_out, id="provision time of a request"),
        pytest.param(unregistered, Compat.V1_36, {}, 900.0, removed, id="provision time of an instance"),
        pytest.param(
            nominated, Compat.FIXED, {"nomination_timeout": 100.0}, 100.0, unneeded, id="nomination timeout"
        ),
    ],
)
async def test_a_limit_of_time(
    world: Callable[[], World],
    compat: Compat,
    flags: dict[str, Any],
    seconds: float,
    is_over: Check,
    jump_seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = world()
    it = autoscaler(here, compat, **flags)
    assert not is_over(it, await it.run_once())
    here.pods.pop(("default", "waits"), None)
    jump(here.clock, jump_seconds, monkeypatch)
    for advance, want in ((seconds - 1.0, False), (2.0, True)):
        await here.clock.advance(advance)
        assert is_over(it, await it.run_once()) is want


@pytest.mark.parametrize("jump_seconds", [-DAY_SECONDS, DAY_SECONDS])
@pytest.mark.parametrize("delay", ["scale_down_delay_after_failure", "scale_down_delay_after_delete"])
async def test_the_delay_after_a_deletion(
    delay: str, jump_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deletion that failed, and one that has started."""
    here = empty_node()
    here.fail_taint = ["n1"] if delay == "scale_down_delay_after_failure" else []
    flags: dict[str, Any] = {delay: 200.0}
    it = autoscaler(here, Compat.V1_36, **flags)
    await it.run_once()
    await here.clock.advance(61.0)
    await it.run_once()
    jump(here.clock, jump_seconds, monkeypatch)
    for advance, want in ((199.0, True), (2.0, False)):
        await here.clock.advance(advance)
        assert (await it.run_once()).in_cooldown is want


@pytest.mark.parametrize("jump_seconds", [-DAY_SECONDS, DAY_SECONDS])
async def test_what_is_compared_with_time_stamps_of_the_api_jumps(
    jump_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The age of a node that is not ready is its creationTimestamp's; it starts, or it is unready."""
    here = new_world(FakeClock(), target=1)
    node(here, "n1", ready=False, age=800.0 if jump_seconds > 0 else 1000.0)
    it = autoscaler(here, Compat.V1_36)
    await it.run_once()
    readiness = it.state.registry.total_readiness
    before = (readiness.not_started, readiness.unready)
    assert before == ((["n1"], []) if jump_seconds > 0 else ([], ["n1"]))
    jump(here.clock, jump_seconds, monkeypatch)
    await it.run_once()
    readiness = it.state.registry.total_readiness
    assert (readiness.not_started, readiness.unready) == before[::-1]
