"""Calls to etcd: what is tried again, and whether it may have been applied before."""

from __future__ import annotations

from typing import Any

import anyio
import grpc
import grpc.aio
import pytest
from aetcd import rpc

from apiserver.storage.channel import REQUIRE_LEADER, Caller
from machinery.client.etcd_channel import connect


class Member:
    """Fails the first call with UNAVAILABLE, and answers the second."""

    def __init__(self, details: str) -> None:
        self._details = details
        self.asked: list[dict[str, Any]] = []

    async def __call__(self, request: rpc.RangeRequest, **options: Any) -> str:
        self.asked.append(options)
        if len(self.asked) == 1:
            none = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, none, none, details=self._details)
        return "answer"


@pytest.mark.parametrize(
    ("details", "uncertain"), [("etcdserver: no leader", False), ("Socket closed", True)]
)
async def test_a_member_without_a_leader_refuses_and_applies_nothing(details: str, uncertain: bool) -> None:
    member = Member(details)
    async with await connect(["127.0.0.1:1"]) as channel:
        caller = Caller(channel, anyio.current_time, anyio.sleep)
        assert await caller(member, rpc.RangeRequest(key=b"a")) == ("answer", uncertain)
    assert [options["metadata"] for options in member.asked] == [REQUIRE_LEADER] * 2
