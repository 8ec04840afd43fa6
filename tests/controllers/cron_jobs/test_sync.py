"""CronJobs: which time is due, the Job for it, and the status, by the core alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nominee.controllers.cron_jobs import sync
from nominee.controllers.cron_jobs.schedules import InvalidScheduleError, due_time, seconds_to_next, with_zone
from nominee.machinery.api.objects import controller_of
from nominee.machinery.api.pb import batch
from nominee.machinery.runtime.clock import parse_rfc3339, rfc3339
from nominee.machinery.wire import codec
from nominee.machinery.wire.values import cron_schedule
from tests.controllers.builders import condition

CREATED, THIRD = "2026-01-01T00:00:30Z", "2026-01-01T03:10:00Z"
FIFTH = "2026-01-05T00:00:"
UNSUPPORTED = ["UnsupportedSchedule"]


def cron_job(
    schedule: str = "0 * * * *", *, status: Mapping[str, Any] | None = None, **spec: Any
) -> batch.CronJob:
    """Return a CronJob as the API server would have it, with its defaults."""
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "app"}]}}
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"completions": 1, "parallelism": 1, "template": pod},
    }
    body = {
        "schedule": schedule,
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": template,
        **spec,
    }
    metadata = {"name": "night", "namespace": "default", "uid": "cron-uid", "creationTimestamp": CREATED}
    return codec.from_json(batch.CronJob, {"metadata": metadata, "spec": body, "status": dict(status or {})})


def ended_job(
    name: str, type_: str = "Complete", *, started: str = CREATED, ended: str = CREATED
) -> batch.Job:
    """Return a finished Job; without `type_` one that runs."""
    status: dict[str, Any] = {"startTime": started}
    if type_:
        status["conditions"] = [condition(type_)]
    if type_ == "Complete":
        status["completionTime"] = ended
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return codec.from_json(batch.Job, {"metadata": metadata, "status": status})


def _due(of: batch.CronJob, now: str) -> tuple[str, list[str]]:
    """Return the time of the Job that is due, "" without one, and the reasons of the events."""
    found = sync.due(of, parse_rfc3339(now))
    return rfc3339(found.time) if found.job is not None else "", [event.reason for event in found.events]


@pytest.mark.parametrize(
    ("of", "now", "time", "reasons"),
    [
        (cron_job(), "2026-01-01T00:59:59Z", "", []),
        (cron_job(), "2026-01-01T01:00:00Z", "2026-01-01T01:00:00Z", []),
        (cron_job(), "2026-01-01T03:10:00Z", "2026-01-01T03:00:00Z", []),
        (cron_job(suspend=True), "2026-01-01T03:10:00Z", "", []),
        (cron_job(status={"lastScheduleTime": "2026-01-01T03:00:00Z"}), "2026-01-01T03:10:00Z", "", []),
        (cron_job(status={"lastScheduleTime": "2026-01-01T02:00:00Z"}), THIRD, "2026-01-01T03:00:00Z", []),
        # 100 times may be missed without a warning.
        (cron_job("* * * * *"), "2026-01-01T01:40:40Z", "2026-01-01T01:40:00Z", []),
        (cron_job("* * * * *"), "2026-01-01T01:41:40Z", "2026-01-01T01:41:00Z", ["TooManyMissedTimes"]),
        (cron_job("* * * * *", startingDeadlineSeconds=9), FIFTH + "08Z", FIFTH + "00Z", []),
        (cron_job(startingDeadlineSeconds=60), "2026-01-01T01:00:59Z", "2026-01-01T01:00:00Z", []),
        (cron_job(startingDeadlineSeconds=60), "2026-01-01T01:01:01Z", "", []),
        (cron_job("0 9 * * *", timeZone="Asia/Tokyo"), "2026-01-02T00:00:01Z", "2026-01-02T00:00:00Z", []),
        (cron_job("TZ=Asia/Tokyo 0 9 * * *"), "2026-01-02T00:00:01Z", "2026-01-02T00:00:00Z", UNSUPPORTED),
        (cron_job("0 0 31 2 *"), "2026-01-02T00:00:01Z", "", ["InvalidSchedule"]),
        (cron_job("nonsense"), "2026-01-02T00:00:01Z", "", ["UnparseableSchedule"]),
        (cron_job(timeZone="Nowhere/At_All"), "2026-01-02T00:00:01Z", "", ["UnknownTimeZone"]),
        (cron_job("@every 45m"), "2026-01-01T02:20:00Z", "2026-01-01T02:15:30Z", []),
    ],
)  # fmt: skip
def test_which_time_is_due(of: batch.CronJob, now: str, time: str, reasons: list[str]) -> None:
    assert _due(of, now) == (time, reasons)


def _active(name: str = "night-1") -> dict[str, Any]:
    return {"active": [{"name": name, "namespace": "default", "uid": f"uid-{name}"}]}


@pytest.mark.parametrize(
    ("policy", "time", "reasons", "replaces"),
    [
        ("Allow", "2026-01-01T01:00:00Z", [], False),
        ("Forbid", "", ["JobAlreadyActive"], False),
        ("Replace", "2026-01-01T01:00:00Z", [], True),
    ],
)
def test_the_concurrency_policies(policy: str, time: str, reasons: list[str], replaces: bool) -> None:
    of = cron_job(concurrencyPolicy=policy, status=_active())
    assert _due(of, "2026-01-01T01:00:01Z") == (time, reasons)
    assert sync.due(of, parse_rfc3339("2026-01-01T01:00:01Z")).replaces is replaces
    of.ClearField("status")
    assert _due(of, "2026-01-01T01:00:01Z")[0] == "2026-01-01T01:00:00Z"


def test_the_job_of_a_time_is_created_once() -> None:
    of = cron_job()
    found = sync.due(of, parse_rfc3339("2026-01-01T01:00:01Z"))
    assert found.job is not None
    of.status.active.add(name=found.job.metadata.name, namespace="default")
    assert _due(of, "2026-01-01T01:00:01Z") == ("", [])


def test_the_job_has_the_template_and_the_time() -> None:
    of = cron_job("0 9 * * *", timeZone="Asia/Tokyo")
    made = sync.new_job(of, parse_rfc3339("2026-01-02T00:00:00Z"))
    assert made.metadata.name == "night-29455200"
    assert dict(made.metadata.labels) == {"a": "b"}
    assert dict(made.metadata.annotations) == {
        "c": "d",
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-02T09:00:00+09:00",
    }
    owner = controller_of(made)
    assert owner is not None
    assert (owner.kind, owner.uid, owner.blockOwnerDeletion) == ("CronJob", "cron-uid", True)
    assert made.spec.completions == 1
    of.spec.ClearField("timeZone")
    annotations = sync.new_job(of, parse_rfc3339("2026-01-02T00:00:00Z")).metadata.annotations
    assert annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("schedule", "status", "now", "seconds"),
    [
        ("0 * * * *", {}, "2026-01-01T00:30:00Z", 1800.1),
        ("0 * * * *", {}, "2026-01-01T01:30:00Z", 1800.1),  # after the one that is due
        ("0 * * * *", {"lastScheduleTime": "2026-01-01T01:00:00Z"}, "2026-01-01T05:30:00Z", 1800.1),
        ("@every 1h", {}, "2026-01-01T05:20:30Z", 2400.1),
        ("0 0 31 2 *", {}, "2026-01-01T05:20:30Z", None),
    ],
)
def test_when_it_is_looked_at_again(
    schedule: str, status: dict[str, Any], now: str, seconds: float | None
) -> None:
    of, parsed = cron_job(schedule, status=status), cron_schedule.parse(schedule)
    found = seconds_to_next(of, parsed, parse_rfc3339(now))
    assert found < 0 if seconds is None else found == pytest.approx(seconds)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_a_schedule_without_times_is_an_error(zone: str) -> None:
    of, now = cron_job("0 0 30 2 *", timeZone=zone), parse_rfc3339("2026-06-01T00:00:00Z")
    with pytest.raises(
        InvalidScheduleError, match="time difference between two schedules is less than 1 second"
    ):
        due_time(of, cron_schedule.parse(with_zone(of)), now)
    found = sync.due(of, now)
    assert (found.job, found.again, [event.reason for event in found.events]) == (
        None, None, ["InvalidSchedule"],
    )  # fmt: skip
    assert sync.seconds_to_change(of, now) < 0


def test_the_states_of_jobs_are_entered_into_the_status() -> None:
    of = cron_job(status=_active())
    assert sync.note_job(of, ended_job("night-1", "")) is None
    forgotten = sync.note_job(of, ended_job("other", ""))
    assert forgotten is not None
    assert forgotten.note == "Saw a job that the controller did not create or forgot: other"
    done = sync.note_job(of, ended_job("night-1", ended="2026-01-01T03:00:00Z"))
    assert done is not None
    assert (done.reason, done.note) == ("SawCompletedJob", "Saw completed job: night-1, condition: Complete")
    assert not of.status.active
    assert rfc3339(of.status.lastSuccessfulTime) == "2026-01-01T03:00:00Z"
    assert sync.note_job(of, ended_job("night-1", ended="2026-01-01T03:00:00Z")) is None
    assert sync.note_job(of, ended_job("older", ended="2026-01-01T02:00:00Z")) is None
    assert sync.note_job(of, ended_job("failed", "Failed")) is None
    assert rfc3339(of.status.lastSuccessfulTime) == "2026-01-01T03:00:00Z"


def test_which_jobs_are_beyond_the_history() -> None:
    times = [f"2026-01-01T0{hour}:00:00Z" for hour in range(6)]
    done = [ended_job(f"done-{hour}", started=time) for hour, time in enumerate(times)]
    failed = [ended_job(f"failed-{hour}", "Failed", started=time) for hour, time in enumerate(times[:3])]
    of = cron_job()
    old = sync.old_jobs(of, [*reversed(done), *failed, ended_job("runs", "")])
    assert [job.metadata.name for job in old] == ["done-0", "done-1", "done-2", "failed-0", "failed-1"]
    of.spec.ClearField("failedJobsHistoryLimit")
    of.spec.successfulJobsHistoryLimit = 0
    assert len(sync.old_jobs(of, [*done, *failed])) == len(done)
