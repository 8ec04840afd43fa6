"""Tickets: waiting, refusing, leaving, counting; and what the REST front reports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from nominee.apiserver.access.access import Access
from nominee.apiserver.access.authentication import Credentials
from nominee.apiserver.flow_control.controller import TOO_MANY, FlowControl, Limits, Ticket, TooManyRequests
from nominee.apiserver.flow_control.metrics import collect
from nominee.apiserver.fronts.rest.front import FrontOptions
from nominee.apiserver.kinds.flowcontrol import bootstrap
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import ADMIN, User
from nominee.machinery.runtime.clock import FakeClock
from tests.apiserver.rest.asgi import VERSION, Rest, in_memory, rest_front
from tests.support.patience import PATIENCE_SECONDS

ALICE = User("alice", ("system:authenticated",))
BOB = User("bob", ("system:authenticated",))
UNMATCHED = User("unmatched")
LIST = Attributes("list", "pods")
LIMIT_SECONDS = PATIENCE_SECONDS


def small(**limits: Any) -> FlowControl:
    """A server of few seats: global-default and catch-all have one each."""
    return FlowControl(FakeClock(), Limits(6, 6, **limits))


@asynccontextmanager
async def waiting(*tickets: Ticket) -> AsyncIterator[list[Ticket]]:
    """Tickets that wait in tasks of their own; those that come through are in the list, in order."""
    through: list[Ticket] = []

    async def wait(ticket: Ticket) -> None:
        await ticket.wait()
        through.append(ticket)

    async with anyio.create_task_group() as group:
        for ticket in tickets:
            group.start_soon(wait, ticket)
        await anyio.wait_all_tasks_blocked()
        yield through
        group.cancel_scope.cancel()


def sample(control: FlowControl, name: str, **labels: str) -> float:
    for family in collect(control):
        for one in family.samples:
            if one.name == name and labels.items() <= one.labels.items():
                return one.value
    raise LookupError(name, labels)


async def test_a_seat_is_handed_on() -> None:
    control = small()
    first = control.arrive(ALICE, LIST)
    second = control.arrive(ALICE, LIST)
    assert (first.admitted, second.admitted) == (True, False)
    async with waiting(second) as through:
        assert (
            sample(control, "apiserver_flowcontrol_current_inqueue_requests", flow_schema="global-default")
            == 1
        )
        first.leave()
        await anyio.wait_all_tasks_blocked()
        assert through == [second]
    second.leave()
    second.leave()
    assert control.in_flight == {True: 0, False: 0}
    assert (
        sample(control, "apiserver_flowcontrol_dispatched_requests_total", flow_schema="global-default") == 2
    )
    assert (
        sample(control, "apiserver_flowcontrol_current_executing_requests", flow_schema="global-default") == 0
    )


async def test_masters_never_wait() -> None:
    control = small()
    tickets = [control.arrive(ADMIN, LIST) for _ in range(1000)]
    assert all(ticket.admitted for ticket in tickets)
    for ticket in tickets:
        ticket.leave()
    assert control.levels["exempt"].queues.demand.value == 0


async def test_one_user_does_not_lock_out_another() -> None:
    control = small()
    seat = control.arrive(ALICE, LIST)
    flood = [control.arrive(ALICE, LIST) for _ in range(100)]
    bobs = control.arrive(BOB, LIST)
    async with waiting(*flood, bobs) as through:
        rounds = 0
        seat.leave()
        while bobs not in through:
            rounds += 1
            assert rounds < 12, "six queues of the other flow at most come first"
            await anyio.wait_all_tasks_blocked()
            through[-1].leave()


async def test_waiting_has_a_limit() -> None:
    control = small(wait_seconds=0.0)
    seat = control.arrive(ALICE, LIST)
    late = control.arrive(ALICE, LIST)
    with pytest.raises(TooManyRequests) as caught:
        await late.wait()
    late.leave()
    assert (caught.value.code, caught.value.message, caught.value.retry_after_seconds) == (429, TOO_MANY, 1)
    assert sample(control, "apiserver_flowcontrol_rejected_requests_total", reason="time-out") == 1
    assert sample(control, "apiserver_dropped_requests_total", request_kind="readOnly") == 1
    seat.leave()
    assert control.levels["global-default"].queues.demand.value == 0


async def test_a_level_without_queues_refuses_at_once() -> None:
    control = small()
    seat = control.arrive(UNMATCHED, LIST)
    with pytest.raises(TooManyRequests):
        await control.arrive(UNMATCHED, LIST).wait()
    assert sample(control, "apiserver_flowcontrol_rejected_requests_total", reason="concurrency-limit") == 1
    seat.leave()
    assert control.arrive(UNMATCHED, LIST).admitted


async def test_full_queues_refuse() -> None:
    control = small()
    queued = [control.arrive(ALICE, LIST) for _ in range(1 + 6 * 50)]
    with pytest.raises(TooManyRequests):
        await control.arrive(ALICE, LIST).wait()
    assert sample(control, "apiserver_flowcontrol_rejected_requests_total", reason="queue-full") == 1
    for ticket in queued:
        ticket.leave()
    assert control.in_queue == {True: 0, False: 0}
    assert control.levels["global-default"].queues.demand.value == 0


async def test_who_leaves_the_queue_makes_room() -> None:
    control = small()
    seat = control.arrive(ALICE, LIST)
    gone = control.arrive(ALICE, LIST)
    async with waiting(gone):
        pass
    gone.leave()
    assert control.in_queue[True] == 0
    after = control.arrive(ALICE, LIST)
    seat.leave()
    assert after.admitted


async def test_without_fairness_two_limits_hold() -> None:
    control = FlowControl(FakeClock(), Limits(1, 2, fair=False))
    write = Attributes("create", "pods", namespace="default")
    assert [control.arrive(ALICE, LIST).admitted for _ in range(2)] == [True, False]
    assert [control.arrive(ALICE, write).admitted for _ in range(3)] == [True, True, False]
    assert control.arrive(ADMIN, LIST).admitted
    with pytest.raises(TooManyRequests):
        await control.arrive(ALICE, LIST).wait()


async def test_a_changed_configuration_is_in_force_and_mandatory_levels_stay() -> None:
    control = FlowControl(FakeClock())
    assert control.levels["global-default"].queues.limit == 49
    levels = bootstrap.suggested_levels()
    levels[-1].spec.limited.nominalConcurrencyShares = 200
    broken = bootstrap.mandatory_levels()[1]
    broken.spec.limited.nominalConcurrencyShares = 1000
    broken.metadata.uid = "u-1"
    control.configure(bootstrap.suggested_schemas(), [*levels, broken])
    assert control.levels["global-default"].queues.limit == 283
    assert control.levels["catch-all"].level.shares == 5
    assert control.levels["catch-all"].level.uid == "u-1"
    control.configure((), ())
    assert set(control.levels) == {"exempt", "catch-all"}
    assert control.arrive(ALICE, LIST).level == "catch-all"


async def test_idle_seats_are_lent() -> None:
    clock = FakeClock()
    control = FlowControl(clock)
    tickets = [control.arrive(ALICE, LIST) for _ in range(100)]
    assert sum(ticket.admitted for ticket in tickets) == 49
    await clock.advance(10.0)
    control.lend()
    assert sum(ticket.admitted for ticket in tickets) == 100
    assert control.levels["global-default"].queues.limit > 100
    assert sample(control, "apiserver_flowcontrol_current_limit_seats", priority_level="global-default") > 100


async def test_made_up_names_do_not_fill_the_memory() -> None:
    control = FlowControl(FakeClock())
    for number in range(10_000):
        control.arrive(ALICE, Attributes("get", path=f"/{number}")).leave()
    assert len(control._classifications) <= 4096


class OneUser:
    """An authenticator for which all requests are of one user."""

    def __init__(self, user: User) -> None:
        self._user = user

    def user_of(self, credentials: Credentials) -> User:
        return self._user


async def rest_of(control: FlowControl, user: User) -> Rest:
    plain = await in_memory()
    access = Access(OneUser(user))  # type: ignore[arg-type]  # an authenticator of one method
    front = rest_front(
        plain.registry, FakeClock(), FrontOptions(VERSION), access=access, flow_control=control
    )
    return Rest(front)


async def test_rest_names_schema_and_level_and_refuses_with_upstreams_message() -> None:
    control = small(wait_seconds=0.0)
    schemas, levels = bootstrap.suggested_schemas(), bootstrap.suggested_levels()
    schemas[-1].metadata.uid, levels[-1].metadata.uid = "schema-uid", "level-uid"
    control.configure(schemas, levels)
    rest = await rest_of(control, ALICE)
    found = await rest.json("GET", "/api/v1/namespaces/default")
    assert found.code == 200
    assert found.header("x-kubernetes-pf-flowschema-uid") == "schema-uid"
    assert found.header("x-kubernetes-pf-prioritylevel-uid") == "level-uid"
    missing = await rest.json("GET", "/api/v1/namespaces/none")
    assert (missing.code, missing.header("x-kubernetes-pf-flowschema-uid")) == (404, "schema-uid")
    seat = control.arrive(ALICE, LIST)
    refused = await rest.json("GET", "/api/v1/namespaces/default")
    assert (refused.code, refused.body) == (429, b"Too many requests, please try again later.\n")
    assert refused.header("retry-after") == "1"
    assert refused.header("content-type") == "text/plain; charset=utf-8"
    assert refused.header("x-kubernetes-pf-flowschema-uid") == "schema-uid"
    assert (await rest.json("GET", "/healthz")).code != 429
    seat.leave()
    assert (await rest.json("GET", "/api/v1/namespaces/default")).code == 200
    assert control.in_flight == {True: 0, False: 0}
