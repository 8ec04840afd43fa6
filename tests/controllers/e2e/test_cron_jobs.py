"""CronJobs through kubectl against a cluster of real processes, observation by observation.

Page: https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ ("CronJob"). All CronJobs are
created at once, so that the module does not wait for each. The name of a Job is that of a minute, so that a
schedule of seconds finds the Job of the same minute, as upstream's.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from nominee.machinery.runtime.clock import parse_rfc3339
from tests.apiserver.rest.test_kubectl import KUBECTL, Session
from tests.controllers.e2e.test_jobs import body as job
from tests.controllers.e2e.test_jobs import events_of, pods_of
from tests.support.eventually import eventually_sync

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session"),
]
STAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp"
OFTEN, NEVER = "@every 3s", "0 0 1 1 *"


def body(name: str, schedule: str, *, runs: str = "300ms", code: int = 0, **spec: Any) -> dict[str, Any]:
    """Return a CronJob whose Jobs have one pod that runs so long."""
    template = {
        "metadata": {"labels": {"of": name}},
        "spec": job("", runs=runs, code=code, backoffLimit=0)["spec"],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


AT_ONCE = [
    body("often", OFTEN),
    body("short-history", OFTEN, successfulJobsHistoryLimit=0),
    body("failing", OFTEN, code=1),
    body("forbids", NEVER, runs="", suspend=True, concurrencyPolicy="Forbid"),
    body("replaces", NEVER, runs="", suspend=True, concurrencyPolicy="Replace"),
    body("allows", OFTEN, runs=""),
    body("asleep", OFTEN, suspend=True),
    body("yearly", NEVER, timeZone="Asia/Tokyo"),
    body("late", NEVER, suspend=True),
    body("later", NEVER, suspend=True, startingDeadlineSeconds=20),
    body("changed", NEVER),
]


@pytest.fixture(scope="module")
def kubectl(batch_session: Session) -> Session:
    """Return a session with a cluster in which the CronJobs have begun."""
    listed = {"apiVersion": "v1", "kind": "List", "items": AT_ONCE}
    batch_session("apply", "-f", "-", stdin=json.dumps(listed))
    return batch_session


def status_of(kubectl: Session, name: str, *fields: str) -> Any:
    """Wait until a CronJob's status has these fields, and return it."""
    return eventually_sync(
        lambda: kubectl.json("get", "cronjob", name)["status"],
        lambda found: all(field in found for field in fields),
    )


def jobs_of(kubectl: Session, name: str) -> list[Any]:
    found: list[Any] = kubectl.json("get", "jobs", "-l", f"of={name}")["items"]
    return sorted(found, key=lambda each: str(each["metadata"]["annotations"].get(STAMP)))


def patch(kubectl: Session, name: str, *words: str, **change: Any) -> None:
    kubectl("patch", "cronjob", name, *words, "-p", json.dumps(change))


def test_a_job_is_created_at_its_time(kubectl: Session) -> None:
    """Source: CronJob, "Writing a CronJob spec", "Job template" (annotation); getJobFromTemplate2."""
    status = status_of(kubectl, "often", "lastScheduleTime", "lastSuccessfulTime")
    assert status["lastSuccessfulTime"] >= "2026"
    first = jobs_of(kubectl, "often")[0]["metadata"]
    (owner,) = first["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "often", True)
    minutes = int(parse_rfc3339(first["annotations"][STAMP])) // 60
    assert first["name"] == f"often-{minutes}"
    assert f"Created job {first['name']}" in events_of(kubectl, "often", "SuccessfulCreate")
    assert f"Saw completed job: {first['name']}, condition: Complete" in events_of(
        kubectl, "often", "SawCompletedJob"
    )


def test_old_jobs_are_deleted(kubectl: Session) -> None:
    """Source: CronJob, "Jobs history limits"."""
    note = events_of(kubectl, "short-history", "SuccessfulDelete")[0]
    assert note.startswith("Deleted job short-history-")


def test_a_failed_job_is_no_success(kubectl: Session) -> None:
    """Source: cronjob_controllerv2.go, syncCronJob (lastSuccessfulTime)."""
    assert events_of(kubectl, "failing", "SawCompletedJob")[0].endswith("condition: Failed")
    assert "lastSuccessfulTime" not in status_of(kubectl, "failing", "lastScheduleTime")


def _with_a_running_job(kubectl: Session, name: str) -> str:
    """Let a Job run that the status lists, and then the next time be soon; return the Job's name."""
    running = f"{name}-running"
    kubectl("create", "job", running, f"--from=cronjob/{name}")
    uid = kubectl.json("get", "job", running)["metadata"]["uid"]
    active = {"apiVersion": "batch/v1", "kind": "Job", "name": running, "namespace": "default", "uid": uid}
    patch(kubectl, name, "--subresource=status", "--type=merge", status={"active": [active]})
    patch(kubectl, name, spec={"schedule": OFTEN, "suspend": False})
    return running


def test_a_job_that_runs_forbids_another_one(kubectl: Session) -> None:
    """Source: CronJob, "Concurrency policy" (Forbid)."""
    name = _with_a_running_job(kubectl, "forbids")
    note = "Not starting job because prior execution is running and concurrency policy is Forbid"
    assert events_of(kubectl, "forbids", "JobAlreadyActive")[0] == note
    assert [each["metadata"]["name"] for each in jobs_of(kubectl, "forbids")] == [name]


def test_active_jobs_are_listed(kubectl: Session) -> None:
    """Source: CronJobStatus (active)."""
    active = status_of(kubectl, "allows", "active")["active"][0]  # there is another one in each minute
    found = jobs_of(kubectl, "allows")[0]["metadata"]
    assert (active["kind"], active["name"], active["uid"]) == ("Job", found["name"], found["uid"])
    columns = kubectl("get", "cronjob", "allows", "--no-headers").split()
    assert columns[:5] == ["allows", "@every", "3s", "<none>", "False"]
    assert int(columns[5]) >= 1


def test_a_suspended_cron_job_creates_nothing(kubectl: Session) -> None:
    """Source: CronJob, "Schedule suspension"."""
    status_of(kubectl, "often", "lastScheduleTime")
    assert jobs_of(kubectl, "asleep") == []
    patch(kubectl, "asleep", spec={"suspend": False})
    status_of(kubectl, "asleep", "lastScheduleTime")


def test_a_time_zone(kubectl: Session) -> None:
    """Source: CronJob, "Time zones"."""
    assert kubectl("get", "cronjob", "yearly", "--no-headers").split()[6] == "Asia/Tokyo"
    assert jobs_of(kubectl, "yearly") == []
    refused = kubectl.fails("patch", "cronjob", "yearly", "-p", '{"spec": {"timeZone": "Nowhere/At_All"}}')
    assert "unknown time zone Nowhere/At_All" in refused


def test_a_job_is_created_by_hand(kubectl: Session) -> None:
    """Source: https://kubernetes.io/docs/reference/kubectl/generated/kubectl_create/kubectl_create_job/."""
    kubectl("create", "job", "by-hand", "--from=cronjob/yearly")
    kubectl("wait", "--for=condition=Complete", "job/by-hand", "--timeout=100s")
    seen = events_of(kubectl, "yearly", "UnexpectedJob")
    assert seen[0] == "Saw a job that the controller did not create or forgot: by-hand"
    status_of(kubectl, "yearly", "lastSuccessfulTime")


def _was_away(kubectl: Session, name: str) -> None:
    """Let the last Job of a CronJob be of long ago, and resume it with a time every two seconds."""
    patch(
        kubectl,
        name,
        "--subresource=status",
        "--type=merge",
        status={"lastScheduleTime": "2026-01-01T00:00:00Z"},
    )
    patch(kubectl, name, spec={"schedule": "@every 2s", "suspend": False})


def test_too_many_missed_times_are_reported(kubectl: Session) -> None:
    """Source: CronJob, "CronJob limitations" (100 missed schedules)."""
    _was_away(kubectl, "late")
    assert events_of(kubectl, "late", "TooManyMissedTimes")[0].startswith("too many missed start times.")
    assert len(jobs_of(kubectl, "late")) >= 1


def test_a_deadline_bounds_the_times_that_were_missed(kubectl: Session) -> None:
    """Source: CronJob, "Deadline for delayed Job start"."""
    _was_away(kubectl, "later")
    events_of(kubectl, "later", "SuccessfulCreate")
    selector = "involvedObject.name=later,reason=TooManyMissedTimes"
    assert kubectl.json("get", "events", "--field-selector", selector)["items"] == []


def test_a_schedule_is_changed(kubectl: Session) -> None:
    """Source: CronJob, "Modifying a CronJob"."""
    assert jobs_of(kubectl, "changed") == []
    patch(kubectl, "changed", spec={"schedule": OFTEN})
    status_of(kubectl, "changed", "lastScheduleTime")


def test_a_job_that_is_gone_is_noticed(kubectl: Session) -> None:
    """Source: cronjob_controllerv2.go, syncCronJob (MissingJob)."""
    active = status_of(kubectl, "allows", "active")["active"][0]
    kubectl("delete", "job", active["name"])
    assert f"Active job went missing: {active['name']}" in events_of(kubectl, "allows", "MissingJob")


def test_a_cron_job_is_deleted_with_its_jobs(kubectl: Session) -> None:
    """Source: CronJob, "Schedule" (jobs belong to it), kubectl's default propagation."""
    status_of(kubectl, "allows", "active")
    kubectl("delete", "cronjob", "allows")
    eventually_sync(lambda: jobs_of(kubectl, "allows"), lambda found: not found)


def test_jobs_of_a_cron_job_are_orphaned(kubectl: Session) -> None:
    """Source: https://kubernetes.io/docs/tasks/administer-cluster/use-cascading-deletion/ (orphan)."""
    status_of(kubectl, "failing", "lastScheduleTime")
    kubectl("delete", "cronjob", "failing", "--cascade=orphan")
    left = eventually_sync(
        lambda: jobs_of(kubectl, "failing"),
        lambda found: bool(found) and all("ownerReferences" not in each["metadata"] for each in found),
    )
    assert all(pods_of(kubectl, each["metadata"]["name"]) for each in left)


def test_a_job_that_runs_is_replaced(kubectl: Session) -> None:
    """Source: CronJob, "Concurrency policy" (Replace)."""
    name = _with_a_running_job(kubectl, "replaces")
    assert f"Deleted job {name}" in events_of(kubectl, "replaces", "SuccessfulDelete")
    created = events_of(kubectl, "replaces", "SuccessfulCreate")[0]
    (active,) = status_of(kubectl, "replaces", "lastScheduleTime")["active"]
    assert created == f"Created job {active['name']}"


def test_all_cron_jobs_are_deleted_in_the_foreground(kubectl: Session) -> None:
    """Source: https://kubernetes.io/docs/tasks/administer-cluster/use-cascading-deletion/ (foreground)."""
    kubectl("delete", "cronjob", "--all", "--cascade=foreground", "--timeout=100s")
    names = [each["metadata"]["name"] for each in AT_ONCE if each["metadata"]["name"] != "failing"]
    assert all(not jobs_of(kubectl, name) for name in names)
