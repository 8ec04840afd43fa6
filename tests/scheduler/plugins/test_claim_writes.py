"""DynamicResources: what is written when a pod is bound, deallocated or stopped, and conflicts."""

from __future__ import annotations

import anyio
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.pb import devices
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.dynamic_resources.tracker import manager_of
from tests.scheduler.builders import UNREAD, pod
from tests.scheduler.performing import binding_plugins
from tests.scheduler.plugins.claim_stage import FINALIZER, S1, S2, Stage, allocated, mine, user
from tests.scheduler.plugins.test_volume_binding import claim as volume_claim
from tests.scheduler.plugins.test_volume_binding import waiting_class
from tests.support.devices import (
    claim,
    using,
)
from tests.support.fake_api import Request
from tests.support.patience import PATIENCE_SECONDS


def _away(request: Request) -> Exception | None:
    return errors.service_unavailable("") if request.verb.startswith("update") else None


async def test_an_unused_claim_is_deallocated() -> None:
    stage = Stage(allocated("n3"), S1)
    assert stage.feasible(user()) == []
    result, status = stage.post_filter(user())
    assert status is not None
    assert status.message() == "deallocation of ResourceClaim completed"
    assert result is not None
    assert result.follow_up is not None
    await stage.run(result.follow_up())
    assert not stage.claim().status.HasField("allocation")
    assert stage.feasible(user()) == ["n1"]


def test_a_claim_that_others_use_stays() -> None:
    stage = Stage(allocated("n3", "other"), S1)
    assert stage.feasible(user()) == []
    result, status = stage.post_filter(user())
    assert result is None
    assert status is not None
    assert status.message() == "still not schedulable"


async def test_the_follow_up_runs_though_another_plugin_sets_the_result() -> None:
    stage = Stage(allocated("n3"), S1)
    assert stage.feasible(user()) == []
    result, status = stage.framework.run_post_filter_plugins(stage.state, user(), UNREAD)
    assert status.reasons[0] == "deallocation of ResourceClaim completed"
    assert result is not None
    assert result.follow_up is not None
    await stage.run(result.follow_up())
    assert not stage.claim().status.HasField("allocation")


async def test_a_conflict_is_tried_again_with_the_newest_claim() -> None:
    stage = Stage(mine(), S1)
    who = user()
    assert stage.feasible(who) == ["n1"]
    assert stage.reserve(who, "n1") is None
    changed = stage.claim()
    changed.metadata.labels["a"] = "b"
    stage.api.put(changed)
    assert await stage.pre_bind(who) is None
    assert stage.claim().metadata.labels["a"] == "b"
    assert stage.claim().status.HasField("allocation")


async def test_errors_of_later_requests_name_their_purpose() -> None:
    stage = Stage(mine(finalizers=[FINALIZER]), S1)
    who = user()
    assert stage.feasible(who) == ["n1"]
    assert stage.reserve(who, "n1") is None
    stage.api.rejections["update/status"] = [errors.conflict(kinds.RESOURCE_CLAIM, "claim")]
    stage.api.unread = errors.bad_request("no")
    status = await stage.pre_bind(who)
    assert status is not None
    assert status.message() == "get updated claim default/claim after conflict: no"


@pytest.mark.parametrize(
    ("rejection", "verb"),
    [(errors.bad_request("no"), "update"), (errors.conflict(kinds.RESOURCE_CLAIM, "claim"), "get")],
)
async def test_errors_of_a_deletion_name_their_purpose(rejection: errors.StatusError, verb: str) -> None:
    stage = Stage(mine(finalizers=[FINALIZER]))
    stage.api.rejections["update"] = [rejection]
    stage.api.unread = errors.bad_request("no")
    failures: list[str] = []

    async def delete() -> None:
        try:
            await stage.run(stage.plugin._writer.delete(stage.claim()))
        except errors.StatusError as error:
            failures.append(error.message)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(delete)
            while not failures:
                await stage.clock.advance(1.0)
    assert failures == [f"{verb} resourceclaim default/claim: no"]


async def test_another_writer_was_faster() -> None:
    stage = Stage(mine(), S1)
    who = user()
    assert stage.feasible(who) == ["n1"]
    assert stage.reserve(who, "n1") is None
    stage.api.put(allocated("n2", "other"))
    status = await stage.pre_bind(who)
    assert status is not None
    assert status.message() == "claim default/claim got allocated elsewhere in the meantime"
    assert not manager_of(stage.framework).claims.is_in_flight("uid-claim")


async def _stopped(stage: Stage, who: PodInfo, when: str) -> None:
    """PreBind begins and is stopped: while a write is at the API server, or between two tries."""
    assert stage.feasible(who) == ["n1"]
    assert stage.reserve(who, "n1") is None
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(stage.run, stage.plugin.pre_bind(stage.state, who, "n1"))
            if when == "writing":
                await stage.api.arrived.wait()
                group.cancel_scope.cancel()
                stage.api.goes_on.set()
            else:
                await stage.clock.wait_for_sleepers()
                group.cancel_scope.cancel()


@pytest.mark.parametrize(("when", "written"), [("writing", True), ("waiting", False)])
async def test_devices_of_a_stopped_binding_are_in_use_until_it_is_known_what_was_written(
    when: str, written: bool
) -> None:
    stage = Stage(mine(finalizers=[FINALIZER]), claim("other", uid="uid-other"), S1)
    who, other = user(), user("q", "other")
    if when == "writing":
        stage.api.holds = True
    else:
        stage.api.reject = lambda request: (
            errors.service_unavailable("") if request.verb.startswith("update") else None
        )
    await _stopped(stage, who, when)
    before = stage.state
    assert stage.claim().status.HasField("allocation") is written
    stage.plugin.unreserve(before, who, "n1")
    assert stage.feasible(other) == [], "the write might still come"
    await stage.run(stage.plugin.after_unreserve(before, who, "n1"))
    assert stage.claim().status.HasField("allocation") is written
    assert not stage.claim().status.reservedFor
    assert stage.feasible(other) == ([] if written else ["n1"])
    assert not manager_of(stage.framework).claims.is_in_flight("uid-claim")


@pytest.mark.parametrize(
    "gone", [errors.not_found(kinds.RESOURCE_CLAIM, "claim"), errors.forbidden(None, "", "no")]
)
async def test_a_claim_that_cannot_be_looked_up_holds_no_devices_for_ever(gone: errors.StatusError) -> None:
    stage = Stage(mine(finalizers=[FINALIZER]), claim("other", uid="uid-other"), S1)
    who, other = user(), user("q", "other")
    stage.api.reject = lambda request: (
        errors.service_unavailable("") if request.verb.startswith("update") else None
    )
    await _stopped(stage, who, "waiting")
    before = stage.state
    stage.plugin.unreserve(before, who, "n1")
    stage.api.unread = gone
    await stage.run(stage.plugin.after_unreserve(before, who, "n1"))
    assert stage.feasible(other) == ["n1"]


async def test_an_allocation_that_is_freed_in_the_meantime_is_not_reserved() -> None:
    """Its last other user ended, and the controller freed it: there is nothing to share any more."""
    stage = Stage(allocated("n1", "other"), S1)
    who = user()
    assert stage.feasible(who) == ["n1"]
    assert stage.reserve(who, "n1") is None
    stage.api.put(mine())
    status = await stage.pre_bind(who)
    assert status is not None
    assert status.message() == "claim default/claim got deallocated in the meantime"
    assert stage.claim().status == devices.ResourceClaimStatus()


async def test_another_claim_of_that_name_is_not_allocated() -> None:
    stage = Stage(mine(), S1)
    who = user()
    assert stage.feasible(who) == ["n1"]
    assert stage.reserve(who, "n1") is None
    other = mine()
    other.metadata.uid = "uid-other"
    stage.api.put(other)
    status = await stage.pre_bind(who)
    assert status is not None
    assert status.message() == "claim default/claim got deleted in the meantime"
    assert not stage.claim().status.HasField("allocation")


async def test_what_was_written_is_taken_back() -> None:
    stage = Stage(mine(), S1)
    who = user()
    assert await stage.bind(who) is None
    stage.plugin.unreserve(stage.state, who, "n1")
    await stage.run(stage.plugin.after_unreserve(stage.state, who, "n1"))
    found = stage.claim()
    assert list(found.status.reservedFor) == []
    assert found.status.HasField("allocation")  # the next attempt uses it, or PostFilter frees it


async def test_what_an_earlier_process_has_written_is_used() -> None:
    """The scheduler died between the claim's allocation and the pod's binding."""
    stage = Stage(allocated("n1", "p"), S1, S2)
    assert stage.feasible(user()) == ["n1"]
    assert await stage.bind(user()) is None
    assert stage.api.requests == []


async def test_claims_do_not_wait_behind_a_slow_volume() -> None:
    """KEP-5278, "Handling ResourceClaim status updates": both plugins work beside each other."""
    stage = Stage(mine(), S1, volume_claim(), waiting_class())
    who = pod("p", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    using(who.pod, claim="claim")
    stage.api.put(who.pod)
    framework = stage.framework
    assert stage.feasible(who) == ["n1"]
    assert framework.run_reserve_plugins(stage.state, who, "n1") is None
    assert framework.run_pre_bind_pre_flights(stage.state, who, "n1").is_success
    assert stage.state.parallel_pre_bind_plugins >= {"VolumeBinding", "DynamicResources"}
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(binding_plugins(framework).pre_bind, framework, stage.state, who, "n1")
            await stage.clock.wait_for_sleepers()  # VolumeBinding waits for a volume that does not come
            while not stage.claim().status.reservedFor:
                await anyio.lowlevel.checkpoint()
            waiting = stage.api.find(kinds.PERSISTENT_VOLUME_CLAIM, "data", "default")
            assert waiting is not None
            assert not waiting.spec.volumeName
            group.cancel_scope.cancel()
