"""Call extenders for scheduling cycles and bindings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final, TypeVar

import anyio

from nominee.machinery.runtime import logs
from nominee.scheduler.configuration.config import Extender
from nominee.scheduler.extenders import wire
from nominee.scheduler.extenders.search import Answer, Asking
from nominee.scheduler.extenders.tls import TransportError
from nominee.scheduler.extenders.transport import CallError, Transport
from nominee.scheduler.extenders.wire import Call, ExtenderError
from nominee.scheduler.framework.types import PodInfo

CALLS_MAX: Final = 64  # under way at once
_log = logs.get()
T = TypeVar("T")


class ExtenderClient:
    """Calls the configured extenders."""

    def __init__(self, extenders: Sequence[Extender]) -> None:
        """Take the configuration.

        Raises:
            TransportError: with the path of the field that cannot be used.
        """
        self.extenders = tuple(extenders)
        self._transports: dict[Extender, Transport] = {}
        for index, extender in enumerate(extenders):
            try:
                self._transports[extender] = Transport(extender)
            except TransportError as error:
                raise TransportError(f"extenders[{index}].{error.field}", str(error)) from None
        self._slots = anyio.CapacityLimiter(CALLS_MAX)

    async def close(self) -> None:
        """Close all connections. No call may be under way."""
        for transport in self._transports.values():
            await transport.close()

    async def converse(self, asking: Asking[T]) -> T:
        """Drive a cycle that yields calls and return its result."""
        try:
            calls = next(asking)
            while True:
                calls = asking.send(await self._ask(calls))
        except StopIteration as end:
            result: T = end.value
            return result

    async def bind(self, pod: PodInfo, node_name: str) -> bool:
        """Return whether an extender has bound the pod.

        Raises:
            ExtenderError: the extender that should bind it could not.
        """
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
        """Return the decoded answer of one call.

        Raises:
            ExtenderError: there was no answer in time, or one that cannot be used.
        """
        url = f"{call.extender.url_prefix.rstrip('/')}/{call.verb}"
        try:
            async with self._slots:
                status, body = await self._transports[call.extender].post(url, call.body)
            if status != HTTPStatus.OK:
                raise ExtenderError(f"failed {call.verb} with extender at URL {url}, code {status}")
            return json.loads(body)
        except TimeoutError:
            seconds = call.extender.http_timeout_seconds
            raise ExtenderError(f"{url} did not answer within {seconds:g} s") from None
        except (CallError, ValueError) as error:
            raise ExtenderError(f"{url}: {error}") from None
