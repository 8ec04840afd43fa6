"""Keep a board up to date with a running cluster: its writes from etcd, and the state of its processes."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from nominee.dashboard import processes
from nominee.dashboard.board import Board
from nominee.lab.history.connection import connect_to_etcd
from nominee.lab.history.etcd_observer import EtcdObserver
from nominee.lab.history.etcd_watch import HistoryUnavailable
from nominee.lab.history.revision import Revision
from nominee.lab.timeline.reading import LogMarks, Reader
from nominee.machinery.api.kinds import LEASE, NODE
from nominee.machinery.runtime.clock import Clock

RETRY_SECONDS: Final = 0.5
GATHER_SECONDS: Final = 0.25
GATHER_SECONDS_MAX: Final = 1.0
"""A busy etcd is read four times a second, and once a second while it stays busy, as a page is drawn."""
POLL_SECONDS: Final = 1.0
POLL_SHARE: Final = 50
"""The processes are asked for a fiftieth of the time at most: many pods in a queue take long to list."""
STATES_SECONDS_MAX: Final = 5.0
"""Their states are asked for more often, if need be: that takes little of them."""
BUSY_FACTOR: Final = 4
"""While the cluster is busy its processes are asked so many times less often."""
_LEADERS: Final = "kube-system"

T = TypeVar("T")


@dataclass(slots=True)
class ClusterFollower:
    """Follows one cluster. `reader` has read its history up to now, into the board's time line."""

    board: Board
    reader: Reader
    logs: LogMarks
    clock: Clock
    _holders: dict[str, str] = field(default_factory=dict)
    _nodes: set[str] = field(default_factory=set)
    _polled: tuple[float, float] = (-math.inf, 0.0)
    """When the processes were asked for their states, and the pause after it; in seconds."""
    _listed: tuple[float, float] = (-math.inf, 0.0)
    """The same for queues and groups."""
    _observer: EtcdObserver | None = None

    def __post_init__(self) -> None:
        for item in self.board.timeline.items():
            self._note(item.revision)

    async def follow_writes(self) -> None:
        """Add every write; etcd may be down meanwhile."""
        while True:
            try:
                await self._follow()
            except HistoryUnavailable:
                await self.clock.sleep(RETRY_SECONDS)

    async def _follow(self) -> None:
        channel = await connect_to_etcd(self.board.directory)
        try:
            history = self.reader.history
            self._observer = observer = EtcdObserver(
                channel,
                fold=history.fold,
                coverage=history.coverage,
                now=self.clock.now,
                gather_seconds=GATHER_SECONDS,
                gather_seconds_max=GATHER_SECONDS_MAX,
            )
            async with aclosing(observer.follow()) as batches:
                async for batch in batches:
                    for revision in batch:
                        self._observe(revision)
                    self.board.resets += any(revision.is_state for revision in batch)
                    self._take_marks()
                    self.board.notify()
        finally:
            await channel.close()

    def _observe(self, revision: Revision) -> None:
        self.reader.observe(revision)
        self._note(revision)

    def _take_marks(self) -> None:
        self.board.add_marks(self.reader.marks)
        self.reader.marks = []

    def _note(self, revision: Revision) -> None:
        """Note the nodes that exist, and who holds the leases of leader election."""
        if revision.kind is NODE:
            (self._nodes.discard if revision.value is None else self._nodes.add)(revision.name)
        is_election = revision.namespace == _LEADERS and revision.is_readable
        lease = revision.after(LEASE) if is_election else None
        if lease is not None:
            self._holders[revision.name] = lease.spec.holderIdentity

    async def poll(self) -> None:
        """Ask the processes while a page follows."""
        while True:
            change = self.board.change
            if not self.board.clients:
                await change.wait()
                continue
            await self.refresh()
            await self.clock.sleep(POLL_SECONDS)

    async def refresh(self) -> None:
        """Ask the processes, unless that was just done, or is being done."""
        began = self.clock.monotonic()
        if self._is_early(began, self._polled):
            return
        took, self._polled = 0.0, (began, math.inf)
        try:
            await self._ask()
            took = self.clock.monotonic() - began
        finally:
            self._polled = began, min(max(POLL_SECONDS, took * POLL_SHARE), STATES_SECONDS_MAX)

    def _is_early(self, now: float, last: tuple[float, float]) -> bool:
        """Return whether the pause after the last time is not over; the work of a busy cluster goes first."""
        is_busy = self._observer is not None and self._observer.is_busy
        began, pause = last
        return now < began + pause * (BUSY_FACTOR if is_busy else 1)

    async def _ask(self) -> None:
        directory, now = self.board.directory, self.clock.now()
        year = datetime.fromtimestamp(now, UTC).year
        # Not abandoned: each line is read once.
        self.board.add_marks(await anyio.to_thread.run_sync(self.logs.read, year))
        found = await _in_thread(lambda: processes.running(directory, self._holders.values()))
        self.board.set_part("components", found or processes.of_plan(directory))
        scheduler, autoscaler, cloud = (
            _asked(found or [], name) for name in ("scheduler", "autoscaler", "cloud")
        )
        for part, process in (("queues", scheduler), ("autoscaler", cloud)):
            if not process:
                self.board.set_part(part, None)
        began = self.clock.monotonic()
        if self._is_early(began, self._listed):
            return
        if scheduler:
            queues = await _in_thread(lambda: processes.queues(directory, scheduler, now))
            self.board.set_part("queues", queues)
        if cloud:
            groups = await _in_thread(lambda: processes.autoscaler(directory, autoscaler, self._nodes))
            self.board.set_part("autoscaler", groups)
        self._listed = began, (self.clock.monotonic() - began) * POLL_SHARE


def _asked(found: list[processes.Component], component: str) -> str:
    """Return the process of a component that leads, or the first; "" if none is healthy.

    To wait for a paused one would count as time for which the processes were asked.
    """
    healthy = [each for each in found if each["component"] == component and each["health"] == "ok"]
    leaders = (each for each in healthy if each["leader"])
    return str(next(leaders, next(iter(healthy), {"name": ""}))["name"])


async def _in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
