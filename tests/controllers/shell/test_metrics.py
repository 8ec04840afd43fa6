"""The metrics of queues, Jobs and CronJobs under upstream's names.

Source: component-base, metrics/prometheus/workqueue; the metrics of pkg/controller/job and cronjob.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
import pytest
from prometheus_client import REGISTRY

from nominee.controllers.cron_jobs.shell.cron_jobs import CronJobController
from nominee.controllers.jobs.shell.jobs import JobController
from nominee.controllers.shell.controller import Context, Runner
from nominee.controllers.shell.metrics import MeasuredQueue
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import copy_of
from nominee.machinery.runtime.clock import FakeClock, parse_rfc3339
from tests.controllers.contexts import context_of
from tests.controllers.cron_jobs.test_sync import cron_job
from tests.controllers.jobs.builders import job
from tests.support.fake_api import FakeApi

LABELS = ("completion_mode", "result", "action")


def _value(name: str, /, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@contextmanager
def _more(expected: float, name: str, /, **labels: str) -> Iterator[None]:
    """Check that a series grows by so much."""
    before = _value(name, **labels)
    yield
    assert _value(name, **labels) - before == expected, (name, labels)


async def _play(
    make: Callable[[Context], Runner], api: FakeApi, clock: FakeClock, *phases: str, seconds: float = 3.0
) -> None:
    """Run a controller; in between, its pods come to these phases."""
    context = context_of(api, clock)
    controller = make(context)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(context.informers.run)
        await context.informers.wait_synced()
        tasks.start_soon(controller.run)
        await clock.advance(seconds)
        for phase in phases:
            for each in api.all_of(kinds.POD):
                if not each.status.phase:
                    ended = copy_of(each)
                    ended.status.phase = phase
                    container = ended.status.containerStatuses.add(name="c")
                    container.state.terminated.exitCode = 3 * (phase == "Failed")
                    api.put(ended)
            await clock.advance(seconds)
        tasks.cancel_scope.cancel()


async def test_a_queue_is_measured() -> None:
    clock, labels = FakeClock(), {"name": "endpoint_slice"}
    queue = MeasuredQueue[str](clock, "endpointslice-controller")
    with (
        _more(2, "workqueue_adds_total", **labels),
        _more(1, "workqueue_retries_total", **labels),
        _more(2, "workqueue_queue_duration_seconds_count", **labels),
        _more(5, "workqueue_queue_duration_seconds_sum", **labels),
        _more(7, "workqueue_work_duration_seconds_sum", **labels),
    ):
        queue.add("a")
        queue.add("a")  # waits already
        queue.add("b")
        assert _value("workqueue_depth", **labels) == 2
        await clock.advance(2)
        assert await queue.get() == "a"
        await clock.advance(1)
        assert await queue.get() == "b"
        await clock.advance(3)
        assert _value("workqueue_unfinished_work_seconds", **labels) == 7
        assert _value("workqueue_longest_running_processor_seconds", **labels) == 4
        queue.done("a")
        queue.done("b")
        queue.add_after("a", 10)
    assert _value("workqueue_depth", **labels) == 0
    assert _value("workqueue_unfinished_work_seconds", **labels) == 0


@pytest.mark.parametrize(
    ("controller", "name"),
    [("daemonset-controller", "daemonset"), ("ttl-after-finished-controller", "ttl_jobs_to_delete")],
)
def test_a_queue_has_upstreams_name(controller: str, name: str) -> None:
    with _more(1, "workqueue_adds_total", name=name):
        MeasuredQueue[str](FakeClock(), controller).add("a")


async def test_a_job_that_completes_is_measured() -> None:
    api, prefix = FakeApi.of(job(completions=2, parallelism=2)), "job_controller_"
    created = dict(zip(LABELS, ("NonIndexed", "success", "pods_created"), strict=True))
    complete = {"completion_mode": "NonIndexed", "result": "succeeded"}
    with (
        _more(1, f"{prefix}job_syncs_total", **created),
        _more(1, f"{prefix}job_sync_duration_seconds_count", **created),
        _more(2, f"{prefix}job_pods_finished_total", **complete),
        _more(1, f"{prefix}jobs_finished_total", **complete, reason="CompletionsReached"),
        _more(2, f"{prefix}terminated_pods_tracking_finalizer_total", event="add"),
        _more(2, f"{prefix}terminated_pods_tracking_finalizer_total", event="delete"),
    ):
        await _play(JobController, api, FakeClock(), "Succeeded", "Succeeded")
    assert api.all_of(kinds.JOB)[0].status.succeeded == 2


async def test_a_job_that_fails_is_measured() -> None:
    rule = {"action": "Count", "onExitCodes": {"operator": "In", "values": [3]}}
    api = FakeApi.of(job(backoffLimit=0, podFailurePolicy={"rules": [rule]}))
    failed = {"completion_mode": "NonIndexed", "result": "failed"}
    with (
        _more(1, "job_controller_job_pods_finished_total", **failed),
        _more(1, "job_controller_jobs_finished_total", **failed, reason="BackoffLimitExceeded"),
        _more(1, "job_controller_pod_failures_handled_by_failure_policy_total", action="Count"),
    ):
        await _play(JobController, api, FakeClock(), "Failed", "Failed")


async def test_the_job_of_another_controller_is_counted() -> None:
    api = FakeApi.of(job(managedBy="example.com/other"))
    with _more(1, "job_controller_jobs_by_external_controller_total", controller_name="example.com/other"):
        await _play(JobController, api, FakeClock())


async def test_the_delay_of_a_cron_jobs_job_is_measured() -> None:
    api, clock = FakeApi.of(cron_job()), FakeClock(parse_rfc3339("2026-01-01T01:00:07Z"))
    name = "cronjob_controller_job_creation_skew_duration_seconds"
    with _more(1, f"{name}_count"), _more(7, f"{name}_sum"):
        await _play(CronJobController, api, clock)
