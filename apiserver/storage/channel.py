"""Calls to etcd that survive its restart (the channel: `nominee.machinery.client.etcd_channel`).

Only the generated stubs of aetcd are used: its client has one host, 4 MiB messages and unbounded queues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import anyio.lowlevel
import grpc
import grpc.aio
from aetcd import rpc
from google.protobuf.message import Message

from nominee.apiserver.storage.interface import (
    Compacted,
    FutureRevision,
    LeaseNotFound,
    StorageError,
    StorageUnavailable,
    ValueTooLarge,
)
from nominee.machinery.api.storage_keys import kind_below
from nominee.machinery.client.calls.unary_call import call_of
from nominee.machinery.runtime import task_faults
from nominee.machinery.runtime.faults import call_faults
from nominee.machinery.runtime.faults.call_faults import FAULTS, Call


class _Answer(Protocol):
    header: Any


T = TypeVar("T", bound=_Answer)
ETCD = "etcd"
REQUIRE_LEADER = (("hasleader", "true"),)
"""Metadata: a member that has lost its leader fails the call, or ends the watch, instead of being silent."""
call_faults.declare(ETCD, ("Range", "Txn", "Compaction", "LeaseGrant", "Watch"), refused=("merge",))

# The limit of one operation, retries included. kube-apiserver's requests have 60 s; here a client gets 503
# earlier and retries.
OPERATION_SECONDS_MAX = 15.0
_RETRY_PAUSE_SECONDS = 0.05
# A member that forwarded a request to a leader that died answers after 7 s (twice the election timeout of
# 1 s, and 5 s). With several members the first attempts are short, so that one comes soon after the election;
# the last one has the time that is left, so that a slow etcd is not asked again and again.
_SHORT_ATTEMPT_SECONDS, _SHORT_ATTEMPTS_MAX = 0.5, 6
# The errors of etcd's limit, and of its gRPC server's larger one.
_TOO_LARGE = ("etcdserver: request is too large", "received message larger than max")
_NO_LEADER = "etcdserver: no leader"
_TOO_LARGE_CODES = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)


def translate(error: grpc.aio.AioRpcError, revision: int = 0) -> StorageError:
    """Return the StorageError of an etcd error."""
    code, text = error.code(), error.details() or ""
    if code is grpc.StatusCode.OUT_OF_RANGE:
        return FutureRevision(revision) if "future" in text else Compacted(revision)
    if code in _TOO_LARGE_CODES and any(problem in text for problem in _TOO_LARGE):
        return ValueTooLarge(text)
    if code is grpc.StatusCode.NOT_FOUND and "lease" in text:
        return LeaseNotFound(text)
    return StorageUnavailable(
        f"etcd: {text or code.name}", timed_out=code is grpc.StatusCode.DEADLINE_EXCEEDED, maybe_applied=True
    )


class Caller:
    """Makes calls and retries them while etcd is unavailable, for at most `OPERATION_SECONDS_MAX`.

    `revision` is the newest one of an answer: a value that is not newer was there before any later call.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        *,
        several_members: bool = False,
    ) -> None:
        self.kv = rpc.KVStub(channel)
        self.lease = rpc.LeaseStub(channel)
        self._monotonic = monotonic
        self._sleep = sleep
        self._short_attempts_max = _SHORT_ATTEMPTS_MAX if several_members else 0
        self.revision = 0

    async def __call__(
        self,
        send: Callable[..., Awaitable[T]],
        request: Message,
        *,
        revision: int = 0,
        is_large: bool = False,
    ) -> tuple[T, bool]:
        """Return (the response of a stub's method, whether an earlier attempt may have been applied).

        UNAVAILABLE is retried, and so is a short attempt that ended without an answer. A request that
        `is_large` may take longer, and has no short attempts. `revision` is for the error's text.

        Raises: StorageError.
        """
        deadline = self._monotonic() + OPERATION_SECONDS_MAX
        uncertain = False
        short_attempts = 0 if is_large else self._short_attempts_max
        while True:
            left = deadline - self._monotonic()
            is_short = short_attempts > 0 and left > _SHORT_ATTEMPT_SECONDS
            short_attempts -= is_short
            seconds = _SHORT_ATTEMPT_SECONDS if is_short else max(left, 0.001)
            try:
                answer = await _once(send, request, seconds)
            except grpc.aio.AioRpcError as error:
                if is_short and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    uncertain = True
                    continue
                if error.code() is not grpc.StatusCode.UNAVAILABLE or left <= _RETRY_PAUSE_SECONDS:
                    raise translate(error, revision) from error
                refused = _NO_LEADER in (error.details() or "")
            else:
                self.revision = max(self.revision, answer.header.revision)
                return answer, uncertain
            uncertain = uncertain or not refused
            await self._sleep(_RETRY_PAUSE_SECONDS)


def _call_of(request: Message) -> Call:
    """Return the call that rules match: a transaction, or a range, is about the kind of its first key."""
    method = call_of(ETCD, request).method
    key = getattr(request.compare[0] if isinstance(request, rpc.TxnRequest) else request, "key", b"")
    kind = kind_below(key.decode(errors="replace"))
    return Call(ETCD, method, kind.group_resource if kind is not None else "")


async def _once(send: Callable[..., Awaitable[T]], request: Message, timeout_seconds: float) -> T:
    """Make one call. AioRpcError and the cancellation of an anyio scope pass through."""
    try:
        if FAULTS.rules:
            return await task_faults.current().call(
                _call_of(request),
                lambda seconds: send(request, timeout=seconds, metadata=REQUIRE_LEADER, wait_for_ready=True),
                timeout_seconds,
            )
        return await send(request, timeout=timeout_seconds, metadata=REQUIRE_LEADER, wait_for_ready=True)
    except asyncio.CancelledError:
        # grpc raises a CancelledError of its own, which the cancelled scope would not know as its own.
        await anyio.lowlevel.checkpoint_if_cancelled()
        raise
