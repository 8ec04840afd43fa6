"""Writes that are tried again while the API server cannot be reached: an answer that was lost counts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_already_exists, is_conflict
from nominee.machinery.api.kinds import M
from nominee.machinery.api.objects import key_of
from nominee.machinery.client.api_client import Client, retry_unavailable

T = TypeVar("T")


async def create(client: Client, obj: M) -> M:
    """Create an object, and return it as stored, also if an attempt was applied whose answer was lost.

    Raises:
        StatusError: it cannot be created, or existed before the first attempt.
    """
    key = key_of(obj)

    async def stored(error: StatusError) -> M:
        if not is_already_exists(error):
            raise error
        return await client.get(kinds.of(obj), key.name, key.namespace)

    return await _written(lambda: client.create(obj), stored)


async def bind(client: Client, namespace: str, name: str, node: str) -> None:
    """Bind a pod to a node, also if an attempt was applied whose answer was lost.

    Raises:
        StatusError: it cannot be bound, or was bound before the first attempt.
    """

    async def bound(error: StatusError) -> None:
        if not is_conflict(error):
            raise error
        if (await client.get(kinds.POD, name, namespace)).spec.nodeName != node:
            raise error

    await _written(lambda: client.bind(namespace, name, node), bound)


async def _written(write: Callable[[], Awaitable[T]], applied: Callable[[StatusError], Awaitable[T]]) -> T:
    """Write; `applied` returns what an earlier attempt wrote, or raises the error that a later one got."""
    attempts = 0

    async def attempt() -> T:
        nonlocal attempts
        attempts += 1
        try:
            return await write()
        except StatusError as error:
            if attempts == 1:
                raise
            return await applied(error)

    return await retry_unavailable(attempt)
