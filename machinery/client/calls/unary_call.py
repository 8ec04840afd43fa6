"""Make unary gRPC calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

import anyio.lowlevel
import grpc.aio
from google.protobuf.message import Message

from nominee.machinery.api import errors
from nominee.machinery.runtime import task_faults
from nominee.machinery.runtime.faults.call_faults import FAULTS, Call

_SPECIAL_CREATES = {"binding": "Bind", "eviction": "Evict"}

T = TypeVar("T")


async def is_task_cancelled() -> bool:
    """Return whether this task was cancelled, and not only its call; to be called after a CancelledError.

    grpc raises a CancelledError of its own where a call is cancelled: it lacks the message by which anyio
    knows a scope's, which is raised here, and it also comes where this task was not cancelled, but the
    channel was closed.
    """
    await anyio.lowlevel.checkpoint_if_cancelled()
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def await_call(call: Awaitable[T]) -> T:
    """Return the answer of a call; a cancellation by grpc is 503, one of this task stays a cancellation."""
    try:
        return await call
    except asyncio.CancelledError:
        if await is_task_cancelled():
            raise
        raise errors.service_unavailable("the connection was closed") from None
    except (grpc.aio.UsageError, grpc.aio.InternalError):
        raise errors.service_unavailable("the client is closed") from None


def call_unary(
    to: str,
    send: Callable[..., Awaitable[T]],
    request: Message,
    seconds_max: float,
    metadata: tuple[tuple[str, str], ...] | None = None,
) -> Coroutine[object, object, T]:
    """Return the answer of a stub's method with this deadline, subject to the faults of calls to `to`.

    A call that no rule covers costs no coroutine of its own.

    Raises:
        grpc.aio.AioRpcError: the call failed.
        StatusError: 503 where the connection was closed.
    """
    if FAULTS.rules:
        return task_faults.current().call(
            call_of(to, request),
            lambda seconds: await_call(send(request, timeout=seconds, metadata=metadata)),
            seconds_max,
        )
    return await_call(send(request, timeout=seconds_max, metadata=metadata))


def call_of(to: str, request: Message) -> Call:
    """Return the call that rules match: the method `Get` of a GetRequest, and its target's resource."""
    method = type(request).__name__.removesuffix("Request")
    target = getattr(request, "target", None)
    if target is None:
        return Call(to, method)
    if method == "Create":
        method = _SPECIAL_CREATES.get(target.subresource, method)
    resource = f"{target.resource}.{target.group}" if target.group else target.resource
    return Call(to, method, resource)
