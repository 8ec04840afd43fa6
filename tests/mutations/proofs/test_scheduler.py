"""The scheduler: lost answers, claims that others change, and pods that are bound after all."""

from __future__ import annotations

from typing import Any, cast

import pytest

from nominee.machinery.api import errors
from nominee.machinery.api.kinds import RESOURCE_CLAIM
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, devices
from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.failure import requeue_failed
from nominee.scheduler.framework.api.io_steps import Get, Sleep, Update
from nominee.scheduler.framework.types import PodInfo, QueuedPodInfo
from nominee.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from nominee.scheduler.plugins.dynamic_resources.tracker import ClaimTracker, manager_of
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue
from tests.scheduler.plugins.claim_stage import FINALIZER, S1, Stage, allocated, mine, user
from tests.support.devices import claim


def test_devices_are_in_use_until_it_is_known_whether_a_write_without_an_answer_was_made() -> None:
    stage = Stage(mine(finalizers=[FINALIZER]), claim("other", uid="uid-other"), S1)
    who, other = user(), user("q", "other")
    assert stage.feasible(who) == ["n1"]
    assert stage.reserve(who, "n1") is None
    before = stage.state
    write = stage.plugin.pre_bind(before, who, "n1")
    assert isinstance(next(write), Update)
    with pytest.raises(StopIteration):
        write.throw(errors.service_unavailable("its answer was lost"))
    stage.plugin.unreserve(before, who, "n1")
    assert stage.feasible(other) == [], "the write may have been made"
    assert manager_of(stage.framework).claims.is_in_flight("uid-claim")


def test_a_reservation_whose_answer_was_lost_is_not_made_again() -> None:
    who = user().pod
    written = allocated("n1", "p")
    written.metadata.finalizers.append(FINALIZER)
    written.metadata.uid = "uid-claim"
    writer = ClaimWriter(FakeClock(), timestamps=False)
    write = writer.bind(mine(finalizers=[FINALIZER]), who, written.status.allocation)
    assert isinstance(next(write), Update)
    conflict = errors.conflict(RESOURCE_CLAIM, "claim")
    assert isinstance(write.throw(conflict), Sleep)
    assert isinstance(next(write), Get)
    with pytest.raises(StopIteration) as ended:
        write.send(written)
    assert ended.value.value is written


class Informer:
    """Reports no changes: the watch is ahead of the answers."""

    def __init__(self, *claims: devices.ResourceClaim) -> None:
        self._claims = {found.metadata.name: found for found in claims}

    def add_handler(self, **_: object) -> None:
        """Take no handler."""

    def get(self, name: str, namespace: str = "") -> devices.ResourceClaim | None:
        return self._claims.get(name)

    def list(self, namespace: str = "") -> list[devices.ResourceClaim]:
        return list(self._claims.values())


def test_an_answer_that_the_watch_has_overtaken_is_not_assumed() -> None:
    answer, freed = allocated("n1", "p"), mine()
    answer.metadata.resourceVersion, freed.metadata.resourceVersion = "5", "7"
    tracker = ClaimTracker(cast("Any", Informer(freed)))
    tracker.assume(answer)
    assert not tracker._usage._counts


class Queue:
    """Records what is queued, and what is not in flight any more."""

    def __init__(self) -> None:
        self.queued: list[str] = []
        self.ended: list[str] = []

    def add_unschedulable(self, info: QueuedPodInfo, now: float) -> None:
        self.queued.append(info.pod_info.uid)

    def done(self, uid: str) -> None:
        self.ended.append(uid)

    def nominate(self, *_: object) -> None:
        """Take no nomination."""


def requeued(who: PodInfo, cached: core.Pod | None) -> Queue:
    queue = Queue()
    taken = cast("PrioritySchedulingQueue", queue)
    assert not requeue_failed(taken, QueuedPodInfo(who, 0.0), cached, None, 0.0)
    return queue


def test_a_pod_that_is_bound_after_all_is_not_queued_again() -> None:
    who = user()
    bound = copy_of(who.pod)
    bound.spec.nodeName = "n1"
    queue = requeued(who, bound)
    assert (queue.queued, queue.ended) == ([], [who.uid])


def test_a_pod_that_is_gone_is_not_in_flight() -> None:
    who = user()
    assert requeued(who, None).ended == [who.uid]
