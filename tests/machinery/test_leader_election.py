"""Leader election: who leads, when it is taken over, and that two never lead at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from nominee.machinery.api import errors
from nominee.machinery.api.pb import coordination
from nominee.machinery.client.leader_election import (
    UNRENEWED_SECONDS_MAX,
    LeaderElector,
    LeadershipLostError,
    Timing,
)
from nominee.machinery.runtime.clock import FakeClock
from tests.support.leases import LeaseServer
from tests.support.patience import PATIENCE_SECONDS

LIMIT_SECONDS = PATIENCE_SECONDS


@dataclass
class Candidate:
    """An elector with a note of what became of it."""

    elector: LeaderElector
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    lost: bool = False
    ended: bool = False

    async def run(self) -> None:
        with self.scope:
            try:
                await self.elector.run(anyio.sleep_forever)
            except LeadershipLostError:
                self.lost = True
        self.ended = True

    @property
    def leads(self) -> bool:
        return self.elector.leading


def candidate(server: LeaseServer, clock: FakeClock, name: str, **kwargs: Any) -> Candidate:
    return Candidate(
        LeaderElector(
            server.client,
            name="scheduler",
            identity=name,
            clock=clock,
            rng=random.Random(name),
            **kwargs,
        )
    )


async def advance(clock: FakeClock, seconds: float, check: Callable[[], None] = lambda: None) -> None:
    """In small steps, so that each retry sees its own time; `check` after each."""
    for _ in range(round(seconds / 0.25)):
        await clock.advance(0.25)
        check()


async def test_the_first_leads_and_renews_by_one_write() -> None:
    server, clock = LeaseServer(), FakeClock()
    a, b = candidate(server, clock, "a"), candidate(server, clock, "b")
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(a.run)
            await clock.settle()
            assert a.leads
            assert server.requests == ["get", "create"]
            await advance(clock, 4.0)
            assert server.requests == ["get", "create", "update", "update"]
            group.start_soon(b.run)
            await advance(clock, 60, lambda: _one(a, b))
            assert (a.leads, b.leads) == (True, False)
            assert server.lease is not None
            assert server.lease.spec.leaseTransitions == 0
            group.cancel_scope.cancel()


async def test_a_leader_that_does_not_renew_is_not_healthy() -> None:
    server, clock = LeaseServer(), FakeClock()
    a = candidate(server, clock, "a")
    a.elector.check_renewed()
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(a.run)
            await advance(clock, 1)
            a.elector.check_renewed()
            # The clock alone: the task that renews does not run.
            clock.set(clock.now() + Timing().lease_seconds + UNRENEWED_SECONDS_MAX + 1)
            with pytest.raises(RuntimeError, match="failed election to renew leadership on lease scheduler"):
                a.elector.check_renewed()
            group.cancel_scope.cancel()


async def test_a_renewal_that_was_cancelled_and_done_all_the_same_does_not_keep_the_lease() -> None:
    server, clock = LeaseServer(), FakeClock()
    a = candidate(server, clock, "a")
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(a.run)
            await clock.settle()
            assert server.lease is not None
            server.lease.metadata.resourceVersion = "99"
            a.scope.cancel()
            await clock.settle()
            assert a.ended
            assert server.lease.spec.holderIdentity == ""


async def test_a_release_is_taken_at_once() -> None:
    server, clock = LeaseServer(), FakeClock()
    a, b = candidate(server, clock, "a"), candidate(server, clock, "b")
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(a.run)
            await clock.settle()
            group.start_soon(b.run)
            await clock.settle()
            a.scope.cancel()
            await clock.settle()
            assert a.ended
            assert not a.leads
            assert server.lease is not None
            assert (server.lease.spec.holderIdentity, server.lease.spec.leaseDurationSeconds) == ("", 1)
            await advance(clock, 2.0 * 2.2 + 0.25)
            assert b.leads
            assert server.lease.spec.leaseTransitions == 1
            group.cancel_scope.cancel()


async def test_a_dead_leader_is_succeeded_after_a_whole_lease_from_the_first_sight() -> None:
    """The lease had run out long before the candidate came; it goes by its own clock only."""
    server, clock = LeaseServer(), FakeClock()
    dead = candidate(server, clock, "dead")
    async with anyio.create_task_group() as group:
        group.start_soon(dead.run)
        await clock.settle()
        # As by SIGKILL: nothing is released.
        server.failing = errors.service_unavailable("the process is dead")
        group.cancel_scope.cancel()
    server.failing = None
    await clock.advance(1000)
    heir = candidate(server, clock, "heir")
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(heir.run)
            await advance(clock, 14.5)
            assert not heir.leads
            await advance(clock, 0.75 + 2.0 * 2.2)
            assert heir.leads
            group.cancel_scope.cancel()


async def test_a_leader_without_an_answer_stops_before_another_may_begin() -> None:
    server, clock = LeaseServer(), FakeClock()
    a, b = candidate(server, clock, "a"), candidate(server, clock, "b")
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(a.run)
            await clock.settle()
            group.start_soon(b.run)
            await advance(clock, 5.0)
            server.failing = errors.service_unavailable("no route")
            await advance(clock, 8.0, lambda: _one(a, b))
            assert a.leads, "not yet: the renew deadline is 10 s"
            await advance(clock, 2.5, lambda: _one(a, b))
            assert a.lost
            server.failing = None
            await advance(clock, 20.0, lambda: _one(a, b))
            assert b.leads
            group.cancel_scope.cancel()


async def test_a_short_outage_is_survived() -> None:
    server, clock = LeaseServer(), FakeClock()
    a = candidate(server, clock, "a")
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(a.run)
            await advance(clock, 5.0)
            server.failing = errors.service_unavailable("restarting")
            await advance(clock, 7.0)
            server.failing = None
            await advance(clock, 30.0)
            assert a.leads
            group.cancel_scope.cancel()


async def test_whose_lease_was_taken_stops() -> None:
    server, clock = LeaseServer(), FakeClock()
    a = candidate(server, clock, "a")
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(a.run)
            await clock.settle()
            assert server.lease is not None
            server.lease.spec.holderIdentity = "thief"
            server.lease.metadata.resourceVersion = "99"
            await advance(clock, 2.5)
            assert a.lost
            assert server.lease.spec.holderIdentity == "thief"


async def test_a_call_that_hangs_does_not_outlast_the_lease() -> None:
    """In real time, since it is the call that hangs, not the clock."""
    from nominee.machinery.runtime.clock import SystemClock

    class Hanging(LeaseServer):
        async def update(self, lease: coordination.Lease) -> coordination.Lease:
            await anyio.sleep_forever()
            raise AssertionError

    server = Hanging()
    elector = LeaderElector(
        server.client,
        name="scheduler",
        identity="a",
        clock=SystemClock(),
        rng=random.Random(1),
        timing=Timing(lease_seconds=0.6, renew_deadline_seconds=0.4, retry_seconds=0.1),
    )
    with anyio.fail_after(LIMIT_SECONDS), pytest.raises(LeadershipLostError):
        await elector.run(anyio.sleep_forever)


async def test_new_leaders_are_reported_once_each() -> None:
    server, clock = LeaseServer(), FakeClock()
    seen: list[str] = []
    a, b = candidate(server, clock, "a"), candidate(server, clock, "b", on_new_leader=seen.append)
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(a.run)
            await clock.settle()
            group.start_soon(b.run)
            await advance(clock, 10.0)
            a.scope.cancel()
            await advance(clock, 5.0)
            group.cancel_scope.cancel()
    assert [name for name in seen if name] == ["a", "b"]


@pytest.mark.parametrize(
    ("timing", "message"),
    [
        ((10.0, 10.0, 2.0), "leaseDuration must be greater than renewDeadline"),
        ((15.0, 2.0, 2.0), r"renewDeadline must be greater than retryPeriod\*JitterFactor"),
        ((15.0, 10.0, 0.0), "retryPeriod must be greater than zero"),
    ],
)
def test_timings_that_cannot_work(timing: tuple[float, float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Timing(*timing)


def _one(*candidates: Candidate) -> None:
    assert sum(each.leads for each in candidates) <= 1
