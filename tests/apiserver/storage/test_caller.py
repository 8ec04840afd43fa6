"""Calls to etcd: what is tried again, and whether it may have been applied before."""

from __future__ import annotations

from typing import Any

import anyio
import grpc
import grpc.aio
import pytest
from aetcd import rpc

from nominee.apiserver.storage.channel import REQUIRE_LEADER, Caller
from nominee.apiserver.storage.interface import StorageUnavailable
from nominee.machinery.client.etcd_channel import connect
from nominee.machinery.runtime.clock import FakeClock

ANSWER = rpc.RangeResponse(header=rpc.ResponseHeader(revision=7))


class Member:
    """Fails the first call with UNAVAILABLE, and answers the second."""

    def __init__(self, details: str) -> None:
        self._details = details
        self.asked: list[dict[str, Any]] = []

    async def __call__(self, request: rpc.RangeRequest, **options: Any) -> rpc.RangeResponse:
        self.asked.append(options)
        if len(self.asked) == 1:
            none = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, none, none, details=self._details)
        return ANSWER


class SilentMember:
    """Answers none of the first calls until their time is over, as one whose leader died."""

    def __init__(self, silent: int, clock: FakeClock) -> None:
        self._silent, self._clock = silent, clock
        self.timeouts: list[float] = []

    async def __call__(self, request: rpc.RangeRequest, *, timeout: float, **_: Any) -> rpc.RangeResponse:
        self.timeouts.append(timeout)
        if len(self.timeouts) <= self._silent:
            await self._clock.advance(timeout)
            none = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(grpc.StatusCode.DEADLINE_EXCEEDED, none, none)
        return ANSWER


@pytest.mark.parametrize(
    ("several_members", "is_large", "silent", "timeouts", "outcome"),
    [
        (True, False, 1, [0.5, 0.5], (ANSWER, True)),
        (True, False, 3, [0.5, 0.5, 0.5, 0.5], (ANSWER, True)),
        # A slow etcd has the time that is left.
        (True, False, 9, [*[0.5] * 6, 12.0], None),
        (True, True, 9, [15.0], None),
        (False, False, 9, [15.0], None),
    ],
)
async def test_a_member_that_waits_for_a_dead_leader_is_left_early(
    several_members: bool,
    is_large: bool,
    silent: int,
    timeouts: list[float],
    outcome: tuple[rpc.RangeResponse, bool] | None,
) -> None:
    clock = FakeClock()
    member = SilentMember(silent, clock)
    async with await connect(["127.0.0.1:1"]) as channel:
        caller = Caller(channel, clock.monotonic, clock.sleep, several_members=several_members)
        request = rpc.RangeRequest(key=b"a")
        if outcome is None:
            with pytest.raises(StorageUnavailable) as error:
                await caller(member, request, is_large=is_large)
            assert error.value.timed_out
        else:
            assert await caller(member, request, is_large=is_large) == outcome
            assert caller.revision == 7
    assert member.timeouts == pytest.approx(timeouts)


@pytest.mark.parametrize(
    ("details", "uncertain"), [("etcdserver: no leader", False), ("Socket closed", True)]
)
async def test_a_member_without_a_leader_refuses_and_applies_nothing(details: str, uncertain: bool) -> None:
    member = Member(details)
    async with await connect(["127.0.0.1:1"]) as channel:
        caller = Caller(channel, anyio.current_time, anyio.sleep)
        assert await caller(member, rpc.RangeRequest(key=b"a")) == (ANSWER, uncertain)
    assert [options["metadata"] for options in member.asked] == [REQUIRE_LEADER] * 2
