"""DynamicResources: pods of a gang share a claim."""

from __future__ import annotations

import anyio
import pytest

from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Status
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.dynamic_resources.tracker import manager_of
from tests.scheduler.plugins.claim_stage import FINALIZER, S1, Stage, mine, user
from tests.support.devices import (
    claim,
)
from tests.support.patience import PATIENCE_SECONDS


def member(name: str) -> PodInfo:
    """A pod of a gang that uses the claim."""
    info = user(name)
    info.pod.spec.schedulingGroup.podGroupName = "g"
    return PodInfo(info.pod)


def seats(stage: Stage, *who: PodInfo) -> list[CycleState]:
    """Reserves n1 for all, one after the other."""
    states = []
    for each in who:
        assert stage.feasible(each) == ["n1"]
        assert stage.reserve(each, "n1") is None
        states.append(stage.state)
    return states


@pytest.mark.parametrize("first", [0, 1])
async def test_pods_of_a_gang_share_a_claim_that_is_not_written_yet(first: int) -> None:
    stage = Stage(mine(), claim("other", uid="uid-other"), S1)
    who = (member("a"), member("b"))
    states = seats(stage, *who)
    assert stage.verdicts(member("c"))["n2"] == "resourceclaim not available on the node"
    assert stage.post_filter(member("c"))[0] is None  # it is not deallocated
    _, status, _ = stage.framework.run_pre_filter_plugins(CycleState(), user("r"), stage.framework.snapshot)
    assert status is not None
    assert status.message() == "resource claim default/claim is in the process of being allocated"
    for number in (first, 1 - first):
        stage.state = states[number]
        assert await stage.pre_bind(who[number]) is None
    found = stage.claim()
    assert [r.device for r in found.status.allocation.devices.results] == ["gpu-0"]
    assert sorted(r.uid for r in found.status.reservedFor) == ["uid-a", "uid-b"]
    assert list(found.metadata.finalizers) == [FINALIZER]
    assert not manager_of(stage.framework).claims.is_in_flight("uid-claim")
    assert stage.feasible(user("q", "other")) == []


async def test_pods_of_a_gang_may_write_their_claim_at_the_same_time() -> None:
    stage = Stage(mine(), S1)
    who = (member("a"), member("b"))
    states = seats(stage, *who)
    found: list[Status | None] = []
    stage.api.holds = True

    async def pre_bind(number: int) -> None:
        found.append(await stage.run(stage.plugin.pre_bind(states[number], who[number], "n1")))

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            for number in range(2):
                group.start_soon(pre_bind, number)
            await stage.api.arrived.wait()
            stage.api.goes_on.set()
            while len(found) < 2:
                await stage.clock.advance(1.0)
    assert found == [None, None]
    assert sorted(r.uid for r in stage.claim().status.reservedFor) == ["uid-a", "uid-b"]


async def test_a_claim_of_a_gang_is_free_when_the_last_of_its_pods_gives_it_up() -> None:
    stage = Stage(mine(), claim("other", uid="uid-other"), S1)
    who = (member("a"), member("b"))
    states = seats(stage, *who)
    for _ in range(2):  # the same pod twice counts once
        stage.plugin.unreserve(states[0], who[0], "n1")
        assert stage.feasible(user("q", "other")) == []
    stage.plugin.unreserve(states[1], who[1], "n1")
    assert stage.feasible(user("q", "other")) == ["n1"]
    # A pod that has seen it in flight must not write it now.
    assert stage.plugin.reserve(states[1], who[1], "n1") is not None


async def test_the_other_pods_of_a_gang_write_what_one_could_not() -> None:
    stage = Stage(mine(), S1)
    who = (member("a"), member("b"))
    states = seats(stage, *who)
    stage.plugin.unreserve(states[0], who[0], "n1")
    stage.state = states[1]
    assert await stage.pre_bind(who[1]) is None
    assert [r.uid for r in stage.claim().status.reservedFor] == ["uid-b"]
    assert stage.claim().status.HasField("allocation")
