"""An event that carries an older nomination does not undo a newer decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from nominee.machinery.api.pb import core
from nominee.scheduler.dispatch.nominations import PendingNominations
from nominee.scheduler.event_handlers import EventHandlers
from nominee.scheduler.failure import requeue_failed
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.interface import Handle, NominatingInfo, NominatingMode
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.priority_sort import PrioritySort
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue, QueueProfile
from tests.scheduler.builders import pod

UID = "uid-p"


def shown(revision: int, nominated: str = "", *, phase: str = "") -> core.Pod:
    """The pod as the watch shows it at a revision."""
    found = pod("p", nominated=nominated).pod
    found.metadata.resourceVersion = str(revision)
    if phase:
        found.status.phase = phase
    return found


@dataclass
class Scheduler:
    """Queue, nominator and handlers; decisions come from the test."""

    keeps_nominations: bool = True
    nominations: PendingNominations = field(default_factory=PendingNominations)
    decisions: int = 0
    watched: core.Pod = field(default_factory=lambda: shown(1))

    def __post_init__(self) -> None:
        self.queue = PrioritySchedulingQueue(
            profiles={"default-scheduler": QueueProfile()},
            sort=PrioritySort({}, cast("Handle", None)),
            nominator=Nominator(),
        )
        self.with_nomination = self.nominations.apply if self.keeps_nominations else lambda pod: pod
        self.handlers = EventHandlers(
            self.queue, Cache(), is_ours=lambda name: True, with_nomination=self.with_nomination
        )
        self.handlers.pod_added(self.watched, 0.0)

    def fails(self, node: str | None) -> int:
        """The pod is tried, fails, and is nominated ("": cleared; None: left alone); the write's number."""
        self.queue.activate([self.watched], 0.0)
        info = self.queue.pop()
        assert info is not None
        info.unschedulable_plugins = {"NodeResourcesFit"}
        nominating = None if node is None else NominatingInfo(NominatingMode.Override, node)
        if node is not None:
            self.decisions += 1
            self.nominations.decide(UID, node, self.decisions)
        requeue_failed(self.queue, info, self.with_nomination(self.watched), nominating, 0.0)
        return self.decisions

    def watch_shows(self, new: core.Pod) -> None:
        old, self.watched = self.watched, new
        self.handlers.pod_updated(old, new, 0.0)

    @property
    def nominated(self) -> tuple[str, str]:
        """By the nominator, and by the pod that is tried next."""
        info = self.queue.get(PodInfo(self.watched).key)
        assert info is not None
        return self.queue.nominator.node_of(UID), info.pod.status.nominatedNodeName


@pytest.mark.parametrize(("keeps", "want"), [(True, ("n2", "n2")), (False, ("n1", "n1"))])
def test_a_late_event_of_the_first_write_does_not_bring_the_first_nomination_back(
    keeps: bool, want: tuple[str, str]
) -> None:
    """Without pending nominations it does: the drift that kept preemptors moving about."""
    scheduler = Scheduler(keeps_nominations=keeps)
    scheduler.nominations.written(UID, scheduler.fails("n1"), 2)
    scheduler.fails("n2")
    scheduler.watch_shows(shown(2, "n1"))
    assert scheduler.nominated == want


def test_the_next_attempt_sees_what_was_decided_before_it_is_written() -> None:
    scheduler = Scheduler()
    scheduler.fails("n1")
    assert scheduler.nominated == ("n1", "n1")
    scheduler.fails(None)
    assert scheduler.nominated == ("n1", "n1")
    scheduler.fails("")
    assert scheduler.nominated == ("", "")


def test_a_pending_nomination_ends_when_the_watch_shows_its_write() -> None:
    scheduler = Scheduler()
    number = scheduler.fails("n1")
    scheduler.watch_shows(shown(2, phase="Pending"))  # another client wrote, before our write
    assert scheduler.nominated == ("n1", "n1")
    scheduler.nominations.written(UID, number, 3)
    scheduler.watch_shows(shown(3, "n1"))
    assert len(scheduler.nominations) == 0
    scheduler.watch_shows(shown(4, "n9"))  # from now on others may decide
    assert scheduler.nominated == ("n9", "n9")


def test_a_clearing_is_not_undone_by_what_it_clears() -> None:
    scheduler = Scheduler()
    scheduler.fails("n1")
    number = scheduler.fails("")
    scheduler.watch_shows(shown(2, "n1"))
    assert scheduler.nominated == ("", "")
    scheduler.nominations.written(UID, number, 3)
    scheduler.watch_shows(shown(3))
    assert scheduler.nominated == ("", "")


def test_a_write_that_failed_counts_no_more_and_a_later_one_does() -> None:
    scheduler = Scheduler()
    first = scheduler.fails("n1")
    second = scheduler.fails("n2")
    scheduler.nominations.written(UID, first, None)
    assert scheduler.nominations.apply(scheduler.watched).status.nominatedNodeName == "n2"
    scheduler.nominations.written(UID, second, None)
    assert scheduler.nominations.apply(scheduler.watched) is scheduler.watched


def test_a_deleted_pod_leaves_nothing() -> None:
    nominations = PendingNominations()
    nominations.decide(UID, "n1", 1)
    nominations.forget(UID)
    assert len(nominations) == 0
