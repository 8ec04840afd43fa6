"""CronJobs through kubectl against a cluster of real processes, observation by observation.

Page: https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ ("CronJob"); functions are of
kube-controller-manager 1.36, pkg/controller/cronjob. All CronJobs are created at once, so that the module
does not wait for each. The name of a Job is that of a minute, so that a schedule of seconds finds the Job of
the same minute, as upstream's.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from nominee.machinery.runtime.clock import SystemClock, parse_rfc3339, rfc3339
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
    body("concurrent", NEVER, runs="", suspend=True),
    body("paused", OFTEN, runs="3s"),
    body("no-failures", OFTEN, code=1, failedJobsHistoryLimit=0),
    body("newest", NEVER, suspend=True, successfulJobsHistoryLimit=1),
    body("modified", NEVER, runs="", suspend=True),
    body("missed", NEVER, suspend=True),
    body("missed-in-tokyo", NEVER, suspend=True, timeZone="Asia/Tokyo"),
    body("missed-too-long", NEVER, suspend=True, startingDeadlineSeconds=60),
    body("in-background", NEVER, runs="", suspend=True),
]
YEAR = int(rfc3339(SystemClock().now())[:4])
"""Its first minute is the last one of the schedule that is never due while the tests run."""


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


def _create_now(kubectl: Session, name: str, job_name: str) -> dict[str, Any]:
    """Create a Job of a CronJob as a user does."""
    kubectl("create", "job", job_name, f"--from=cronjob/{name}")
    found: dict[str, Any] = kubectl.json("get", "job", job_name)
    return found


def _resume_after_new_year(kubectl: Session, name: str) -> None:
    """Resume a CronJob that has been suspended for so long that it missed one time."""
    status = {"lastScheduleTime": f"{YEAR - 1}-06-01T00:00:00Z"}
    patch(kubectl, name, "--subresource=status", "--type=merge", status=status)
    patch(kubectl, name, spec={"suspend": False})


def test_a_time_that_was_missed_while_suspended_is_made_up(kubectl: Session) -> None:
    """Source: CronJob, "Schedule suspension" (missed Jobs are scheduled at once); mostRecentScheduleTime."""
    _resume_after_new_year(kubectl, "missed")
    time = f"{YEAR}-01-01T00:00:00Z"
    created = events_of(kubectl, "missed", "SuccessfulCreate")
    assert created == [f"Created job missed-{int(parse_rfc3339(time)) // 60}"]
    (made,) = jobs_of(kubectl, "missed")
    assert made["metadata"]["annotations"][STAMP] == time
    # It is the time of the schedule, not that of the creation.
    status = eventually_sync(
        lambda: kubectl.json("get", "cronjob", "missed")["status"],
        lambda found: not found["lastScheduleTime"].startswith(str(YEAR - 1)),
    )
    assert status["lastScheduleTime"] == time


def test_the_annotation_has_the_time_zone(kubectl: Session) -> None:
    """Source: CronJob, "Job template" (cronjob-scheduled-timestamp); getJobFromTemplate2 (LoadLocation)."""
    _resume_after_new_year(kubectl, "missed-in-tokyo")
    events_of(kubectl, "missed-in-tokyo", "SuccessfulCreate")
    (made,) = jobs_of(kubectl, "missed-in-tokyo")
    assert made["metadata"]["annotations"][STAMP] == f"{YEAR}-01-01T00:00:00+09:00"
    last = eventually_sync(
        lambda: kubectl.json("get", "cronjob", "missed-in-tokyo")["status"]["lastScheduleTime"],
        lambda found: not found.startswith(f"{YEAR - 1}-06"),
    )
    assert last == f"{YEAR - 1}-12-31T15:00:00Z"


def test_a_time_that_was_missed_by_more_than_the_deadline_is_skipped(kubectl: Session) -> None:
    """Source: CronJob, "Deadline for delayed Job start"; mostRecentScheduleTime (earliestTime)."""
    _resume_after_new_year(kubectl, "missed-too-long")
    # Only the times of the new schedule have Jobs.
    patch(kubectl, "missed-too-long", spec={"schedule": OFTEN})
    notes = events_of(kubectl, "missed-too-long", "SuccessfulCreate")
    minutes = [int(note.rpartition("-")[2]) for note in notes]
    assert all(minute * 60 > parse_rfc3339(f"{YEAR}-01-02T00:00:00Z") for minute in minutes)


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


def test_two_jobs_run_at_the_same_time(kubectl: Session) -> None:
    """Source: CronJob, "Concurrency policy" (Allow is the default)."""
    first = _with_a_running_job(kubectl, "concurrent")
    active = eventually_sync(
        lambda: kubectl.json("get", "cronjob", "concurrent")["status"].get("active", []),
        lambda found: len(found) >= 2,
    )
    assert active[0]["name"] == first
    assert int(kubectl("get", "cronjob", "concurrent", "--no-headers").split()[5]) >= 2
    selector = "involvedObject.name=concurrent,reason=JobAlreadyActive"
    assert kubectl.json("get", "events", "--field-selector", selector)["items"] == []


def test_suspension_leaves_a_running_job_alone(kubectl: Session) -> None:
    """Source: CronJob, "Schedule suspension": it does not affect Jobs that have started."""
    active = status_of(kubectl, "paused", "active")["active"][0]
    patch(kubectl, "paused", spec={"suspend": True})
    kubectl("wait", "--for=condition=Complete", f"job/{active['name']}", "--timeout=100s")
    assert f"Saw completed job: {active['name']}, condition: Complete" in events_of(
        kubectl, "paused", "SawCompletedJob"
    )
    status = eventually_sync(
        lambda: kubectl.json("get", "cronjob", "paused"), lambda found: not found["status"].get("active")
    )
    assert status["spec"]["suspend"] is True


def test_failed_jobs_have_a_limit_of_their_own(kubectl: Session) -> None:
    """Source: CronJob, "Jobs history limits" (failedJobsHistoryLimit); cleanupFinishedJobs."""
    assert events_of(kubectl, "no-failures", "SuccessfulDelete")[0].startswith("Deleted job no-failures-")
    spec = kubectl.json("get", "cronjob", "no-failures")["spec"]
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (
        3,
        0,
    )  # 3 and 1 by default
    default = kubectl.json("get", "cronjob", "allows")["spec"]
    assert (default["successfulJobsHistoryLimit"], default["failedJobsHistoryLimit"]) == (3, 1)


def test_the_oldest_jobs_are_deleted_first_and_while_suspended(kubectl: Session) -> None:
    """Source: removeOldestJobs (byJobStartTime, then the name), before syncCronJob looks at suspend."""
    for name in ("newest-1", "newest-2", "newest-3"):
        _create_now(kubectl, "newest", name)
    for name in ("newest-1", "newest-2"):
        kubectl("wait", "--for=delete", f"job/{name}", "--timeout=100s")
    left = jobs_of(kubectl, "newest")
    assert left[0]["metadata"]["name"] == "newest-3"
    assert pods_of(kubectl, "newest-1") == []  # with their pods


def test_a_new_template_is_for_new_jobs(kubectl: Session) -> None:
    """Source: CronJob, "Modifying a CronJob": Jobs that have started are not updated."""
    before = _create_now(kubectl, "modified", "modified-1")
    kubectl("set", "image", "cronjob/modified", "c=new")
    after = _create_now(kubectl, "modified", "modified-2")
    images = [each["spec"]["template"]["spec"]["containers"][0]["image"] for each in (before, after)]
    assert images == ["app", "new"]
    old = kubectl.json("get", "job", "modified-1")
    assert old["spec"]["template"] == before["spec"]["template"]


def test_a_job_has_the_metadata_of_the_template(kubectl: Session) -> None:
    """Source: CronJob, "Job template" (labels and annotations for the templated Jobs); copyLabels."""
    cron_job = body("labelled", OFTEN, runs="")
    cron_job["spec"]["jobTemplate"]["metadata"]["annotations"] = {"example.com/note": "of the template"}
    kubectl("create", "-f", "-", stdin=json.dumps(cron_job))
    status_of(kubectl, "labelled", "active")
    (made, *_) = jobs_of(kubectl, "labelled")
    assert made["metadata"]["labels"] == {"of": "labelled"}
    assert set(made["metadata"]["annotations"]) == {"example.com/note", STAMP}
    (pod, *_) = eventually_sync(lambda: pods_of(kubectl, made["metadata"]["name"]), bool)
    assert "of" not in pod["metadata"]["labels"]
    assert "annotations" not in pod["metadata"]


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("61 * * * *", 'Invalid value: "61 * * * *": end of range (61) above maximum (59): 61'),
        ("* * *", 'Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]'),
        ("TZ=UTC 0 * * * *", "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
    ],
)
def test_a_schedule_that_cannot_be_read_is_refused(kubectl: Session, schedule: str, problem: str) -> None:
    """Source: CronJob, "Schedule syntax" and "Unsupported TimeZone specification"; validateScheduleFormat."""
    refused = kubectl.fails("create", "-f", "-", stdin=json.dumps(body("refused", schedule)))
    assert f'spec.schedule: Invalid value: "{schedule}": ' in refused
    assert problem in refused


def test_a_name_has_room_for_the_names_of_the_jobs(kubectl: Session) -> None:
    """Source: CronJob (the name must be no longer than 52 characters); ValidateCronJobCreate."""
    refused = kubectl.fails("create", "-f", "-", stdin=json.dumps(body("n" * 53, NEVER)))
    assert "metadata.name: Invalid value" in refused
    assert "must be no more than 52 characters" in refused
    kubectl("create", "-f", "-", stdin=json.dumps(body("n" * 52, NEVER)))


def test_a_job_that_a_quota_forbids_is_an_event(kubectl: Session) -> None:
    """Source: syncCronJob (FailedCreate); concepts/policy/resource-quotas (count/)."""
    kubectl("create", "namespace", "full")
    kubectl("create", "quota", "jobs", "-n", "full", "--hard=count/jobs.batch=0")
    kubectl("wait", "-n", "full", "--for=jsonpath={.status.hard}", "quota/jobs", "--timeout=60s")
    kubectl("create", "-n", "full", "-f", "-", stdin=json.dumps(body("forbidden", OFTEN)))
    find = ("get", "events", "-n", "full", "--field-selector", "reason=FailedCreate")
    note = eventually_sync(lambda: kubectl.json(*find)["items"], bool)[0]["message"]
    assert note.startswith('Error creating job: jobs.batch "forbidden-')
    assert "is forbidden: exceeded quota: jobs" in note
    assert "lastScheduleTime" not in kubectl.json("get", "cronjob", "-n", "full", "forbidden")["status"]
    kubectl("delete", "namespace", "full", "--wait=false")


def test_a_cron_job_is_described(kubectl: Session) -> None:
    """Source: tasks/job/automated-tasks-with-cron-jobs; kubectl's describe.go (describeCronJob)."""
    status_of(kubectl, "often", "lastScheduleTime")
    events_of(kubectl, "often", "SawCompletedJob")
    text = " ".join(kubectl("describe", "cronjob", "often").split())
    for line in (
        "Schedule: @every 3s Concurrency Policy: Allow Suspend: False",
        "Successful Job History Limit: 3 Failed Job History Limit: 1",
        "Starting Deadline Seconds: <unset>",
        "cronjob-controller Created job often-",
    ):
        assert line in text


def test_the_columns_of_kubectl(kubectl: Session) -> None:
    """Source: tasks/job/automated-tasks-with-cron-jobs; pkg/printers (printCronJob)."""
    header, row = kubectl("get", "cronjob", "yearly", "-o", "wide").splitlines()
    columns = "NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST SCHEDULE AGE CONTAINERS IMAGES SELECTOR"
    assert " ".join(header.split()) == columns
    cells = row.split()
    assert cells[:9] == ["yearly", *NEVER.split(), "Asia/Tokyo", "False", "0"]
    assert (cells[9], cells[-3:]) == ("<none>", ["c", "app", "<none>"])


def test_jobs_go_in_the_background(kubectl: Session) -> None:
    """Source: https://kubernetes.io/docs/tasks/administer-cluster/use-cascading-deletion/ (background)."""
    made = _create_now(kubectl, "in-background", "in-background-1")
    eventually_sync(lambda: pods_of(kubectl, "in-background-1"), bool)
    kubectl("delete", "cronjob", "in-background", "--cascade=background")
    assert "not found" in kubectl.fails("get", "cronjob", "in-background")
    kubectl("wait", "--for=delete", f"job/{made['metadata']['name']}", "--timeout=100s")
    eventually_sync(lambda: pods_of(kubectl, "in-background-1"), lambda found: not found)


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
