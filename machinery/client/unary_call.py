"""Await a gRPC call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import anyio.lowlevel
import grpc.aio

from machinery.api import errors

T = TypeVar("T")


async def await_call(call: Awaitable[T]) -> T:
    """Return the answer of a call; a cancellation by grpc is 503, one of this task stays a cancellation.

    grpc raises a CancelledError of its own where a call is cancelled: it lacks the message by which anyio
    knows a scope's, and it also comes where this task was not cancelled, but the channel was closed.
    """
    try:
        return await call
    except asyncio.CancelledError:
        await anyio.lowlevel.checkpoint_if_cancelled()
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise errors.service_unavailable("the connection was closed") from None
    except (grpc.aio.UsageError, grpc.aio.InternalError):
        raise errors.service_unavailable("the client is closed") from None
