"""Evictions: what is asked of the API server, in which order, and what happens when it rejects."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version
from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Candidate, Code
from nominee.scheduler.framework.scheduling.algorithm import find_feasible
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.default_preemption import DefaultPreemption
from nominee.scheduler.preemption.evictions import MARK_RETRY_SECONDS, RETRY_SECONDS
from tests.scheduler.builders import Desk, desk, node, pod
from tests.scheduler.performing import performer
from tests.support.fake_api import FakeApi, Request


class Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str]] = []

    def event(
        self, regarding: Any, type_: str, reason: str, *, action: str, note: str, related: Any = None
    ) -> None:
        self.events.append((regarding.metadata.name, reason, action, note))


class Stage:
    """A preemptor on a full node, with the API server and the queue that it would have."""

    def __init__(self, *victims: PodInfo, **environment: Any) -> None:
        self.preemptor = pod("vip", cpu="3", priority=1000)
        self.victims = victims
        self.api = FakeApi.of(self.preemptor.pod, *(v.pod for v in victims))
        self.api.deletes_gracefully = True
        self.recorder = Recorder()
        self.activated: list[str] = []
        self.activated_at_once: list[str] = []
        self.cleared: list[tuple[str, int]] = []  # pod, requests before it
        self.desk: Desk = desk(
            without=(),
            environment={
                "client": self.api,
                "listers": self.api.listers(),
                "recorder": self.recorder,
                "activate": lambda pods: self.activated.extend(pods),
                **environment,
            },
        )
        plugin = self.desk.framework.plugins["DefaultPreemption"]
        assert isinstance(plugin, DefaultPreemption)
        self.plugin = plugin
        self.candidate = Candidate("n1", victims, 0)

    async def do(self, work: object) -> Any:
        return await performer(self.desk.framework, self._clear_nomination).run(work)

    def _clear_nomination(self, pod: core.Pod) -> None:
        self.cleared.append((pod.metadata.name, len(self.api.requests)))

    async def run(self) -> None:
        self.plugin.evictions.begin(self.preemptor)
        clock = self.desk.framework.clock
        assert isinstance(clock, FakeClock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.do, self.plugin.evictions.in_background(self.candidate, self.preemptor))
            await anyio.wait_all_tasks_blocked()
            self.activated_at_once = list(self.activated)
            await clock.advance(RETRY_SECONDS)

    def asked(self) -> list[tuple[str, str]]:
        return [(request.verb, request.key) for request in self.api.requests]


async def test_a_victim_is_marked_and_deleted_without_preconditions() -> None:
    victim = pod("victim", on="n1")
    victim.pod.metadata.generation = 3
    stage = Stage(victim)
    await stage.run()
    assert stage.asked() == [("patch/status", "default/victim"), ("delete", "default/victim")]
    patch = stage.api.requests[0].body
    (condition,) = patch["status"]["conditions"]
    del condition["lastTransitionTime"], condition["lastProbeTime"]
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "observedGeneration": 3,
    }
    assert stage.api.requests[1].options == {}
    assert stage.recorder.events == [
        ("victim", "Preempted", "Preempting", "Preempted by pod uid-vip on node n1")
    ]
    assert not stage.activated


async def test_a_terminating_victim_is_left_alone() -> None:
    going = pod("going", on="n1")
    going.pod.metadata.deletionTimestamp.seconds = 1
    stage = Stage(going, pod("other", on="n1"))
    await stage.run()
    assert stage.asked() == [("patch/status", "default/other"), ("delete", "default/other")]


@pytest.mark.parametrize(("background", "requests_before"), [(True, 0), (False, 2)])
async def test_lower_nominations_are_cleared_by_the_dispatcher(
    background: bool, requests_before: int
) -> None:
    """First in the background, last before requeueing; the evictions themselves write to the victim alone."""
    stage = Stage(pod("victim", on="n1"))
    for name, priority, on in (("lower", 5, "n1"), ("equal", 1000, "n1"), ("elsewhere", 5, "n2")):
        stage.desk.nominator.add(pod(name, nominated=on, priority=priority))
    if background:
        await stage.run()
    else:
        evictions = stage.plugin.evictions
        assert await stage.do(evictions.before_requeueing(stage.candidate, stage.preemptor)) is None
    assert stage.cleared == [("lower", requests_before)]
    assert {key for _, key in stage.asked()} == {"default/victim"}


async def test_the_last_victim_goes_last_and_its_deletion_ends_the_waiting() -> None:
    stage = Stage(pod("a", on="n1"), pod("b", on="n1"))
    evictions = stage.plugin.evictions
    waiting: list[bool] = []

    def look(request: Request) -> None:
        waiting.append(evictions.is_preempting("uid-vip"))

    stage.api.reject = look
    evictions.begin(stage.preemptor)
    gated = stage.plugin.pre_enqueue(stage.preemptor)
    assert gated is not None
    assert gated.code is Code.UnschedulableAndUnresolvable
    await stage.do(evictions.in_background(stage.candidate, stage.preemptor))
    assert stage.asked()[2:] == [("patch/status", "default/b"), ("delete", "default/b")]
    assert waiting == [True] * 4
    assert stage.plugin.pre_enqueue(stage.preemptor) is None


async def test_preempting_ends_when_the_watch_shows_the_last_victim_terminating() -> None:
    stage = Stage(pod("a", on="n1"))
    evictions = stage.plugin.evictions
    seen: list[bool] = []

    def delete_seen_early(request: Request) -> None:
        if request.verb == "delete":
            victim = stage.api.find(kinds.POD, "a", "default")
            assert isinstance(victim, core.Pod)
            victim.metadata.deletionTimestamp.seconds = 1
            seen.append(evictions.is_preempting("uid-vip"))

    stage.api.reject = delete_seen_early
    await stage.run()
    assert seen == [False]


async def test_a_rejected_eviction_brings_the_preemptor_back_and_spares_the_last_victim() -> None:
    stage = Stage(pod("a", on="n1"), pod("b", on="n1"))
    stage.api.reject = lambda request: (
        errors.internal("no") if request.verb == "delete" and request.key == "default/a" else None
    )
    await stage.run()
    assert ("delete", "default/b") not in stage.asked()
    assert (stage.activated_at_once, stage.activated) == ([], ["default/vip"])
    assert not stage.plugin.evictions.is_preempting("uid-vip")


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (errors.service_unavailable("away"), 4),
        (errors.internal("no"), 4),
        (errors.conflict(kinds.POD, "a"), 4),
        (errors.timeout("slow"), 1),
        (errors.forbidden(kinds.POD, "a", "no"), 1),
    ],
)
async def test_the_mark_of_a_victim_is_tried_again(error: errors.StatusError, attempts: int) -> None:
    """Four times at most, and not after a timeout; a victim that cannot be marked is not deleted."""
    stage = Stage(pod("a", on="n1"))
    clock = stage.desk.framework.clock
    assert isinstance(clock, FakeClock)
    work = stage.plugin.evictions.before_requeueing
    for failures in (attempts - 1, attempts):
        stage.api.requests.clear()
        stage.api.rejections["patch/status"] = [error] * failures
        result: list[Any] = []

        async def evict(result: list[Any] = result) -> None:
            result.append(await stage.do(work(stage.candidate, stage.preemptor)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(evict)
            for seconds in MARK_RETRY_SECONDS:
                await anyio.wait_all_tasks_blocked()
                await clock.advance(seconds)
        deleted = [] if failures == attempts else [("delete", "default/a")]
        assert stage.asked() == [("patch/status", "default/a")] * attempts + deleted
        assert (result[0] is None) is bool(deleted)


async def test_a_deleted_victim_is_no_error() -> None:
    stage = Stage(pod("a", on="n1"))
    stage.api.reject = lambda request: (
        errors.not_found(kinds.POD, "a") if request.verb == "patch/status" else None
    )
    await stage.run()
    assert stage.asked() == [("patch/status", "default/a")]
    assert not stage.activated
    assert not stage.recorder.events


@pytest.mark.parametrize("minor", [35, 36])
@pytest.mark.parametrize("waits", [True, False])
async def test_a_victim_that_waits_is_stopped_not_deleted(waits: bool, minor: int) -> None:
    """It is deleted if its wait is over by now: then nothing stops its binding."""
    rejected: list[tuple[str, str]] = []

    class Waiting:
        def reject(self, plugin: str, message: str) -> bool:
            rejected.append((plugin, message))
            return waits

    stage = Stage(
        pod("a", on="n1"),
        waiting_pod=lambda uid: Waiting() if uid == "uid-a" else None,
        version=Version(1, minor),
    )
    await stage.run()
    assert rejected == [("DefaultPreemption", "preempted")]
    deleted = [("patch/status", "default/a"), ("delete", "default/a")]
    assert stage.asked() == ([] if waits else deleted)
    ending = " (in kube-scheduler memory)." if waits and minor == 36 else ""
    assert stage.recorder.events == [
        ("a", "Preempted", "Preempting", f"Preempted by pod uid-vip on node n1{ending}")
    ]


async def test_synchronous_preemption_returns_the_first_error() -> None:
    stage = Stage(pod("a", on="n1"))
    assert await stage.do(stage.plugin.evictions.before_requeueing(stage.candidate, stage.preemptor)) is None
    stage.api.reject = lambda request: errors.internal("no") if request.verb == "delete" else None
    status = await stage.do(stage.plugin.evictions.before_requeueing(stage.candidate, stage.preemptor))
    assert status is not None
    assert status.code is Code.Error
    assert status.message() == "preemption: Internal error occurred: no"


@pytest.mark.parametrize(("terminating", "background"), [(False, True), (True, False)])
def test_post_filter_begins_nothing_when_all_victims_are_terminating(
    terminating: bool, background: bool
) -> None:
    victim = pod("a", cpu="3", on="n1")
    if terminating:
        victim.pod.metadata.deletionTimestamp.seconds = 1
    stage = Stage(victim)
    stage.desk.add_nodes(node("n1"))
    stage.desk.cache.add_pod(victim)
    framework = stage.desk.framework
    stage.desk.cache.update_snapshot(framework.snapshot)
    result = _post_filter(stage)
    assert result.nominating_info is not None
    assert result.nominating_info.node_name == "n1"
    assert result.candidate is not None
    assert result.background is background
    assert not stage.plugin.evictions.is_preempting("uid-vip")
    if result.begin is not None:
        result.begin()
    assert stage.plugin.evictions.is_preempting("uid-vip") is background


def _post_filter(stage: Stage) -> Any:
    framework, state = stage.desk.framework, CycleState()
    with pytest.raises(FitError) as caught:
        find_feasible(framework, state, stage.preemptor, framework.snapshot)
    statuses = caught.value.diagnosis.statuses
    result, status = framework.run_post_filter_plugins(state, stage.preemptor, statuses)
    assert status.is_success
    return result
