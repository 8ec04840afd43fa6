"""The shells of Jobs over an API server in memory: caches that lag, adoption, refusals, orphans, expiry."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from nominee.controllers.jobs.pods import TRACKING
from nominee.controllers.jobs.shell.expiry import FinishedJobs
from nominee.controllers.jobs.shell.jobs import JobController, OrphanedPods
from nominee.controllers.shell.controller import Context, Runner
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import copy_of, is_controlled_by
from nominee.machinery.api.pb import batch, core, meta
from nominee.machinery.client.api_client import WatchEvent
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire.codec import from_json
from tests.controllers.builders import EPOCH, condition, owned_by, pod, stamp
from tests.controllers.contexts import context_of
from tests.controllers.jobs.builders import UID, job, tracked
from tests.support.fake_api import FakeApi

OWNERS = [{**owned_by(UID, kind="Job", name="work"), "apiVersion": "batch/v1"}]
LABELS = {"job": "work"}
COMPLETE = {"conditions": [condition("Complete", lastTransitionTime=stamp(0))]}


class LaggingApi(FakeApi):
    """A server whose watches of one kind stop while `gate` is closed."""

    lags: Kind[Any] = kinds.JOB

    def __post_init__(self) -> None:
        super().__post_init__()
        self.gate = anyio.Event()
        self.gate.set()

    async def watch_batches(
        self, kind: Kind[Any], namespace: str = "", **more: Any
    ) -> AsyncGenerator[Sequence[WatchEvent[Any]], None]:
        async for events in super().watch_batches(kind, namespace, **more):
            if kind is self.lags:
                await self.gate.wait()
            yield events


@asynccontextmanager
async def _running(api: FakeApi, kind: type[Runner] = JobController) -> AsyncIterator[FakeClock]:
    clock = FakeClock(float(EPOCH))
    context: Context = context_of(api, clock)
    controller = kind(context)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(context.informers.run)
        tasks.start_soon(context.recorders.run)
        await context.informers.wait_synced()
        tasks.start_soon(controller.run)
        await clock.advance(3)
        yield clock
        tasks.cancel_scope.cancel()


def _job(api: FakeApi) -> batch.Job:
    return api.all_of(kinds.JOB)[0]


def _end(api: FakeApi, of: core.Pod, phase: str = "Succeeded") -> None:
    ended = copy_of(of)
    ended.status.phase = phase
    api.put(ended)


async def test_a_job_is_resumed_when_its_pods_are_created() -> None:
    suspended = [condition("Suspended", lastTransitionTime=stamp(0))]
    api = FakeApi.of(job(completions=1, status={"conditions": suspended}))
    api.hold["create"] = anyio.Event()
    async with _running(api) as clock:
        await clock.advance(5)
        before = clock.now()
        api.hold.pop("create").set()
        await clock.advance(3)
    status = _job(api).status
    assert [(c.type, c.status) for c in status.conditions] == [("Suspended", "False")]
    assert status.conditions[0].lastTransitionTime.seconds == status.startTime.seconds == int(before)


async def test_a_job_runs_to_its_end() -> None:
    api = FakeApi.of(job(completions=3, parallelism=2))
    async with _running(api) as clock:
        for _ in range(2):
            for each in api.all_of(kinds.POD):
                if not each.status.phase:
                    _end(api, each)
            await clock.advance(3)
    status = _job(api).status
    assert [c.type for c in status.conditions] == ["SuccessCriteriaMet", "Complete"]
    assert (status.succeeded, len(api.all_of(kinds.POD))) == (3, 3)
    assert not any(each.metadata.finalizers for each in api.all_of(kinds.POD))
    assert [reason for reason, _, _ in api.events] == ["SuccessfulCreate"] * 3 + ["Completed"]


async def test_no_pod_is_created_twice_while_the_cache_of_jobs_lags() -> None:
    api = LaggingApi()
    api.put(job(completions=2, parallelism=1))
    async with _running(api) as clock:
        (first,) = api.all_of(kinds.POD)
        api.gate = anyio.Event()
        _end(api, first)
        await clock.advance(10)
        # The counter is raised, and the cache shows neither it nor the pod as uncounted.
        assert _job(api).status.succeeded == 1
        assert len(api.all_of(kinds.POD)) == 2
        second = next(each for each in api.all_of(kinds.POD) if not each.status.phase)
        _end(api, second)
        await clock.advance(10)
        assert len(api.all_of(kinds.POD)) == 2
        assert _job(api).status.succeeded == 1
        api.gate.set()
        await clock.advance(10)
    assert (_job(api).status.succeeded, len(api.all_of(kinds.POD))) == (2, 2)


async def test_a_pod_that_the_watch_shows_during_a_release_is_not_created_twice() -> None:
    stray = tracked(pod("stray", uid="s", labels={"job": "other"}, owners=OWNERS, phase="Running"))
    api = LaggingApi.of(job(), stray)
    assert isinstance(api, LaggingApi)
    api.lags, api.gate = kinds.POD, anyio.Event()
    async with _running(api) as clock:
        assert len(api.all_of(kinds.POD)) == 2
        api.hold["patch"] = anyio.Event()
        changed = copy_of(_job(api))
        changed.metadata.labels["a"] = "b"
        api.put(changed)
        await clock.advance(3)  # the pods are read, without the new one; the stray is being released
        api.gate.set()
        await clock.advance(3)
        api.hold.pop("patch").set()
        await clock.advance(3)
    assert [request.kind for request in api.requests if request.verb == "create"] == ["Pod"]


@pytest.mark.parametrize(
    "change", [{"uid": "another"}, {"deletionTimestamp": stamp(1)}], ids=["created again", "deleted"]
)
async def test_a_job_of_which_the_cache_is_old_adopts_nothing(change: dict[str, str]) -> None:
    api = LaggingApi.of(job(), pod("orphan", uid="o", labels=LABELS, phase="Running"))
    assert isinstance(api, LaggingApi)
    api.hold["get/jobs"] = anyio.Event()
    async with _running(api) as clock:
        api.gate = anyio.Event()
        live = copy_of(_job(api))
        live.metadata.MergeFrom(from_json(meta.ObjectMeta, change))
        api.put(live)
        api.hold.pop("get/jobs").set()
        await clock.advance(3)
        assert not api.pod("orphan").metadata.ownerReferences
        assert len(api.all_of(kinds.POD)) == 1


async def test_an_orphan_is_adopted_with_a_finalizer_and_a_stray_is_released_without() -> None:
    stray = tracked(pod("stray", uid="s", labels={"job": "other"}, owners=OWNERS, phase="Running"))
    orphan = pod("orphan", uid="o", labels=LABELS, phase="Running")
    api = FakeApi.of(job(), orphan, stray)
    async with _running(api):
        assert is_controlled_by(api.pod("orphan"), _job(api))
        assert list(api.pod("orphan").metadata.finalizers) == [TRACKING]
        assert not api.pod("stray").metadata.ownerReferences
        assert not api.pod("stray").metadata.finalizers
        assert _job(api).status.active == 1
    assert len(api.all_of(kinds.POD)) == 2


async def test_a_refused_creation_is_tried_again_after_a_second() -> None:
    """Source: job_controller.go, DefaultJobApiBackOff: at 0, 1 and 3 seconds."""
    api = FakeApi.of(job(completions=1, parallelism=1))
    refused = api.rejections["create"] = [errors.forbidden(kinds.POD, "", "exceeded quota")] * 20
    async with _running(api) as clock:
        await clock.advance(3)
    assert len(refused) in (17, 18)


async def test_a_refused_creation_is_recorded_and_the_others_are_counted() -> None:
    api = FakeApi.of(job(completions=3, parallelism=3))
    api.rejections["create"] = [errors.forbidden(kinds.POD, "", "exceeded quota")]
    async with _running(api) as clock:
        await clock.advance(60)
    assert any(reason == "FailedCreate" and "exceeded quota" in note for reason, _, note in api.events)
    assert (_job(api).status.active, len(api.all_of(kinds.POD))) == (3, 3)


async def test_a_job_of_another_controller_is_left_alone() -> None:
    api = FakeApi.of(job(managedBy="example.com/other"))
    async with _running(api):
        pass
    assert not api.requests


async def test_finalizers_of_orphaned_pods_are_removed() -> None:
    for of, removed in (
        (None, True),
        (job(status=COMPLETE), True),
        (job(), False),
        (job(managedBy="example.com/other", status=COMPLETE), False),
    ):
        api = FakeApi.of(tracked(pod("p", uid="p", labels=LABELS, owners=OWNERS, deleted=True)))
        if of is not None:
            api.put(of)
        async with _running(api, OrphanedPods):
            pass
        assert (TRACKING not in api.pod("p").metadata.finalizers) is removed


async def test_the_finalizers_of_a_job_that_is_deleted_are_removed() -> None:
    api = FakeApi.of(job(), tracked(pod("p", uid="p", labels=LABELS, owners=OWNERS)))
    async with _running(api, OrphanedPods) as clock:
        assert api.pod("p").metadata.finalizers
        api.remove(kinds.JOB, "work")
        await clock.advance(1)
    assert not api.pod("p").metadata.finalizers


async def test_a_finished_job_is_deleted_with_its_dependents_when_its_time_is_over() -> None:
    api = FakeApi.of(job(ttlSecondsAfterFinished=60, status=COMPLETE))
    async with _running(api, FinishedJobs) as clock:
        await clock.advance(55)
        assert api.all_of(kinds.JOB)
        await clock.advance(5)
    (request,) = api.requests
    assert (request.verb, request.options["propagation_policy"]) == ("delete", "Foreground")
    assert request.options["uid"] == UID
