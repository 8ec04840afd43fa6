"""Jobs through kubectl against a cluster of real processes, observation by observation.

Pages: https://kubernetes.io/docs/concepts/workloads/controllers/job/ ("Job"), .../docs/tasks/job/ ("tasks").
All Jobs are created at once, so that the module does not wait for each.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apiserver.rest.test_kubectl import KUBECTL, Session
from tests.support.eventually import eventually_sync

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session"),
]
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEXED: dict[str, Any] = {"completionMode": "Indexed"}


def body(
    name: str, *, runs: str = "300ms", code: int = 0, restart: str = "Never", stop: str = "", **spec: Any
) -> dict[str, Any]:
    """Return a Job whose pods run so long and end with this code; with `runs` "" they do not end."""
    annotations = {"nominee.dev/run-duration": runs} if runs else {}
    if code:
        annotations["nominee.dev/exit-code"] = str(code)
    if stop:
        annotations["nominee.dev/stop-delay"] = stop
    pod = {
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 3 if stop else 0,
        "containers": [{"name": "c", "image": "app"}],
    }
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def _policy(action: str, **rule: Any) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": [{"action": action, **rule}]}}


_SUCCESS: dict[str, Any] = {"successPolicy": {"rules": [{"succeededCount": 1}]}}
_CODE_42: dict[str, Any] = {"onExitCodes": {"operator": "In", "values": [42]}}
AT_ONCE = [
    body("plain"),
    body("fixed", completions=3, parallelism=2),
    body("queue", parallelism=2),
    body("index", completions=3, parallelism=3, **INDEXED),
    body("broken", code=3, backoffLimit=0),
    body("late", runs="", activeDeadlineSeconds=2),
    body("policy", code=42, backoffLimit=6, **_policy("FailJob", **_CODE_42)),
    body("ignored", code=42, backoffLimit=0, **_policy("Ignore", **_CODE_42)),
    body("per-index", code=1, completions=2, parallelism=2, backoffLimitPerIndex=0, **INDEXED),
    body("many", code=1, completions=2, parallelism=2, backoffLimitPerIndex=0, maxFailedIndexes=0, **INDEXED),
    body("leader", completions=3, parallelism=1, **INDEXED, **_SUCCESS),
    body("asleep", suspend=True),
    body("awake", runs="", completions=2, parallelism=2),
    body("elastic", runs="", completions=3, parallelism=3, **INDEXED),
    body("by-default", runs="", parallelism=2),
    body("orphan", runs="", parallelism=1),
    body("foreground", runs="", parallelism=1),
    body("replaced", runs="", stop="2s"),
    body("waits", runs="", stop="2s", podReplacementPolicy="Failed"),
    body("others", managedBy="example.com/controller"),
    body("short-lived", ttlSecondsAfterFinished=0),
    body("restarts", code=1, restart="OnFailure", backoffLimit=1),
    body("wide", runs="", completions=9, parallelism=1),
]  # fmt: skip


@pytest.fixture(scope="module")
def kubectl(batch_session: Session) -> Session:
    """Return a session with a cluster in which the Jobs have begun."""
    listed = {"apiVersion": "v1", "kind": "List", "items": AT_ONCE}
    batch_session("apply", "-f", "-", stdin=json.dumps(listed))
    return batch_session


def status_of(kubectl: Session, name: str, **expected: Any) -> Any:
    """Wait for these fields in a Job's status, and return it."""
    return eventually_sync(
        lambda: kubectl.json("get", "job", name)["status"],
        lambda found: all(found.get(field, 0) == value for field, value in expected.items()),
    )


def ended(kubectl: Session, name: str, condition: str) -> Any:
    """Wait for the end of a Job, and return its status."""
    kubectl("wait", f"--for=condition={condition}", f"job/{name}", "--timeout=100s")
    return kubectl.json("get", "job", name)["status"]


def reasons(status: Any) -> list[tuple[str, str]]:
    """Return the types and reasons of the conditions that are True."""
    return [(c["type"], c["reason"]) for c in status["conditions"] if c["status"] == "True"]


def pods_of(kubectl: Session, name: str) -> list[Any]:
    found: list[Any] = kubectl.json("get", "pods", "-l", f"batch.kubernetes.io/job-name={name}")["items"]
    return found


def live(kubectl: Session, name: str) -> list[Any]:
    """Return the pods that do not terminate and have not ended."""
    ends = ("Succeeded", "Failed")
    pods = pods_of(kubectl, name)
    return [
        p for p in pods if "deletionTimestamp" not in p["metadata"] and p["status"].get("phase") not in ends
    ]


def comes_to(kubectl: Session, name: str, count: int) -> list[Any]:
    """Wait for so many live pods."""
    return eventually_sync(lambda: live(kubectl, name), lambda found: len(found) == count)


def events_of(kubectl: Session, name: str, reason: str) -> list[str]:
    """Wait for an event about a Job with this reason; return the messages of all."""
    selector = f"involvedObject.name={name},reason={reason}"
    items = eventually_sync(
        lambda: kubectl.json("get", "events", "--field-selector", selector)["items"],
        lambda found: bool(found),
    )
    return [each["message"] for each in items]


def patch(kubectl: Session, name: str, **spec: Any) -> None:
    kubectl("patch", "job", name, "-p", json.dumps({"spec": spec}))


def test_a_job_of_one_pod_completes(kubectl: Session) -> None:
    """Source: Job, "Running an example Job" and "Job termination and cleanup" (conditions)."""
    status = ended(kubectl, "plain", "Complete")
    end = "CompletionsReached"
    assert reasons(status) == [("SuccessCriteriaMet", end), ("Complete", end)]
    assert (status["succeeded"], status["ready"], status["terminating"]) == (1, 0, 0)
    assert status["uncountedTerminatedPods"] == {}
    assert events_of(kubectl, "plain", "Completed") == ["Job completed"]
    (pod,) = pods_of(kubectl, "plain")
    assert events_of(kubectl, "plain", "SuccessfulCreate") == [f"Created pod: {pod['metadata']['name']}"]
    name, state, done = kubectl("get", "job", "plain", "--no-headers").split()[:3]
    assert (name, state, done) == ("plain", "Complete", "1/1")


def test_counted_pods_stay_without_their_finalizer(kubectl: Session) -> None:
    """Source: Job, "Job tracking with finalizers"."""
    ended(kubectl, "fixed", "Complete")
    for pod in pods_of(kubectl, "fixed"):
        assert pod["status"]["phase"] == "Succeeded"
        assert "finalizers" not in pod["metadata"]
    (running,) = comes_to(kubectl, "orphan", 1)
    assert running["metadata"]["finalizers"] == [TRACKING]


def test_a_fixed_completion_count(kubectl: Session) -> None:
    """Source: Job, "Parallel execution for Jobs"."""
    assert ended(kubectl, "fixed", "Complete")["succeeded"] == 3
    assert len(pods_of(kubectl, "fixed")) == 3


def test_a_work_queue_completes_when_one_pod_succeeded_and_all_ended(kubectl: Session) -> None:
    """Source: Job, "Parallel execution for Jobs" (work queue)."""
    assert ended(kubectl, "queue", "Complete")["succeeded"] == 2


def test_pods_know_their_index(kubectl: Session) -> None:
    """Source: Job, "Completion mode"; tasks, "Indexed Job for Parallel Processing"."""
    assert ended(kubectl, "index", "Complete")["completedIndexes"] == "0-2"
    pods = sorted(pods_of(kubectl, "index"), key=lambda pod: pod["metadata"]["annotations"][INDEX])
    for number, pod in enumerate(pods):
        assert pod["metadata"]["annotations"][INDEX] == pod["metadata"]["labels"][INDEX] == str(number)
        assert pod["metadata"]["name"].startswith(f"index-{number}-")
        assert pod["spec"]["hostname"] == f"index-{number}"
        (variable,) = pod["spec"]["containers"][0]["env"]
        assert variable["name"] == "JOB_COMPLETION_INDEX"
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"
    assert len(pods) == 3


def test_a_job_fails_at_its_back_off_limit(kubectl: Session) -> None:
    """Source: Job, "Pod backoff failure policy"."""
    status = ended(kubectl, "broken", "Failed")
    end = "BackoffLimitExceeded"
    assert reasons(status) == [("FailureTarget", end), ("Failed", end)]
    assert status["failed"] == 1
    assert events_of(kubectl, "broken", end) == ["Job has reached the specified backoff limit"]


def test_restarts_in_place_count_towards_the_limit(kubectl: Session) -> None:
    """Source: Job, "Pod backoff failure policy" (restartPolicy = OnFailure)."""
    status = ended(kubectl, "restarts", "Failed")
    assert reasons(status)[-1] == ("Failed", "BackoffLimitExceeded")
    assert (status["failed"], live(kubectl, "restarts")) == (1, [])


def test_a_job_fails_at_its_deadline(kubectl: Session) -> None:
    """Source: Job, "Job termination and cleanup" (activeDeadlineSeconds)."""
    status = ended(kubectl, "late", "Failed")
    assert reasons(status) == [("FailureTarget", "DeadlineExceeded"), ("Failed", "DeadlineExceeded")]
    assert pods_of(kubectl, "late") == []
    messages = events_of(kubectl, "late", "DeadlineExceeded")
    assert messages == ["Job was active longer than specified deadline"]


def test_an_exit_code_fails_the_job(kubectl: Session) -> None:
    """Source: tasks, "Handling retriable and non-retriable pod failures with Pod failure policy"."""
    status = ended(kubectl, "policy", "Failed")
    assert reasons(status) == [("FailureTarget", "PodFailurePolicy"), ("Failed", "PodFailurePolicy")]
    (pod,) = pods_of(kubectl, "policy")
    assert status["conditions"][-1]["message"] == (
        f"Container c for pod default/{pod['metadata']['name']} failed with exit code 42 matching FailJob"
        " rule at index 0"
    )


def test_a_failure_is_ignored(kubectl: Session) -> None:
    """Source: Job, "Pod failure policy" (Ignore): it does not count, and the pod is replaced."""
    eventually_sync(
        lambda: pods_of(kubectl, "ignored"),
        lambda found: any(
            pod["status"].get("phase") == "Failed" and "finalizers" not in pod["metadata"] for pod in found
        ),
    )
    status = status_of(kubectl, "ignored")
    assert "failed" not in status
    assert "conditions" not in status


def test_indexes_fail_on_their_own(kubectl: Session) -> None:
    """Source: Job, "Backoff limit per index"."""
    status = ended(kubectl, "per-index", "Failed")
    assert (status["failedIndexes"], status["failed"]) == ("0,1", 2)
    assert reasons(status) == [("FailureTarget", "FailedIndexes"), ("Failed", "FailedIndexes")]
    annotation = "batch.kubernetes.io/job-index-failure-count"
    assert [p["metadata"]["annotations"][annotation] for p in pods_of(kubectl, "per-index")] == ["0", "0"]


def test_too_many_failed_indexes_end_the_job(kubectl: Session) -> None:
    """Source: Job, "Backoff limit per index" (maxFailedIndexes)."""
    status = ended(kubectl, "many", "Failed")
    assert reasons(status)[-1] == ("Failed", "MaxFailedIndexesExceeded")


def test_a_success_policy_ends_the_job(kubectl: Session) -> None:
    """Source: Job, "Success policy"."""
    status = ended(kubectl, "leader", "Complete")
    assert reasons(status) == [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]
    assert status["conditions"][0]["message"] == "Matched rules at index 0"
    assert status["succeeded"] < 3


def test_a_suspended_job_starts_when_it_is_resumed(kubectl: Session) -> None:
    """Source: Job, "Suspending a Job" (create a Job in the suspended state)."""
    status = eventually_sync(
        lambda: kubectl.json("get", "job", "asleep")["status"], lambda found: "conditions" in found
    )
    assert reasons(status) == [("Suspended", "JobSuspended")]
    assert "startTime" not in status
    assert pods_of(kubectl, "asleep") == []
    patch(kubectl, "asleep", suspend=False)
    ended(kubectl, "asleep", "Complete")
    assert events_of(kubectl, "asleep", "Resumed") == ["Job resumed"]


def test_a_running_job_is_suspended(kubectl: Session) -> None:
    """Source: Job, "Suspending a Job": its pods are deleted and count as nothing."""
    before = comes_to(kubectl, "awake", 2)
    patch(kubectl, "awake", suspend=True)
    eventually_sync(lambda: pods_of(kubectl, "awake"), lambda found: not found)
    status = status_of(kubectl, "awake", active=0)
    assert "failed" not in status
    assert events_of(kubectl, "awake", "Suspended") == ["Job suspended"]
    deleted = sorted(events_of(kubectl, "awake", "SuccessfulDelete"))
    assert deleted == sorted(f"Deleted pod: {pod['metadata']['name']}" for pod in before)


def test_an_indexed_job_is_scaled(kubectl: Session) -> None:
    """Source: Job, "Elastic Indexed Jobs"."""
    comes_to(kubectl, "elastic", 3)
    patch(kubectl, "elastic", completions=2, parallelism=2)
    pods = comes_to(kubectl, "elastic", 2)
    assert sorted(pod["metadata"]["annotations"][INDEX] for pod in pods) == ["0", "1"]
    refused = kubectl.fails("patch", "job", "elastic", "-p", '{"spec": {"completions": 5}}')
    assert "can only be modified in tandem with spec.parallelism" in refused


def test_parallelism_is_changed(kubectl: Session) -> None:
    """Source: Job, "Controlling parallelism"."""
    comes_to(kubectl, "wide", 1)
    patch(kubectl, "wide", parallelism=4)
    comes_to(kubectl, "wide", 4)
    patch(kubectl, "wide", parallelism=0)
    comes_to(kubectl, "wide", 0)
    assert "failed" not in status_of(kubectl, "wide", active=0)


def test_a_deleted_pod_counts_as_failed_and_is_replaced(kubectl: Session) -> None:
    """Source: Job, "Delayed creation of replacement pods" (TerminatingOrFailed)."""
    (pod,) = comes_to(kubectl, "replaced", 1)
    kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
    assert status_of(kubectl, "replaced", failed=1)["failed"] == 1


def test_a_terminating_pod_is_not_failed_until_it_has_ended(kubectl: Session) -> None:
    """Source: Job, "Delayed creation of replacement pods" (Failed)."""
    (pod,) = comes_to(kubectl, "waits", 1)
    kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
    status = status_of(kubectl, "waits", terminating=1)
    assert "failed" not in status
    assert live(kubectl, "waits") == []


def test_a_job_of_another_controller_is_left_alone(kubectl: Session) -> None:
    """Source: Job, "Delegation of managing a Job object to external controller"."""
    assert pods_of(kubectl, "others") == []
    assert kubectl.json("get", "job", "others")["status"] == {}


def test_a_finished_job_is_deleted_after_its_time(kubectl: Session) -> None:
    """Source: https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/."""
    kubectl("wait", "--for=delete", "job/short-lived", "--timeout=100s")
    assert pods_of(kubectl, "short-lived") == []


@pytest.mark.parametrize("name", ["by-default", "foreground"])
def test_a_job_is_deleted_with_its_pods(kubectl: Session, name: str) -> None:
    """Source: Job, "Clean up finished jobs automatically"; kubectl deletes in the background by default."""
    eventually_sync(lambda: live(kubectl, name), lambda found: bool(found))
    kubectl("delete", "job", name, *(["--cascade=foreground"] if name == "foreground" else []))
    eventually_sync(lambda: pods_of(kubectl, name), lambda found: not found)


def test_orphaned_pods_lose_the_finalizer(kubectl: Session) -> None:
    """Source: pkg/controller/job/job_controller.go, syncOrphanPod."""
    (pod,) = comes_to(kubectl, "orphan", 1)
    kubectl("delete", "job", "orphan", "--cascade=orphan")
    name = pod["metadata"]["name"]
    left = eventually_sync(
        lambda: kubectl.json("get", "pod", name)["metadata"], lambda found: "finalizers" not in found
    )
    assert "ownerReferences" not in left
    kubectl("delete", "pod", name, "--timeout=60s")


def test_a_job_is_described(kubectl: Session) -> None:
    """Source: Job, "Running an example Job" (kubectl describe)."""
    ended(kubectl, "index", "Complete")
    text = kubectl("describe", "job", "index")
    assert "0 Active (0 Ready) / 3 Succeeded / 0 Failed" in text
    assert "Completed Indexes:  0-2" in text


def test_kubectl_warns_of_a_job_that_never_ends(kubectl: Session) -> None:
    """Source: reference/using-api/deprecation-policy: kubectl prints Warning headers."""
    done = kubectl.run("create", "job", "endless", "--image=busybox", "--", "echo", "hi")
    assert (done.returncode, done.stdout) == (0, "job.batch/endless created\n")
    assert done.stderr.startswith("Warning: nominee: no pod of this Job ends by itself: ")
    assert "nominee.dev/run-duration" in done.stderr
