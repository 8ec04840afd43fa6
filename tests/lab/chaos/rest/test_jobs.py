"""The rule about Jobs at rest: it finds planted violations, and nothing about a correct Job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from nominee.lab.chaos.rest.past.listed_jobs import listed_jobs
from nominee.lab.chaos.rest.state import FINDING_SECONDS_MAX
from nominee.lab.chaos.rest.workloads.jobs import cron_jobs, jobs
from nominee.machinery.api.pb import batch
from nominee.machinery.runtime.clock import rfc3339
from tests.lab.chaos.rest.clusters import NOW, Manifests, manifest, owner, pod, state
from tests.lab.invariants.histories import History

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "uid-work", "controller": True}
TRACKING = ["batch.kubernetes.io/job-tracking"]
FINISHED = [{"type": "Complete", "status": "True"}]
IS_COMPLETE = {"conditions": [{**FINISHED[0], "reason": "CompletionsReached"}]}
ONE = {"active": 1, "ready": 1}


def _cluster(status: dict[str, Any], *phases: str, **spec: Any) -> Manifests:
    """Return a Job with a pod for each phase; of those that ended "!" means that it is still tracked."""
    body = {"completions": 2, "parallelism": 1, "selector": {"matchLabels": {"a": "b"}}, **spec}
    body = {name: value for name, value in body.items() if value is not None}
    body["template"] = {"metadata": {}, "spec": {"containers": []}}
    status = {"startTime": rfc3339(NOW), **status}
    if body.get("suspend"):
        status.setdefault("conditions", [{"type": "Suspended", "status": "True"}])
    status = {name: value for name, value in status.items() if value is not None}
    found = {"job": manifest("Job", "work", spec=body, status=status, metadata={"uid": "uid-work"})}
    found["job"]["apiVersion"] = "batch/v1"
    for number, phase in enumerate(phases):
        tracked = phase == "Running" or phase.endswith("!")
        each = pod(f"p{number}", ownerReferences=[OWNER], finalizers=TRACKING if tracked else [])
        each["status"]["phase"] = phase.removesuffix("!")
        found[f"p{number}"] = each
    return found


def _ending(*phases: str, conditions: Sequence[str] = (), policy: str = "Failed", **spec: Any) -> Manifests:
    """Return a Job that waits for the end of its first pod, which terminates."""
    met = [{"type": each, "status": "True"} for each in conditions]
    live = len(phases) - 1
    status = {"terminating": 1, "active": live, "ready": live, "conditions": met}
    found = _cluster(status, *phases, podReplacementPolicy=policy, **spec)
    found["p0"]["metadata"] |= {"deletionTimestamp": rfc3339(NOW + 20), "deletionGracePeriodSeconds": 30}
    return found


@pytest.mark.parametrize(
    "manifests",
    [
        _cluster(ONE, "Running"),
        _cluster({**ONE, "succeeded": 1}, "Succeeded", "Running"),
        _cluster({"succeeded": 2, "conditions": FINISHED}, "Succeeded", "Succeeded"),
        _cluster({}, suspend=True),
        _cluster({}, managedBy="example.com/other"),
        _cluster({}, parallelism=0),
        _cluster({}, "Failed!", suspend=True, backoffLimitPerIndex=1),
        _cluster({}, "Failed!", parallelism=0, backoffLimitPerIndex=1),
        _cluster({"succeeded": 2, "completedIndexes": "0-1", **IS_COMPLETE}, completionMode="Indexed"),
        _cluster(
            {"succeeded": 2, "completedIndexes": "0-1", **IS_COMPLETE},
            completionMode="Indexed",
            completions=3,
        ),
        _cluster({"succeeded": 2, **IS_COMPLETE}),
        _cluster({"startTime": None}, suspend=True),
        _cluster({**ONE, "succeeded": 1}, "Running", completions=None, parallelism=1),
        _ending("Running"),
        _ending("Running", conditions=["FailureTarget"], policy="TerminatingOrFailed"),
        _ending("Running", conditions=["SuccessCriteriaMet"], policy="TerminatingOrFailed"),
        _ending("Running", "Running", completions=None, parallelism=2),
        _ending("Running", "Running", "Running", completions=6, parallelism=2),
    ],
)
def test_a_correct_job_has_no_finding(manifests: Manifests) -> None:
    assert list(jobs(state(manifests))) == []


@pytest.mark.parametrize(
    ("manifests", "sentences"),
    [
        (_cluster({}), ["job default/work has 0 live pods, and should have 1"]),
        (
            _cluster({"terminating": 1}, podReplacementPolicy="Failed"),
            [
                "job default/work has 0 live pods, and should have 1",
                "job default/work shows 1 terminating in its status, and its pods are 0",
            ],
        ),
        (
            _cluster({"conditions": [{"type": "FailureTarget", "status": "True"}]}),
            ["job default/work is to end, and no pod of it terminates"],
        ),
        (
            _ending("Running", policy="TerminatingOrFailed"),
            ["job default/work has 0 live pods, and should have 1"],
        ),
        (
            _ending("Running", "Running", completions=None, parallelism=3),
            ["job default/work has 1 live pods, and should have 2"],
        ),
        (
            _ending("Running", "Running", "Running", parallelism=1),
            ["job default/work has 2 live pods, and should have 1"],
        ),
        (
            _cluster({"active": 2, "ready": 2, "succeeded": 1}, "Succeeded", "Running", "Running"),
            ["job default/work has 2 live pods, and should have 1"],
        ),
        (
            _cluster({"succeeded": 2, "conditions": FINISHED}, "Running"),
            [
                "job default/work has 1 live pods, and should have 0",
                "job default/work shows 0 active in its status, and its pods are 1",
                "job default/work shows 0 ready in its status, and its pods are 1",
            ],
        ),
        (
            _cluster({**ONE, "succeeded": 1}, "Succeeded!", "Running"),
            ["pod default/p0 has ended, and its Job has not counted it"],
        ),
        (
            _cluster({"succeeded": 1}, "Succeeded!", "Failed!", suspend=True, backoffLimitPerIndex=1),
            ["pod default/p0 has ended, and its Job has not counted it"],
        ),
        (
            _cluster({**ONE, "uncountedTerminatedPods": {"succeeded": ["u"]}}, "Running"),
            ["job default/work has pods in its status that it is still to count"],
        ),
        (
            _cluster({**ONE, "succeeded": 1, "completedIndexes": "0-1"}, "Running", completionMode="Indexed"),
            ["job default/work shows 1 succeeded, and 2 completed indexes"],
        ),
        (
            _cluster({**ONE, "startTime": None}, "Running"),
            ["job default/work has no startTime, and is not suspended"],
        ),
        (
            _cluster({"conditions": [{"type": "Suspended", "status": "True"}]}, parallelism=0),
            ["job default/work shows Suspended=True, and is not suspended"],
        ),
        (
            _cluster({"conditions": [{"type": "Suspended", "status": "False"}]}, suspend=True),
            ["job default/work shows Suspended=False, and is suspended"],
        ),
        (
            _cluster({"succeeded": 2}),
            ["job default/work has 2 succeeded pods and no live one, and is not to end"],
        ),
        (
            _cluster({"succeeded": 1, **IS_COMPLETE}),
            ["job default/work is complete, and shows 1 succeeded of 2 pods"],
        ),
        (
            _cluster({}, "Failed!", suspend=True),
            ["pod default/p0 has ended, and its Job has not counted it"],
        ),
    ],
)
def test_what_is_wrong_with_a_job_is_found(manifests: Manifests, sentences: list[str]) -> None:
    assert [str(finding) for finding in jobs(state(manifests))] == sentences


def test_a_quota_alone_is_no_reason() -> None:
    """The API server is asked, and the quota may have room for the pod."""
    limit = {"quota": manifest("ResourceQuota", "q", spec={"hard": {"pods": "0"}})}
    assert list(jobs(state(_cluster({}) | limit)))
    refusals = frozenset({"uid-work"})
    too_many = _cluster({"active": 2, "ready": 2, "succeeded": 1}, "Succeeded", "Running", "Running")
    found = [str(each) for each in jobs(replace(state(too_many | limit), refusals=refusals))]
    assert found == ["job default/work has 2 live pods, and should have 1"]


def test_a_pod_that_is_refused_is_not_lacked() -> None:
    lacks = state(_cluster({}))
    assert list(jobs(replace(lacks, refusals=frozenset({"uid-work"})))) == []
    assert list(jobs(replace(lacks, refusals=frozenset({"uid-other"}))))


@pytest.mark.parametrize("active", [0, 1, 2])
def test_a_namespace_that_ends_refuses_pods_that_are_still_counted(active: int) -> None:
    ending = manifest("Namespace", "default", namespace="", metadata={"deletionTimestamp": rfc3339(NOW)})
    found = state(_cluster({**ONE, "active": active}, "Running", parallelism=2) | {"namespace": ending})
    found = replace(found, refusals=frozenset({"uid-work"}))
    less = ["job default/work shows 0 active in its status, and its pods are 1"]
    assert [str(each) for each in jobs(found)] == (less if active < 1 else [])


def _cron_job(*listed: str, limit: int = 1, suspend: bool = False, **finished: str) -> list[str]:
    """Return the findings on a CronJob with a Job that runs, `now`, and those that are `finished`.

    A Job is listed by its name, `name!` for a former one of the name.
    """
    spec = {"schedule": "* * * * *", "successfulJobsHistoryLimit": limit, "failedJobsHistoryLimit": limit}
    spec["suspend"] = suspend
    references = [
        (name.removesuffix("!"), "former" if name.endswith("!") else f"Job-{name}") for name in listed
    ]
    status = {"active": [{"name": name, "namespace": "default", "uid": uid} for name, uid in references]}
    manifests = {"cron": manifest("CronJob", "cron", api="batch/v1", spec=spec, status=status)}
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "cron",
        "uid": "CronJob-cron",
        "controller": True,
    }
    for name in ("now", *finished):
        manifests[name] = manifest("Job", name, api="batch/v1", metadata={"ownerReferences": [owner]})
    for name, condition in finished.items():
        manifests[name]["status"] = {"conditions": [{"type": condition, "status": "True"}]}
    return [str(each) for each in cron_jobs(state(manifests))]


def test_a_correct_cron_job_has_no_finding() -> None:
    assert _cron_job("now", a="Complete", b="Failed") == []


def test_a_cron_job_lists_its_unfinished_jobs() -> None:
    assert _cron_job() == ["cronjob default/cron lists none as active, which now are"]
    assert _cron_job(suspend=True) == []
    for suspend in (False, True):
        assert _cron_job("a", "now", suspend=suspend, a="Complete") == [
            "cronjob default/cron lists a, now as active, which now are"
        ]


def test_a_cron_job_lists_a_former_job_while_there_is_another_one_of_its_name() -> None:
    assert _cron_job("a!", "now", a="Complete") == []
    assert _cron_job("now!", a="Complete") == []
    assert _cron_job("gone!", "now") == ["cronjob default/cron lists gone, now as active, which now are"]
    assert _cron_job("a!", a="Complete") == ["cronjob default/cron lists none as active, which now are"]


def test_a_cron_job_keeps_to_its_limits() -> None:
    kept = "cronjob default/cron keeps 2 Jobs that are {}, and its limit is 1"
    assert _cron_job("now", a="Complete", b="Complete") == [kept.format("Complete")]
    assert _cron_job("now", a="Failed", b="Failed") == [kept.format("Failed")]


def _behind(job: float, last: float, *, deadline: int | None = None, is_listed: bool = False) -> list[str]:
    """Return the findings on a CronJob without its Job of the time `job`; its last Job is that of `last`."""
    spec: dict[str, Any] = {
        "schedule": "* * * * *",
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 1,
    }
    spec |= {} if deadline is None else {"startingDeadlineSeconds": deadline}
    status = {"lastScheduleTime": rfc3339(last)}
    cron_job = manifest("CronJob", "cron", api="batch/v1", spec=spec, status=status)
    scheduled = {"annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": rfc3339(job)}}
    forgotten = manifest("Job", "forgotten", api="batch/v1", metadata={**owner(cron_job), **scheduled})
    found = state({"cron": cron_job, "forgotten": forgotten})
    found = replace(found, listed_jobs=frozenset({"Job-forgotten"} if is_listed else ()))
    return [str(each) for each in cron_jobs(found)]


def test_a_job_that_was_never_listed_is_not_looked_for_after_its_time() -> None:
    lacks = ["cronjob default/cron lists none as active, which forgotten are"]
    assert _behind(NOW - 60, NOW) == []
    assert _behind(NOW - 60, NOW - 120, deadline=30) == []
    assert _behind(NOW - 60, NOW - 120) == lacks
    assert _behind(NOW - 60, NOW - 120, deadline=90) == lacks
    assert _behind(NOW - 60, NOW - 60) == lacks
    assert _behind(NOW - 60, NOW, is_listed=True) == lacks


def _timed(*, scheduled: float, ended: float | None = None, is_listed: bool = True) -> list[str]:
    """Return the findings on a CronJob whose last times are of NOW, and a Job with these times."""
    times = {"lastScheduleTime": rfc3339(NOW), "lastSuccessfulTime": rfc3339(NOW)}
    active = [{"name": "one", "namespace": "default", "uid": "Job-one"}] if is_listed else []
    spec = {"schedule": "* * * * *", "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1}
    cron_job = manifest("CronJob", "cron", api="batch/v1", spec=spec, status={**times, "active": active})
    at = {"annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": rfc3339(scheduled)}}
    job = manifest("Job", "one", api="batch/v1", metadata={**owner(cron_job), **at})
    if ended is not None:
        job["status"] = {"conditions": FINISHED, "completionTime": rfc3339(ended)}
    return [str(each) for each in cron_jobs(state({"cron": cron_job, "one": job}))]


def test_the_times_of_a_cron_job_are_not_before_those_of_its_jobs() -> None:
    assert _timed(scheduled=NOW) == _timed(scheduled=NOW - 60) == []
    assert _timed(scheduled=NOW + 60) == [
        "cronjob default/cron lists one, and its lastScheduleTime is earlier"
    ]
    assert _timed(scheduled=NOW, ended=NOW, is_listed=False) == []
    assert _timed(scheduled=NOW + 60, ended=NOW + 1, is_listed=False) == [
        "cronjob default/cron has an earlier lastSuccessfulTime than the end of one"
    ]


def test_the_history_shows_the_jobs_that_were_listed() -> None:
    first, second = batch.CronJob(), batch.CronJob()
    for each, uids in ((first, ["a", "b"]), (second, ["b"])):
        each.metadata.name, each.metadata.namespace = "cron", "default"
        for uid in uids:
            each.status.active.add(name=uid, uid=uid)
    history = History().put(first, second, batch.CronJob(metadata=second.metadata)).delete(second)
    assert listed_jobs(history.revisions) == {"a", "b"}


@pytest.mark.parametrize(
    ("started", "is_longer"), [("1970-01-01T00:00:40Z", True), ("1970-01-01T00:00:10Z", False)]
)
def test_a_job_that_began_by_a_clock_that_went_back_is_complete_later(started: str, is_longer: bool) -> None:
    """The API server refuses a completionTime that comes before the startTime."""
    success = {"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": "1970-01-01T00:00:20Z"}
    manifests = _cluster({"succeeded": 2, "conditions": [success], "startTime": started})
    found = [each for each in jobs(state(manifests)) if "is to end" in each.sentence]
    assert [each.seconds_max > FINDING_SECONDS_MAX for each in found] == [is_longer]
