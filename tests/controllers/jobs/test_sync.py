"""Jobs from their first pod to their end, by the core alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nominee.controllers.jobs import indexes
from nominee.controllers.jobs.backoff import Failures
from nominee.controllers.jobs.conditions import terminal_condition
from nominee.controllers.jobs.pods import TRACKING
from nominee.controllers.jobs.sync import BURST_MAX
from nominee.machinery.api.pb import batch
from nominee.machinery.wire.values import index_ranges
from tests.controllers.builders import EPOCH, pod, stamp
from tests.controllers.jobs.builders import World, job, sync_of, tracked


def _indexed(completions: int = 3, **spec: Any) -> batch.Job:
    return job(completionMode="Indexed", completions=completions, **{"parallelism": completions, **spec})


@pytest.mark.parametrize(
    ("spec", "status", "active", "created", "deleted"),
    [
        ({"completions": 5, "parallelism": 2}, {}, 0, 2, 0),
        ({"completions": 5, "parallelism": 2}, {"succeeded": 4}, 0, 1, 0),
        ({"completions": 5, "parallelism": 2}, {"succeeded": 4}, 1, 0, 0),
        ({"completions": 5, "parallelism": 2}, {"succeeded": 4}, 2, 0, 1),
        ({"completions": 5, "parallelism": 0}, {}, 2, 0, 2),
        ({"completions": None, "parallelism": 3}, {}, 1, 2, 0),
        ({"completions": None, "parallelism": 3}, {"succeeded": 1}, 1, 0, 0),
        ({"completions": 5, "parallelism": 2, "suspend": True}, {}, 2, 0, 2),
        ({"completions": 5, "parallelism": 2, "suspend": True}, {}, 0, 0, 0),
        ({"completions": 900, "parallelism": 900}, {}, 0, BURST_MAX, 0),
        ({"completions": 900, "parallelism": 0}, {}, 700, 0, BURST_MAX),
    ],
)
def test_how_many_pods_are_created_or_deleted(
    spec: dict[str, Any], status: dict[str, Any], active: int, created: int, deleted: int
) -> None:
    pods = [tracked(pod(f"p{number}", uid=f"{number}")) for number in range(active)]
    work = sync_of(job(status=status, **spec), *pods).work()
    assert (len(work.create), len(work.delete), work.final) == (created, deleted, False)


def test_a_terminating_pod_is_replaced_only_when_it_has_ended() -> None:
    going = tracked(pod("p", uid="p", phase="Running", deleted=True))
    later, now = job(podReplacementPolicy="Failed"), job()
    assert len(sync_of(later, going, now=999).work().create) == 0
    assert len(sync_of(now, going, now=999).work().create) == 1
    index = tracked(pod("p", uid="p", phase="Running", deleted=True), 0)
    assert not sync_of(_indexed(1, podReplacementPolicy="Failed"), index, now=999).work().create


def test_nothing_is_created_while_the_watch_is_behind_or_the_job_is_deleted() -> None:
    assert not sync_of(job(), satisfied=False).work().create
    going = job()
    going.metadata.deletionTimestamp.seconds = EPOCH
    assert not sync_of(going).work().create


def test_failed_pods_are_replaced_after_the_back_off() -> None:
    ended = tracked(pod("p", uid="p", phase="Failed", created=0))
    sync = sync_of(job(), ended, now=4, failures=Failures())
    assert not sync.work().create
    assert sync.again == 6.0
    assert len(sync_of(job(), ended, now=10).work().create) == 1
    assert sync_of(job(activeDeadlineSeconds=5), ended, now=4).again == 5.0
    both = sync_of(job(activeDeadlineSeconds=50), ended, now=4)
    both.work()
    assert both.again == 6.0


def test_a_job_completes_with_the_conditions_in_order() -> None:
    world = World(job(completions=3, parallelism=2))
    world.sync()
    status = world.job.status
    assert (status.active, status.ready, status.terminating) == (2, 0, 0)
    assert status.startTime.seconds == EPOCH
    assert world.job.status.HasField("uncountedTerminatedPods")
    for each in world.running():
        world.end(each)
    world.sync()
    assert (world.job.status.succeeded, world.job.status.active) == (2, 1)
    world.now += 5
    for each in world.running():
        world.end(each)
    world.sync()
    assert world.conditions() == {
        "SuccessCriteriaMet": "CompletionsReached",
        "Complete": "CompletionsReached",
    }
    assert world.job.status.completionTime.seconds == EPOCH + 5
    assert world.events == ["Completed"]
    assert all(TRACKING not in each.metadata.finalizers for each in world.pods.values())


def test_a_job_without_completions_waits_for_all_pods_after_the_first_success() -> None:
    world = World(job(completions=None, parallelism=3))
    world.sync()
    first, second, third = world.running()
    world.end(first)
    world.sync()
    assert len(world.running()) == 2
    world.end(second, code=1)
    world.end(third)
    world.sync()
    assert (world.job.status.succeeded, world.job.status.failed) == (2, 1)
    assert terminal_condition(world.job) is not None


def _announced(world: World) -> tuple[str, str]:
    """Reconcile while the deleted pods terminate; return the reasons then and when they have ended."""
    world.sync()
    assert "FailureTarget" in world.conditions()
    assert "Failed" not in world.conditions()
    world.kubelet()
    world.sync()
    conditions = world.conditions()
    return conditions["FailureTarget"], conditions["Failed"]


def test_a_job_fails_when_its_pods_have_terminated() -> None:
    world = World(job(completions=3, parallelism=3, backoffLimit=0))
    world.sync()
    world.end(world.running()[0], code=1)
    assert _announced(world) == ("BackoffLimitExceeded", "BackoffLimitExceeded")
    assert (world.job.status.failed, world.job.status.active, world.job.status.terminating) == (3, 0, 0)
    assert world.events == ["BackoffLimitExceeded"]


@pytest.mark.parametrize(
    ("limit", "restarts", "fails"), [(0, 0, False), (0, 1, True), (2, 1, False), (2, 2, True)]
)
def test_restarts_count_with_the_restart_policy_on_failure(limit: int, restarts: int, fails: bool) -> None:
    of = job(backoffLimit=limit)
    of.spec.template.spec.restartPolicy = "OnFailure"
    running = tracked(pod("p", uid="p", phase="Running", restarts=restarts))
    assert sync_of(of, running).work().final is fails
    of.spec.template.spec.restartPolicy = "Never"
    assert not sync_of(of, running).work().final


def test_a_job_fails_at_its_deadline() -> None:
    world = World(job(activeDeadlineSeconds=60))
    first = world.sync()
    assert first is not None
    assert first.again == 60
    world.now += 60
    assert _announced(world) == ("DeadlineExceeded", "DeadlineExceeded")


def test_a_policy_fails_the_job_at_once() -> None:
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    world = World(job(parallelism=2, completions=2, podFailurePolicy={"rules": rules}))
    world.sync()
    world.end(world.running()[0], code=42)
    assert _announced(world) == ("PodFailurePolicy", "PodFailurePolicy")
    target = next(c for c in world.job.status.conditions if c.type == "FailureTarget")
    assert target.message.endswith("failed with exit code 42 matching FailJob rule at index 0")


def test_a_policy_ignores_failures() -> None:
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    world = World(job(backoffLimit=0, podFailurePolicy={"rules": rules}))
    world.sync()
    world.end(world.running()[0], code=137, conditions=("DisruptionTarget",))
    world.sync()
    world.now += 700
    world.sync()
    assert world.job.status.failed == 0
    assert len(world.running()) == 1
    world.settle()
    assert world.job.status.succeeded == 1


def test_a_job_is_suspended_and_resumed() -> None:
    world = World(job(parallelism=2, completions=2))
    world.sync()
    world.change(suspend=True)
    world.sync()
    assert world.conditions() == {"Suspended": "JobSuspended"}
    assert not world.job.status.HasField("startTime")
    assert (world.job.status.active, world.job.status.terminating) == (0, 2)
    world.kubelet()
    world.now += 50
    world.change(suspend=False)
    world.sync()
    assert world.conditions() == {}
    assert [(c.type, c.status, c.reason) for c in world.job.status.conditions] == [
        ("Suspended", "False", "JobResumed")
    ]
    assert world.job.status.startTime.seconds == EPOCH + 50
    assert world.events == ["Suspended", "Resumed"]
    assert (world.job.status.failed, world.job.status.active) == (0, 2)


def test_a_suspended_job_keeps_its_start_time_without_the_gate() -> None:
    of = job(suspend=True, status={"startTime": stamp(-9)})
    sync = sync_of(of, clears_start_time=False)
    sync.note_work(0, [])
    assert sync.job.status.startTime.seconds == EPOCH - 9


def test_each_index_succeeds_once() -> None:
    world = World(_indexed(3, parallelism=2))
    world.sync()
    zero, one = world.running()
    assert [indexes.index_of(each) for each in (zero, one)] == [0, 1]
    world.end(one)
    world.sync()
    assert (world.job.status.completedIndexes, world.job.status.succeeded) == ("1", 1)
    assert [indexes.index_of(each) for each in world.running()] == [0, 2]
    world.settle()
    assert (world.job.status.completedIndexes, world.job.status.succeeded) == ("0-2", 3)


def test_a_second_success_of_an_index_is_not_counted() -> None:
    of = _indexed(3, status={"completedIndexes": "1", "succeeded": 1})
    again = tracked(pod("p", uid="p", phase="Succeeded"), 1)
    sync = sync_of(of, again)
    sync.note_work(0, [])
    assert sync.count() == [again]
    assert (sync.job.status.completedIndexes, sync.job.status.succeeded) == ("1", 1)


def test_an_indexed_job_is_made_smaller_and_larger() -> None:
    world = World(_indexed(4))
    world.sync()
    world.end(world.running()[3])
    world.sync()
    assert world.job.status.completedIndexes == "3"
    world.change(completions=2, parallelism=2)
    world.sync()
    assert (world.job.status.completedIndexes, world.job.status.succeeded) == ("", 0)
    world.kubelet()
    assert [indexes.index_of(each) for each in world.running()] == [0, 1]
    world.change(completions=3, parallelism=3)
    world.sync()
    assert [indexes.index_of(each) for each in world.running()] == [0, 1, 2]
    world.settle()
    assert world.job.status.completedIndexes == "0-2"


def test_an_index_fails_after_its_own_limit_and_the_others_continue() -> None:
    world = World(_indexed(2, backoffLimitPerIndex=1))
    world.sync()
    zero, one = world.running()
    world.end(zero, code=1)
    waiting = world.sync()
    assert waiting is not None
    assert waiting.again == 10
    assert TRACKING in world.pods[zero.metadata.uid].metadata.finalizers  # until it is replaced
    world.now += 10
    world.sync()
    again = next(each for each in world.running() if indexes.index_of(each) == 0)
    assert indexes.counted_failures(again) == 1
    world.sync()
    assert TRACKING not in world.pods[zero.metadata.uid].metadata.finalizers
    world.end(again, code=1)
    world.sync()
    assert world.job.status.failedIndexes == "0"
    world.end(one)
    world.sync()
    assert (world.job.status.completedIndexes, world.job.status.failedIndexes) == ("1", "0")
    assert world.conditions() == {"FailureTarget": "FailedIndexes", "Failed": "FailedIndexes"}
    assert (world.job.status.succeeded, world.job.status.failed) == (1, 2)


def test_too_many_failed_indexes_end_the_job() -> None:
    world = World(_indexed(4, backoffLimitPerIndex=0, maxFailedIndexes=1))
    world.sync()
    for each in world.running()[:2]:
        world.end(each, code=1)
    assert _announced(world) == ("MaxFailedIndexesExceeded", "MaxFailedIndexesExceeded")


def test_a_policy_fails_an_index_at_once() -> None:
    rules = [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}]
    world = World(_indexed(2, backoffLimitPerIndex=5, podFailurePolicy={"rules": rules}))
    world.sync()
    world.end(world.running()[0], code=42)
    world.sync()
    assert world.job.status.failedIndexes == "0"
    assert len(world.running()) == 1


def test_a_success_policy_ends_the_job_before_all_indexes_succeed() -> None:
    world = World(_indexed(3, successPolicy={"rules": [{"succeededIndexes": "0"}]}))
    world.sync()
    world.end(world.running()[0])
    world.sync()
    assert world.conditions() == {"SuccessCriteriaMet": "SuccessPolicy"}
    world.kubelet()
    world.sync()
    assert world.conditions() == {"SuccessCriteriaMet": "SuccessPolicy", "Complete": "SuccessPolicy"}
    assert (world.job.status.succeeded, world.job.status.failed) == (1, 0)
    assert world.job.status.completedIndexes == "0"


def test_a_deleted_job_lets_its_pods_go() -> None:
    of = job()
    of.metadata.deletionTimestamp.seconds = EPOCH
    running = tracked(pod("p", uid="p", phase="Running"))
    sync = sync_of(of, running)
    assert not sync.work().delete
    sync.note_work(0, [])
    assert sync.count() == [running]
    assert not sync.job.status.uncountedTerminatedPods.failed


def test_at_most_so_many_pods_are_counted_at_a_time() -> None:
    world = World(job(completions=BURST_MAX + 2, parallelism=BURST_MAX + 2))
    world.sync()
    world.sync()
    for each in world.running():
        world.end(each)
    first = world.sync()
    assert first is not None
    assert world.job.status.succeeded == BURST_MAX
    assert terminal_condition(world.job) is None
    world.sync()
    assert world.job.status.succeeded == BURST_MAX + 2
    assert terminal_condition(world.job) is not None


JOBS = [
    lambda: job(completions=4, parallelism=2, backoffLimit=50),
    lambda: job(completions=None, parallelism=3, backoffLimit=50),
    lambda: job(completions=3, parallelism=3, backoffLimit=2),
    lambda: job(completions=3, parallelism=2, backoffLimit=50, podReplacementPolicy="Failed"),
    lambda: _indexed(4, parallelism=2, backoffLimit=50),
    lambda: _indexed(3, backoffLimitPerIndex=1),
]
STEPS = st.tuples(
    st.sampled_from(["succeed", "crash", "fail", "crash", "delete", "stale", "wait", "suspend", "kubelet"]),
    st.integers(0, 5),
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(JOBS), st.lists(STEPS, min_size=8, max_size=30))
def test_each_pod_is_counted_once_whatever_happens(make: Any, steps: list[tuple[str, int]]) -> None:
    world = World(make())
    world.sync()
    suspends = 0
    for step, number in steps:
        if terminal_condition(world.job):
            break
        running = [each for each in world.running() if not each.metadata.HasField("deletionTimestamp")]
        match step:
            case "succeed" | "fail" if running:
                world.end(running[number % len(running)], code=int(step == "fail"))
            case "delete" if running:
                world.delete(running[number % len(running)])
            case "crash":
                world.sync(crash_after=number)
            case "stale":
                world.sync(fresh=False)
            case "wait":
                world.now += 100 * number
            case "suspend":
                suspends += 1
                world.change(suspend=suspends % 2 == 1)
            case "kubelet":
                world.kubelet()
            case _:
                world.sync(fresh=True)
    if suspends % 2:
        world.change(suspend=False)
    world.settle()

    status = world.job.status
    counted = {uid: each for uid, each in world.ended.items() if uid not in world.dropped}
    succeeded = [each for each in counted.values() if each.status.phase == "Succeeded"]
    assert status.failed == len(counted) - len(succeeded)
    if world.job.spec.completionMode == "Indexed":
        assert index_ranges.parse(status.completedIndexes, 99) == indexes.of_pods(succeeded)
        assert status.succeeded == len(indexes.of_pods(succeeded))
    else:
        assert status.succeeded == len(succeeded)
    assert not world.running()
    assert (status.active, status.terminating) == (0, 0)
    assert all(TRACKING not in each.metadata.finalizers for each in world.pods.values())
