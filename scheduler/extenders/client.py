"""Calls to extenders, beside the event loop: HTTP in threads, bounded."""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread

from machinery.runtime import logs
from scheduler.config import Extender
from scheduler.extenders import wire
from scheduler.extenders.search import Answer, Asking
from scheduler.extenders.transport import Transport, TransportError
from scheduler.extenders.wire import Call, ExtenderError
from scheduler.framework.types import PodInfo

CALLS_MAX: Final = 64  # under way at once
_log = logs.get()
T = TypeVar("T")


class ExtenderClient:
    """Asks the configured extenders."""

    def __init__(self, extenders: Sequence[Extender]) -> None:
        """TransportError with the path of the field that cannot be used."""
        self.extenders = tuple(extenders)
        self._transports: dict[Extender, Transport] = {}
        for index, extender in enumerate(extenders):
            try:
                self._transports[extender] = Transport(extender)
            except TransportError as error:
                raise TransportError(f"extenders[{index}].{error.field}", str(error)) from None
        self._threads = anyio.CapacityLimiter(CALLS_MAX)

    def close(self) -> None:
        """No call may be under way."""
        for transport in self._transports.values():
            transport.close()

    async def converse(self, asking: Asking[T]) -> T:
        """Drives a cycle that asks; returns what it comes to."""
        try:
            calls = next(asking)
            while True:
                calls = asking.send(await self._ask(calls))
        except StopIteration as end:
            result: T = end.value
            return result

    async def bind(self, pod: PodInfo, node_name: str) -> bool:
        """Whether an extender has bound the pod; ExtenderError when the one that should could not."""
        for extender in self.extenders:
            if not extender.bind_verb or not wire.is_interested(extender, pod):
                continue
            try:
                wire.read_bound(await self._call(wire.bind_call(extender, pod, node_name)))
            except ExtenderError as error:
                if not extender.ignorable:
                    raise
                _log.warning("Extender ignored", extender=extender.url_prefix, step="bind", error=str(error))
                continue
            return True
        return False

    async def _ask(self, calls: Sequence[Call]) -> list[Answer]:
        answers: list[Answer] = [None] * len(calls)

        async def ask(index: int, call: Call) -> None:
            try:
                answers[index] = await self._call(call)
            except ExtenderError as error:
                _log.warning(
                    "Extender failed", extender=call.extender.url_prefix, step=call.verb, error=str(error)
                )
                answers[index] = error

        async with anyio.create_task_group() as group:
            for index, call in enumerate(calls):
                group.start_soon(ask, index, call)
        return answers

    async def _call(self, call: Call) -> Any:
        """The decoded answer of one call; ExtenderError, also when it takes too long."""
        limit = call.extender.http_timeout_seconds
        with anyio.move_on_after(limit):
            return await anyio.to_thread.run_sync(
                _post, self._transports[call.extender], call, abandon_on_cancel=True, limiter=self._threads
            )
        raise _too_late(call)


def _url(call: Call) -> str:
    return f"{call.extender.url_prefix.rstrip('/')}/{call.verb}"


def _too_late(call: Call) -> ExtenderError:
    return ExtenderError(f"{_url(call)} did not answer within {call.extender.http_timeout_seconds:g} s")


def _post(transport: Transport, call: Call) -> Any:
    url = _url(call)
    try:
        status, body = transport.post(url, call.body)
        if status != http.client.OK:
            raise ExtenderError(f"failed {call.verb} with extender at URL {url}, code {status}")
        return json.loads(body)
    except TimeoutError:
        raise _too_late(call) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ExtenderError(f"{url}: {error}") from None
