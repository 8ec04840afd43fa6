"""The log of attempts is bounded."""

from __future__ import annotations

from nominee.machinery.api.objects import ObjectKey
from nominee.scheduler.attempts.pod import Failed, Reason, Scheduled
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.shell.attempt.attempt_log import ATTEMPTS_MAX, PODS_MAX, AttemptLog
from tests.scheduler.builders import pod


def test_the_last_attempts_of_a_pod() -> None:
    log = AttemptLog(lambda: 0.0)
    web = pod("web")
    for number in range(ATTEMPTS_MAX + 2):
        log.decided(web, Failed(Reason.UNSCHEDULABLE, f"no {number}", None))
    log.decided(web, Scheduled("n1", 3, 2, 0))
    log.binding_failed(web, Failed(Reason.SCHEDULER_ERROR, "bind failed", None))
    messages = [record.message or record.node for record in log.of(web.key)]
    assert messages == ["no 4", "no 5", "no 6", "n1", "bind failed"]


def test_the_pods_tried_last() -> None:
    log = AttemptLog(lambda: 0.0)
    first = pod("first")
    log.decided(first, Scheduled("n1", 1, 1, 0))
    for number in range(PODS_MAX - 1):
        log.decided(pod(f"p{number}"), Scheduled("n1", 1, 1, 0))
    log.decided(first, Scheduled("n2", 1, 1, 0))
    log.decided(pod("last"), Scheduled("n1", 1, 1, 0))
    assert log.of(ObjectKey("default", "p0")) == []
    assert [record.node for record in log.of(first.key)] == ["n1", "n2"]


def test_a_recreated_pod_has_an_empty_log() -> None:
    log = AttemptLog(lambda: 0.0)
    log.decided(pod("web-0"), Scheduled("n1", 1, 1, 0))
    again = pod("web-0")
    again.pod.metadata.uid = "uid-again"
    log.decided(PodInfo(again.pod), Scheduled("n2", 1, 1, 0))
    assert [record.node for record in log.of(again.key)] == ["n2"]
