"""Calls to extenders, beside the event loop: HTTP of the standard library in threads, bounded."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread

from machinery import logs
from scheduler.config import Extender
from scheduler.extenders import wire
from scheduler.extenders.search import Answer, Asking
from scheduler.extenders.wire import Call, ExtenderError
from scheduler.framework.types import PodInfo

CALLS_MAX: Final = 64  # under way at once
_log = logs.get()
T = TypeVar("T")


class ExtenderClient:
    """Asks the configured extenders. TLS is not verified, as upstream does where no CA is given."""

    def __init__(self, extenders: Sequence[Extender]) -> None:
        self.extenders = tuple(extenders)
        self._threads = anyio.CapacityLimiter(CALLS_MAX)

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
            return await anyio.to_thread.run_sync(_post, call, abandon_on_cancel=True, limiter=self._threads)
        raise ExtenderError(f"{_url(call)} did not answer within {limit:g} s")


def _url(call: Call) -> str:
    return f"{call.extender.url_prefix.rstrip('/')}/{call.verb}"


def _post(call: Call) -> Any:
    url = _url(call)
    request = urllib.request.Request(  # the address is the administrator's
        url,
        data=json.dumps(call.body).encode(),
        headers={"Content-Type": "application/json", "Accept": "application/json"},
        method="POST",
    )
    try:
        with _OPENER.open(request, timeout=call.extender.http_timeout_seconds) as answer:
            if answer.status != http.client.OK:
                raise ExtenderError(_refused(call, answer.status))
            return json.load(answer)
    except urllib.error.HTTPError as error:
        error.close()
        raise ExtenderError(_refused(call, error.code)) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ExtenderError(f"{url}: {error}") from None


def _refused(call: Call, code: int) -> str:
    return f"failed {call.verb} with extender at URL {_url(call)}, code {code}"


def _opener() -> urllib.request.OpenerDirector:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    # No proxy: an extender is a neighbour, and its address is taken as it stands.
    return urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )


_OPENER: Final = _opener()
