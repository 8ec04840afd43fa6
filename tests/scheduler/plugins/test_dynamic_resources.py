"""DynamicResources at its extension points, against an API server in memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping
from typing import Any

import anyio
import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from machinery.api import errors, kinds
from machinery.api.kinds import Kind
from machinery.api.pb import devices
from machinery.features.gates import Gates, Version
from machinery.runtime.clock import FakeClock, to_time
from scheduler.framework.algorithm import pre_filter
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.interface import Code, FilterError, PostFilterResult, Status
from scheduler.framework.profile import ArgumentError
from scheduler.framework.types import PodInfo
from scheduler.plugins.dynamic_resources import DynamicResources, arguments
from scheduler.plugins.dynamic_resources.tracker import manager_of
from scheduler.shell.metrics import Metrics
from tests.scheduler.builders import UNREAD, VERSION, desk, node, pod
from tests.scheduler.fake_api import FakeApi
from tests.scheduler.performing import binding_plugins, done
from tests.scheduler.plugins.test_volume_binding import claim as volume_claim
from tests.scheduler.plugins.test_volume_binding import waiting_class
from tests.support.devices import (
    allocation,
    claim,
    device,
    device_class,
    first_of,
    request,
    resource_slice,
    using,
)
from tests.support.patience import PATIENCE_SECONDS

FINALIZER = "resource.kubernetes.io/delete-protection"
S1 = resource_slice("s1", device("gpu-0"), node="n1")
S2 = resource_slice("s2", device("gpu-0"), node="n2")


class DeviceApi(FakeApi):
    """Also creates objects, and does what patches of claims and pods say. `holds`: updates wait."""

    def __init__(self, *objects: Any) -> None:
        super().__init__(*objects)
        self.holds = False
        self.arrived, self.goes_on = anyio.Event(), anyio.Event()
        self.unread: errors.StatusError | None = None

    async def create(self, obj: Any) -> Any:
        new = type(obj)()
        new.CopyFrom(obj)
        new.metadata.name = new.metadata.name or new.metadata.generateName + "x"
        new.metadata.uid = f"uid-{new.metadata.name}"
        self._note("create", kinds.of(obj).kind, new.metadata.name)
        return self.put(new)

    async def update(self, obj: Any, *, subresource: str = "", dry_run: bool = False) -> Any:
        if self.holds:
            self.arrived.set()
            await self.goes_on.wait()
        return await super().update(obj, subresource=subresource, dry_run=dry_run)

    async def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Any:
        if self.unread is not None:
            raise self.unread
        found = self.find(kind, name, namespace)
        if found is None:
            raise errors.not_found(kind, name)
        return found

    async def patch(
        self, kind: Kind[Any], name: str, namespace: str, patch: Any, *, subresource: str = ""
    ) -> Any:
        await super().patch(kind, name, namespace, patch, subresource=subresource)
        new = type(found := await self.get(kind, name, namespace))()
        new.CopyFrom(found)
        for entry in patch["status"].get("reservedFor", ()):
            kept = [r for r in new.status.reservedFor if r.uid != entry["uid"]]
            del new.status.reservedFor[:]
            new.status.reservedFor.extend(kept)
        return self.put(new)


class Stage:
    """Two nodes, and what the test adds; one pod's cycle after the other."""

    def __init__(
        self, *objects: Any, gates: Mapping[str, bool] | None = None, version: Version = VERSION
    ) -> None:
        self.clock = FakeClock()
        self.api = DeviceApi(node("n1"), node("n2"), device_class(), *objects)
        self.desk = desk(
            without=("DefaultPreemption",),
            environment={
                "client": self.api, "listers": self.api.listers(), "clock": self.clock,
                "gates": Gates("scheduler", version, gates or {}), "version": version,
            },
        )  # fmt: skip
        self.framework = self.desk.framework
        self.desk.add_nodes(node("n1"), node("n2"))
        self.desk.cache.update_snapshot(self.framework.snapshot)
        plugin = self.framework.plugins["DynamicResources"]
        assert isinstance(plugin, DynamicResources)
        self.plugin = plugin
        self.state = CycleState()

    def verdicts(self, who: PodInfo) -> dict[str, str]:
        """Why each node is not feasible; AlgorithmError where the pod cannot be judged."""
        found: dict[str, str] = {}
        self.state = CycleState()
        rows, _ = pre_filter(self.framework, self.state, who, self.framework.snapshot)
        assert rows is None
        for each in self.framework.snapshot.nodes:
            status = self.framework.run_filter_plugins(self.state, who, each)
            assert status is None or status.is_rejected, status
            found |= {each.name: status.message()} if status is not None else {}
        return found

    def feasible(self, who: PodInfo) -> list[str]:
        rejected = self.verdicts(who)
        return sorted(n.name for n in self.framework.snapshot.nodes if n.name not in rejected)

    def reserve(self, who: PodInfo, on: str) -> Status | None:
        return self.plugin.reserve(self.state, who, on)

    async def run(self, work: object) -> Any:
        """Do the I/O that the plugin asks for."""
        return await done(self.framework, work)

    async def bind(self, who: PodInfo, on: str = "n1") -> Status | None:
        assert on in self.feasible(who)
        assert self.reserve(who, on) is None
        status: Status | None = await self.run(self.plugin.pre_bind(self.state, who, on))
        return status

    async def pre_bind(self, who: PodInfo, on: str = "n1", *, seconds: float = 1.0) -> Status | None:
        """To its end, while time goes on in steps."""
        result: list[Status | None] = []

        async def run() -> None:
            result.append(await self.run(self.plugin.pre_bind(self.state, who, on)))

        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                while not result:
                    await self.clock.advance(seconds)
        return result[0]

    def claim(self, name: str = "claim") -> devices.ResourceClaim:
        found: devices.ResourceClaim | None = self.api.find(kinds.RESOURCE_CLAIM, name, "default")
        assert found is not None
        return found

    def writes(self) -> list[tuple[Any, ...]]:
        return [r[:2] for r in self.api.requests]


def user(name: str = "p", *claims: str) -> PodInfo:
    info = pod(name)
    for number, each in enumerate(claims or ("claim",)):
        using(info.pod, claim=each, name=f"c{number}")
    return info


def mine(**more: Any) -> devices.ResourceClaim:
    return claim("claim", uid="uid-claim", **more)


def allocated(node_name: str = "n1", *users: str, **more: Any) -> devices.ResourceClaim:
    reserved = [{"resource": "pods", "name": u, "uid": f"uid-{u}"} for u in users]
    status = {"allocation": allocation(("s1", "gpu-0"), node=node_name), "reservedFor": reserved, **more}
    return claim("claim", uid="uid-claim", status=status, finalizers=[FINALIZER])


async def test_a_claim_is_allocated_reserved_and_written() -> None:
    stage = Stage(mine(), S1)
    assert await stage.bind(user()) is None
    found = stage.claim()
    assert [(r.pool, r.device) for r in found.status.allocation.devices.results] == [("s1", "gpu-0")]
    assert [r.uid for r in found.status.reservedFor] == ["uid-p"]
    assert list(found.metadata.finalizers) == [FINALIZER]
    assert stage.writes() == [("update", "ResourceClaim")] * 2  # the finalizer, then the status


async def test_a_pod_without_claims_costs_nothing() -> None:
    stage = Stage(mine(), S1)
    who = pod("p")
    assert stage.feasible(who) == ["n1", "n2"]
    assert "DynamicResources" in stage.state.skip_filter_plugins
    status, _ = stage.plugin.pre_bind_pre_flight(stage.state, who, "n1")
    assert status is not None
    assert status.is_skip
    assert stage.api.requests == []


def test_nodes_without_the_devices() -> None:
    stage = Stage(mine(), S1)
    assert stage.verdicts(user()) == {"n2": "cannot allocate all claims"}
    status = stage.framework.run_filter_plugins(stage.state, user(), stage.framework.snapshot.nodes[1])
    assert status is not None
    assert (status.code, status.plugin) == (Code.UnschedulableAndUnresolvable, "DynamicResources")


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ((), 'could not find ResourceClaim "default/claim"'),
        ((mine(deletionTimestamp="2026-01-01T00:00:00Z"),), 'resourceclaim "claim" is being deleted'),
        ((claim("claim", request(of="nope")),), "request r: device class nope does not exist"),
        (
            (allocated("n1", *(f"u{n}" for n in range(256))),),
            "resourceclaim in use",
        ),
    ],
)  # fmt: skip
def test_what_pre_filter_rejects(objects: tuple[Any, ...], text: str) -> None:
    stage = Stage(*objects, S1)
    state = CycleState()
    _, status, _ = stage.framework.run_pre_filter_plugins(state, user(), stage.framework.snapshot)
    assert status is not None
    assert (status.code, status.reasons) == (Code.UnschedulableAndUnresolvable, (text,))


def test_a_template_whose_claim_is_not_there_yet_gates_the_pod() -> None:
    stage = Stage(S1)
    who = pod("p")
    using(who.pod, template="t")
    status = stage.plugin.pre_enqueue(who)
    assert status is not None
    assert status.message() == 'pod "default/p": ResourceClaim not created yet'
    who.pod.status.resourceClaimStatuses.add(name="device", resourceClaimName="claim")
    stage.api.put(mine())
    status = stage.plugin.pre_enqueue(who)
    assert status is not None
    assert (
        status.message() == "ResourceClaim default/claim was not created for pod default/p (pod is not owner)"
    )


def test_a_broken_selector_is_an_error() -> None:
    stage = Stage(claim("claim", request(where='device.attributes["x"].y')), S1)
    state, snapshot = CycleState(), stage.framework.snapshot
    _, status, _ = stage.framework.run_pre_filter_plugins(state, user(), snapshot)
    assert status is None
    with pytest.raises(FilterError, match="CEL runtime error: no such key: y"):
        stage.framework.filter_rows(state, user(), snapshot, slice(0, 2))


def test_reserved_devices_are_in_use_before_they_are_written() -> None:
    stage = Stage(mine(), claim("other", uid="uid-other"), S1)
    first, second = user(), user("q", "other")
    assert stage.feasible(first) == ["n1"]
    assert stage.reserve(first, "n1") is None
    before = stage.state
    assert stage.feasible(second) == []
    _, status, _ = stage.framework.run_pre_filter_plugins(CycleState(), user("r"), stage.framework.snapshot)
    assert status is not None
    assert status.message() == "resource claim default/claim is in the process of being allocated"
    stage.plugin.unreserve(before, first, "n1")
    assert stage.feasible(second) == ["n1"]


async def test_an_allocated_claim_is_shared_where_it_is() -> None:
    stage = Stage(allocated("n1", "other"), S1)
    assert stage.verdicts(user()) == {"n2": "resourceclaim not available on the node"}
    assert await stage.bind(user()) is None
    assert [r.uid for r in stage.claim().status.reservedFor] == ["uid-other", "uid-p"]


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
    assert post_filter(stage, member("c"))[0] is None  # it is not deallocated
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
    # Whoever has seen it in flight must not write it now.
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


def post_filter(stage: Stage, who: PodInfo) -> tuple[PostFilterResult | None, Status | None]:
    return stage.plugin.post_filter(stage.state, who, UNREAD)


async def test_a_claim_that_nobody_uses_is_deallocated() -> None:
    stage = Stage(allocated("n3"), S1)
    assert stage.feasible(user()) == []
    result, status = post_filter(stage, user())
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
    result, status = post_filter(stage, user())
    assert result is None
    assert status is not None
    assert status.message() == "still not schedulable"


async def test_the_follow_up_runs_though_another_plugin_has_the_last_word() -> None:
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


async def test_somebody_else_was_faster() -> None:
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
        stage.api.reject = lambda request: errors.service_unavailable("") if request[0] == "update" else None
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
    stage.api.reject = lambda request: errors.service_unavailable("") if request[0] == "update" else None
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


async def test_what_an_earlier_life_has_written_is_used() -> None:
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


CONDITIONS = resource_slice(
    "s1", device("gpu-0", bindingConditions=["ready"], bindingFailureConditions=["failed"]), node="n1"
)


def set_condition(stage: Stage, type_: str) -> None:
    found = stage.claim()
    status = found.status.devices.add(driver="gpu.example.com", pool="s1", device="gpu-0")
    status.conditions.add(type=type_, status="True", reason="Broken", message="no power")
    stage.api.put(found)


@pytest.mark.parametrize(
    ("condition", "text", "outcome"),
    [
        ("ready", "", "success"),
        ("failed", 'claim claim binding failed: reason=Broken, message="no power"', "failure"),
        ("", "device binding timeout", "timeout"),
    ],
)
async def test_binding_conditions(condition: str, text: str, outcome: str) -> None:
    stage = Stage(mine(), CONDITIONS)
    metrics = Metrics(CollectorRegistry())
    stage.framework.environment.note = metrics.note
    who = user()
    assert stage.feasible(who) == ["n1"]
    assert stage.reserve(who, "n1") is None
    result: list[Status | None] = []

    async def pre_bind() -> None:
        result.append(await stage.run(stage.plugin.pre_bind(stage.state, who, "n1")))

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(pre_bind)
            await stage.clock.wait_for_sleepers()
            if condition:
                set_condition(stage, condition)
            while not result:
                await stage.clock.advance(100.0)
    assert (result[0].message() if result[0] else "") == text
    labels = {"profile": "default-scheduler", "driver": "gpu.example.com", "status": outcome}
    for name in ("allocations_total", "wait_duration_seconds_count"):
        assert metrics.registry.get_sample_value(f"scheduler_dra_bindingconditions_{name}", labels) == 1


def test_a_claim_that_does_not_get_ready_is_freed() -> None:
    late = allocated("n1")
    late.status.allocation.devices.results[0].bindingConditions.append("ready")
    late.status.allocation.allocationTimestamp.CopyFrom(to_time(FakeClock().now() - 601))
    stage = Stage(late, CONDITIONS)
    assert stage.verdicts(user())["n1"] == "resourceclaim not available on the node"
    _, status = post_filter(stage, user())
    assert status is not None
    assert status.message() == "deallocation of ResourceClaim completed"


def test_earlier_alternatives_score_more() -> None:
    big = resource_slice("s1", device("gpu-0", attributes={"size": 2}), node="n1")
    small = resource_slice("s2", device("gpu-0", attributes={"size": 1}), node="n2")
    best = request("best", where='device.attributes["gpu.example.com"].size > 1')
    stage = Stage(claim("claim", first_of("r", best, request("any"))), big, small)
    who = user()
    assert stage.feasible(who) == ["n1", "n2"]
    nodes = {n.name: n for n in stage.framework.snapshot.nodes}
    assert [stage.plugin.score(stage.state, who, nodes[name]) for name in ("n1", "n2")] == [8, 7]


def test_claims_allocated_earlier_count_for_every_node() -> None:
    big = resource_slice("s1", device("gpu-0", attributes={"size": 2}), node="n1")
    small = resource_slice("s2", device("gpu-0", attributes={"size": 1}), node="n2")
    best = request("best", where='device.attributes["gpu.example.com"].size > 1')
    result = {"request": "r/b", "driver": "gpu.example.com", "pool": "net", "device": "nic"}
    shared = claim(
        "shared", first_of("r", request("a"), request("b")),
        uid="uid-shared", status={"allocation": {"devices": {"results": [result]}}},
    )  # fmt: skip
    stage = Stage(claim("claim", first_of("r", best, request("any"))), shared, big, small)
    who = user("p", "shared", "claim")
    assert stage.feasible(who) == ["n1", "n2"]
    nodes = {n.name: n for n in stage.framework.snapshot.nodes}
    scores = [stage.plugin.score(stage.state, who, nodes[name]) for name in ("n1", "n2")]
    assert scores == [7 + 8, 7 + 7]
    assert list(stage.plugin.normalize(stage.state, who, np.array(scores))) == [100, 93]


# Extended resources

GPUS = device_class("gpu", extendedResourceName="example.com/gpu")


def asking(name: str = "p") -> PodInfo:
    info = pod(name)
    info.pod.spec.containers[0].resources.requests["example.com/gpu"].string = "1"
    return PodInfo(info.pod)


async def test_an_extended_resource_is_given_by_devices() -> None:
    stage = Stage(GPUS, S1)
    who = asking()
    stage.api.put(who.pod)
    assert stage.verdicts(who) == {"n2": "cannot allocate all claims"}
    assert await stage.bind(who) is None
    found = stage.claim("p-extended-resources-x")
    assert found.metadata.annotations["resource.kubernetes.io/extended-resource-claim"] == "true"
    requests = found.spec.devices.requests
    assert [(r.name, r.exactly.deviceClassName, r.exactly.count) for r in requests] == [
        ("container-0-request-1", "gpu", 1)
    ]
    assert [r.request for r in found.status.allocation.devices.results] == ["container-0-request-1"]
    patch = next(r[4] for r in stage.api.requests if r[:2] == ("patch", "Pod"))
    assert patch["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": "p-extended-resources-x",
        "requestMappings": [
            {
                "containerName": "c",
                "resourceName": "example.com/gpu",
                "requestName": "container-0-request-1",
            }
        ],
    }


async def test_a_claim_for_extended_resources_is_deleted_when_binding_fails() -> None:
    stage = Stage(GPUS, S1)
    who = asking()
    stage.api.put(who.pod)
    assert await stage.bind(who) is None
    stage.plugin.unreserve(stage.state, who, "n1")
    await stage.run(stage.plugin.after_unreserve(stage.state, who, "n1"))
    assert ("delete", "ResourceClaim") in stage.writes()
    assert FINALIZER not in stage.claim("p-extended-resources-x").metadata.finalizers


def test_a_device_plugin_that_has_it_is_used() -> None:
    stage = Stage(GPUS, S1)
    plugged = node("n2")
    plugged.status.allocatable["example.com/gpu"].string = "4"
    stage.desk.cache.update_node(plugged)
    stage.desk.cache.update_snapshot(stage.framework.snapshot)
    who = asking()
    assert stage.feasible(who) == ["n1", "n2"]
    assert stage.reserve(who, "n2") is None


def test_without_the_gate_devices_give_no_extended_resources() -> None:
    stage = Stage(GPUS, S1, gates={"DRAExtendedResource": False})
    assert stage.verdicts(asking()) == dict.fromkeys(("n1", "n2"), "Insufficient example.com/gpu")


# Arguments


@pytest.mark.parametrize(
    ("args", "version", "text"),
    [
        ({"filterTimeout": "-1s"}, "1.36", "must be zero or positive"),
        ({"filterTimeout": "soon"}, "1.36", "not a duration"),
        ({"bindingTimeout": "10ms"}, "1.36", "must be at least 1 second"),
        ({"bindingTimeout": "10s"}, "1.35", "requires feature gate DRADeviceBindingConditions"),
    ],
)
def test_arguments_that_are_rejected(args: dict[str, str], version: str, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        arguments.read(args, Gates("scheduler", Version.parse(version)))


def test_arguments() -> None:
    gates = Gates("scheduler", VERSION)
    assert arguments.read({}, gates) == arguments.Timeouts(10.0, 600.0)
    given = {"filterTimeout": "1m30s", "bindingTimeout": "1.5s"}
    assert arguments.read(given, gates) == arguments.Timeouts(90.0, 1.5)


@pytest.mark.parametrize(
    ("version", "code", "text"),
    [
        ("1.35", Code.UnschedulableAndUnresolvable, "timed out trying to allocate devices"),
        (
            "1.36",
            Code.Error,
            'running "DynamicResources" filter plugin: node n1: timed out trying to allocate devices',
        ),
    ],
)
def test_the_search_of_a_node_has_a_limit(version: str, code: Code, text: str) -> None:
    many = [device(f"d{n}", attributes={"half": f"h{n % 2}"}) for n in range(40)]
    wanted = claim("claim", request(count=25), constraints=[{"matchAttribute": "gpu.example.com/half"}])
    stage = Stage(wanted, resource_slice("s1", *many, node="n1"), version=Version.parse(version))
    tick = iter(range(1_000_000))
    stage.clock.monotonic = lambda: float(next(tick))  # type: ignore[method-assign]  # each look takes a second
    pre_filter(stage.framework, stage.state, who := user(), stage.framework.snapshot)
    first = next(n for n in stage.framework.snapshot.nodes if n.name == "n1")
    status = stage.framework.run_filter_plugins(stage.state, who, first)
    assert status is not None
    assert (status.code, status.message()) == (code, text)


def test_a_manager_goes_with_its_plugins() -> None:
    stage = Stage(mine(), S1)
    manager = weakref.ref(manager_of(stage.framework))
    del stage
    gc.collect()
    assert manager() is None


def test_profiles_share_what_is_in_use() -> None:
    stage = Stage(mine(), S1)
    assert manager_of(stage.framework).claims is manager_of(stage.framework).claims
    assert manager_of(stage.framework).claims is not manager_of(Stage(mine(), S1).framework).claims
