"""The binding cycle makes the requests that upstream's makes, in its order (KEP-5278)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version
from nominee.machinery.runtime import failpoints
from nominee.scheduler.dispatch.call_queue import CallQueue
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    on,
)
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    FilterPlugin,
    NominatingInfo,
    NominatingMode,
    PostFilterResult,
    Status,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from tests.scheduler.builders import Scripted, node, pod
from tests.scheduler.shell.conftest import running
from tests.support.fake_api import FakeApi

SKIP = (Status(Code.Skip), False)
WORKS = (None, False)
NOMINATED = ("patch/status", {"status": {"nominatedNodeName": "n1"}})
BOUND = ("bind", "n1")
GATE = "NominatedNodeNameForExpectation"
WAIT_SECONDS = 60.0


def api_with(*nodes: core.Node, pods: tuple[str, ...] = ("p",)) -> FakeApi:
    api = FakeApi()
    for each in nodes or (node("n1"),):
        api.put(each)
    for name in pods:
        api.put(pod(name).pod)
    return api


def is_bound(api: FakeApi, name: str = "p") -> bool:
    return bool(api.pod(name).spec.nodeName)


@dataclass(frozen=True)
class WhenNominated:
    name: str
    plugin: Scripted
    gate: bool
    want: tuple[str, ...]


def scripted(pre_flight: tuple[Status | None, bool] = SKIP, waits: bool = False) -> Scripted:
    permit = (Status(Code.Wait), WAIT_SECONDS) if waits else (None, 0.0)
    return Scripted(pre_flight=pre_flight, permit_status=permit, bind_status=Status(Code.Skip))


@pytest.mark.parametrize(
    "case",
    [
        WhenNominated("nothing to wait for", scripted(), True, ("bind",)),
        WhenNominated("PreBind has work", scripted(WORKS), True, ("patch/status", "bind")),
        WhenNominated("Permit waits", scripted(waits=True), True, ("patch/status", "bind")),
        WhenNominated("PreBind has work, gate off", scripted(WORKS), False, ("bind",)),
        WhenNominated("Permit waits, gate off", scripted(waits=True), False, ("bind",)),
    ],
    ids=lambda case: case.name,
)
async def test_nomination_only_when_there_is_something_to_wait_for(case: WhenNominated) -> None:
    api = api_with()
    async with running(api, case.plugin, gates={GATE: case.gate}) as parts:
        if case.plugin.permit_status[0] is not None:
            await api.until(lambda: len(parts.waiting) == 1)
            assert not is_bound(api)
            for waiting in parts.waiting:
                waiting.allow("Scripted")
        await api.until(lambda: is_bound(api))
    assert tuple(verb for verb, _ in api.writes("p")) == case.want
    assert not api.pod("p").status.nominatedNodeName


async def test_the_nomination_is_there_while_pre_bind_works() -> None:
    api = api_with()
    failpoints.arm("scheduler.prebind.before", "pause")
    async with running(api, scripted(WORKS)) as parts:
        await api.until(lambda: api.pod("p").status.nominatedNodeName == "n1")
        assert not api.pod("p").status.conditions
        assert api.writes("p") == [NOMINATED]
        await api.until(lambda: "uid-p" in parts.scheduler.bindings.binding)
        failpoints.arm("scheduler.prebind.before", "off")
        await api.until(lambda: is_bound(api))
    assert api.writes("p") == [NOMINATED, BOUND]


async def test_a_nomination_that_is_there_already_is_not_written_again() -> None:
    api = api_with(pods=())
    api.put(pod("p", nominated="n1").pod)
    async with running(api, scripted(WORKS)):
        await api.until(lambda: is_bound(api))
    assert api.writes("p") == [BOUND]


async def test_a_failed_nomination_does_not_stop_the_binding() -> None:
    api = api_with()
    api.rejections["patch/status"] = [errors.forbidden(kinds.POD, "p", "no")]
    async with running(api, scripted(WORKS)):
        await api.until(lambda: is_bound(api))
    assert api.writes("p") == [NOMINATED, BOUND]


@dataclass(frozen=True)
class Failing:
    name: str
    plugin: Scripted
    want_reason: str
    want_message: str
    want_queue: str


@pytest.mark.parametrize(
    "case",
    [
        Failing(
            "PreBind errs",
            Scripted(pre_flight=WORKS, pre_bind_status=Status(Code.Error, ("boom",))),
            "SchedulerError",
            'running PreBind plugin "Scripted": boom',
            "backoff",
        ),
        Failing(
            "PreBind rejects",
            Scripted(pre_flight=WORKS, pre_bind_status=Status(Code.Unschedulable, ("full",))),
            "Unschedulable",
            "0/1 nodes are available: 1 full.",
            "",  # back in backoff, from where it is popped at once
        ),
        Failing(
            "Bind errs",
            Scripted(pre_flight=WORKS, bind_status=Status(Code.Error, ("boom",))),
            "SchedulerError",
            'running Bind plugin "Scripted": boom',
            "backoff",
        ),
    ],
    ids=lambda case: case.name,
)
async def test_a_failed_binding_is_undone(case: Failing) -> None:
    api = api_with()
    failpoints.arm("scheduler.cycle.before", "1*off->pause")  # no second attempt
    async with running(api, case.plugin) as parts:
        await api.until(lambda: len(api.pod("p").status.conditions) == 1)
        condition = api.pod("p").status.conditions[0]
        assert (condition.type, condition.status) == ("PodScheduled", "False")
        assert (condition.reason, condition.message) == (case.want_reason, case.want_message)
        assert not api.pod("p").status.nominatedNodeName
        assert "unreserve n1" in case.plugin.calls
        assert not parts.cache.is_assumed("uid-p")
        if case.want_queue:
            assert parts.queue.counts()[case.want_queue] == 1
        else:
            await api.until(lambda: "uid-p" in parts.queue.in_flight)
        await api.until(lambda: ("FailedScheduling", "p", case.want_message) in api.events)


async def test_permit_runs_out_of_time() -> None:
    plugin = Scripted(permit_status=(Status(Code.Wait), 0.01), pre_flight=SKIP, bind_status=Status(Code.Skip))
    api = api_with()
    async with running(api, plugin) as parts:
        await api.until(lambda: bool(api.pod("p").status.conditions))
        message = api.pod("p").status.conditions[0].message
        assert message == (
            "0/1 nodes are available: 1 rejected due to timeout after waiting 10ms at plugin Scripted."
        )
        [waiting] = parts.queue.unschedulable()
        assert waiting.rejectors == {"Scripted"}


async def test_a_pod_that_is_deleted_while_it_waits_gives_its_room_back() -> None:
    api = api_with(node("n1", cpu="1"))
    plugin = scripted(waits=True)
    async with running(api, plugin) as parts:
        await api.until(lambda: len(parts.waiting) == 1)
        api.remove(kinds.POD, "p")
        await api.until(lambda: parts.cache.pod_count == 0)
        plugin.permit_status = (None, 0.0)
        api.put(pod("next").pod)
        await api.until(lambda: is_bound(api, "next"))


async def test_a_deleted_pod_with_a_finalizer_that_waits_is_not_tried_again() -> None:
    api = api_with(node("n1", cpu="1"))
    async with running(api, scripted(waits=True)) as parts:
        await api.until(lambda: len(parts.waiting) == 1)
        going = core.Pod()
        going.CopyFrom(api.pod("p"))
        going.metadata.finalizers.append("example.com/hold")
        going.metadata.deletionTimestamp.seconds = 1
        api.put(going)
        await api.until(lambda: bool(api.events))
        assert api.events == [("FailedScheduling", "p", "0/1 nodes are available: 1 removed.")]
        [waiting] = parts.queue.unschedulable()
        assert waiting.consecutive_errors_count == 0
        api.put(node("n2"))
        await api.until(lambda: "n2" in parts.cache.node_names())
        assert parts.queue.unschedulable() == [waiting]


async def test_a_pod_that_is_deleted_before_its_cycle_does_not_wait() -> None:
    api = api_with(node("n1", cpu="1"))
    plugin = scripted(waits=True)
    failpoints.arm("scheduler.cycle.before", "1*pause")
    async with running(api, plugin) as parts:
        await api.until(lambda: _waiting("scheduler.cycle.before"))
        api.remove(kinds.POD, "p")
        await api.until(lambda: len(parts.informers.pods) == 0)
        failpoints.arm("scheduler.cycle.before", "off")
        await api.until(lambda: "reserve n1" in plugin.calls)
        with anyio.fail_after(WAIT_SECONDS / 2):
            await api.until(lambda: parts.cache.pod_count == 0)
        assert len(parts.waiting) == 0
        plugin.permit_status = (None, 0.0)
        api.put(pod("next").pod)
        await api.until(lambda: is_bound(api, "next"))


class Single(Scripted, FilterPlugin):
    """Has one thing, which is free again after Unreserve."""

    name = "Single"

    def filter(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        is_held = self.calls.count("reserve n1") > self.calls.count("unreserve n1")
        return Status(Code.Unschedulable, ("held",)) if is_held else None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (on(EventResource.AssignedPod, ActionType.Delete, lambda *_: QueueingHint.Queue),)


async def test_a_pod_that_is_deleted_in_pre_bind_gives_what_was_reserved_back() -> None:
    api = api_with()
    plugin = Single("Single", pre_flight=WORKS, bind_status=Status(Code.Skip))
    failpoints.arm("scheduler.prebind.before", "1*pause")
    async with running(api, plugin) as parts:
        await api.until(lambda: _waiting("scheduler.prebind.before"))
        api.put(pod("next").pod)
        await api.until(lambda: plugin.calls.count("postFilter") == 1)
        api.remove(kinds.POD, "p")
        # Its room on the node is free at once, which wakes the other one too early.
        await api.until(lambda: plugin.calls.count("postFilter") == 2)
        assert parts.cache.pod_count == 0
        failpoints.arm("scheduler.prebind.before", "off")
        await api.until(lambda: is_bound(api, "next"))


async def test_a_preemptor_stops_a_pod_in_pre_bind_without_deleting_it() -> None:
    api = api_with(node("n1", cpu="1"))
    failpoints.arm("scheduler.prebind.before", "off")
    failpoints.arm("scheduler.prebind.during", "1*pause")
    async with running(api, scripted(WORKS)) as parts:
        await api.until(lambda: parts.waiting.stoppable("uid-p") is not None)
        api.put(pod("vip", priority=10).pod)
        await api.until(lambda: is_bound(api, "vip"))
        await api.until(lambda: bool(api.pod("p").status.conditions))
    assert "delete" not in [verb for verb, _ in api.writes("p")]
    condition = api.pod("p").status.conditions[0]
    assert condition.reason in ("SchedulerError", "Unschedulable")


async def test_a_preemptor_sends_a_pod_on_permit_back() -> None:
    api = api_with(node("n1", cpu="1"))
    plugin = scripted(waits=True)
    async with running(api, plugin) as parts:
        await api.until(lambda: len(parts.waiting) == 1)
        plugin.permit_status = (None, 0.0)
        api.put(pod("vip", priority=10).pod)
        await api.until(lambda: is_bound(api, "vip"))
        await api.until(lambda: bool(api.pod("p").status.conditions))
        await api.until(lambda: not api.pod("p").status.nominatedNodeName)
    assert "delete" not in [verb for verb, _ in api.writes("p")]
    messages = [
        body["status"]["conditions"][0]["message"]
        for verb, body in api.writes("p")
        if verb == "patch/status" and "conditions" in body["status"]
    ]
    assert messages[0] == "waiting on permit for pod: preempted"


@dataclass(frozen=True)
class Rule:
    name: str
    version: Version
    gates: dict[str, bool]
    want: str


@pytest.mark.parametrize(
    "case",
    [
        Rule("1.34 with the gate keeps", Version(1, 34), {GATE: True}, "gone"),
        Rule("1.34 without it clears", Version(1, 34), {}, ""),
        Rule("1.35 clears", Version(1, 35), {}, ""),
        Rule("1.36 without the gate clears too", Version(1, 36), {GATE: False}, ""),
    ],
    ids=lambda case: case.name,
)
async def test_what_a_failed_cycle_does_to_a_nomination(case: Rule) -> None:
    api = api_with(node("n1", cpu="500m"), pods=())
    api.put(pod("p", nominated="gone").pod)
    async with running(api, version=case.version, gates=case.gates):
        await api.until(lambda: bool(api.pod("p").status.conditions))
    assert api.pod("p").status.nominatedNodeName == case.want


@pytest.mark.parametrize("minor", range(32, 39))
async def test_every_version_schedules(minor: int) -> None:
    api = api_with(node("n1", cpu="1"), pods=("p", "too-much"))
    async with running(api, scripted(WORKS), version=Version(1, minor)):
        await api.until(lambda: sum(is_bound(api, name) for name in ("p", "too-much")) == 1)
    nominated = any(
        request.verb == "patch/status" and "nominatedNodeName" in request.body["status"]
        for request in api.requests
    )
    assert nominated == (minor >= 35)


async def test_a_failure_that_is_written_late_does_not_overtake_the_binding() -> None:
    api = api_with(node("small", cpu="500m"))
    api.hold["patch/status"] = anyio.Event()
    async with running(api, scripted()) as parts:
        await api.until(lambda: parts.queue.counts()["unschedulable"] == 1)
        api.put(node("n1"))
        await api.until(lambda: "uid-p" in parts.scheduler.bindings.binding)
        assert api.writes("p") == []
        api.hold["patch/status"].set()
        await api.until(lambda: is_bound(api))
    assert [verb for verb, _ in api.writes("p")] == ["patch/status", "bind"]


async def test_a_binding_whose_answer_was_lost_is_a_binding() -> None:
    api = api_with()
    api.lost_answers = 1
    async with running(api) as parts:
        await api.until(lambda: ("Scheduled", "p", "Successfully assigned default/p to n1") in api.events)
        assert parts.queue.counts()["backoff"] == 0
    assert api.writes("p") == [BOUND]


async def test_the_queue_of_calls_learns_that_a_pod_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[str] = []
    monkeypatch.setattr(CallQueue, "bound", lambda _, uid: bound.append(uid))
    api = api_with()
    async with running(api):
        await api.until(lambda: bool(bound))
    assert bound == ["uid-p"]


async def test_what_fails_after_the_binding_does_not_undo_it() -> None:
    api = api_with()
    failpoints.arm("scheduler.bind.after", '1*error("late")')
    plugin = scripted()
    async with running(api, plugin) as parts:
        await api.until(lambda: is_bound(api) and not parts.scheduler.bindings.binding)
        await api.until(lambda: not parts.cache.is_assumed("uid-p"))
        assert parts.cache.node_of("uid-p") == "n1"
    assert api.writes("p") == [BOUND]
    assert "unreserve n1" not in plugin.calls


async def test_before_it_is_taken_back_a_pod_can_be_looked_at() -> None:
    api, plugin = api_with(), scripted()
    failpoints.arm("scheduler.bind.before", '1*error("no")')
    failpoints.arm("scheduler.unreserve.before", "1*pause")
    async with running(api, plugin) as parts:
        await api.until(lambda: _waiting("scheduler.unreserve.before"))
        assert parts.cache.is_assumed("uid-p")
        assert "unreserve n1" not in plugin.calls
        failpoints.arm("scheduler.unreserve.before", "off")
        await api.until(lambda: is_bound(api))
    assert "unreserve n1" in plugin.calls


def _waiting(name: str) -> bool:
    return any(point.name == name and point.waiting for point in failpoints.REGISTRY.states())


async def test_a_crash_of_a_plugin_does_not_end_the_loop() -> None:
    class Broken(Scripted):
        def reserve(self, *_: object) -> Status | None:
            raise RuntimeError("oh")

    api = api_with()
    async with running(api, Broken()) as parts:
        await api.until(lambda: bool(api.pod("p").status.conditions))
        assert api.pod("p").status.conditions[0].message == 'running Reserve plugin "Scripted": oh'
        assert parts.queue.counts()["backoff"] == 1


@pytest.mark.parametrize("background", [True, False])
async def test_a_follow_up_that_raises_does_not_end_the_loop(background: bool) -> None:
    async def follow_up() -> Status | None:
        raise RuntimeError("oh")

    asks = PostFilterResult(NominatingInfo(NominatingMode.NoOp), None, follow_up, background=background)
    api = api_with(pods=())
    api.put(pod("big", cpu="99").pod)
    plugin = Scripted(pre_flight=SKIP, bind_status=Status(Code.Skip), post=(asks, None))
    async with running(api, plugin):
        await api.until(lambda: bool(api.pod("big").status.conditions))
        assert "postFilter" in plugin.calls
        message = api.pod("big").status.conditions[0].message
        assert message.endswith(" oh") is not background
        api.put(pod("p").pod)
        await api.until(lambda: is_bound(api))


class BrokenUnreserve(Scripted):
    """Raises while it takes back what it has reserved."""

    name = "Broken"

    def unreserve(self, *_: object) -> None:
        raise RuntimeError("oh")

    def after_unreserve(self, *_: object) -> None:
        raise RuntimeError("oh again")


@pytest.mark.parametrize(
    "failing",
    [
        Scripted(permit_status=(Status(Code.Error, ("boom",)), 0.0)),
        Scripted(pre_flight=WORKS, pre_bind_status=Status(Code.Error, ("boom",))),
    ],
    ids=["Permit", "PreBind"],
)
async def test_a_plugin_that_fails_in_unreserve_does_not_end_the_loop(failing: Scripted) -> None:
    api = api_with()
    failpoints.arm("scheduler.cycle.before", "1*off->pause")  # no second attempt
    async with running(api, failing, BrokenUnreserve(name="Broken", pre_flight=SKIP)) as parts:
        await api.until(lambda: bool(api.pod("p").status.conditions))
        assert "boom" in api.pod("p").status.conditions[0].message
        assert "unreserve n1" in failing.calls
        assert not parts.cache.is_assumed("uid-p")
        assert parts.queue.counts()["backoff"] == 1


@pytest.mark.parametrize(
    "step", ["scheduler.cycle.before", "scheduler.assume.after", "scheduler.bind.before"]
)
async def test_an_error_at_a_step_is_retried(step: str) -> None:
    api = api_with()
    failpoints.arm(step, '1*error("armed")')
    async with running(api):
        await api.until(lambda: is_bound(api))
    assert api.pod("p").status.conditions[0].message == "armed"


async def test_another_spot_overwrites_the_nomination() -> None:
    api = api_with(node("n1", cpu="500m"), node("n2"), pods=())
    api.put(pod("p", nominated="n1").pod)
    async with running(api, scripted(WORKS)):
        await api.until(lambda: is_bound(api))
    assert api.writes("p") == [("patch/status", {"status": {"nominatedNodeName": "n2"}}), ("bind", "n2")]


async def test_room_is_left_for_lower_pods_only_by_lower_pods() -> None:
    """A nomination holds against equal and lower priority, not against higher (KEP-5278, test plan)."""
    api = api_with(node("n1", cpu="1"), pods=())
    api.put(pod("held", nominated="n1", priority=5, schedulingGates=[{"name": "x"}]).pod)
    async with running(api) as parts:
        # A gated pod's nomination counts from its first update on.
        again = core.Pod()
        again.CopyFrom(api.pod("held"))
        again.metadata.labels["touched"] = "yes"
        api.put(again)
        await api.until(lambda: len(parts.nominator) == 1)
        api.put(pod("equal", priority=5).pod)
        await api.until(lambda: bool(api.pod("equal").status.conditions))
        api.put(pod("higher", priority=6).pod)
        await api.until(lambda: is_bound(api, "higher"))
        assert not is_bound(api, "equal")
