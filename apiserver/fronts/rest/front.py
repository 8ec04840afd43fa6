"""A request's way: path and Accept header, body, the registry, and the answer or Status.

`RestFront` is an ASGI application. The registry decides everything about objects; here is only HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from apiserver.access.access import OPEN, Access
from apiserver.access.attributes import CURRENT_ATTRIBUTES
from apiserver.access.service_accounts import ServiceAccountTokens
from apiserver.access.user import ADMIN, CURRENT, User
from apiserver.chain.metrics import RequestLabels, RequestMetrics
from apiserver.flow_control.controller import FlowControl, Ticket, TooManyRequests
from apiserver.fronts.rest import (
    answers,
    compression,
    deadline,
    deprecated,
    door,
    flow,
    meta_paths,
    problems,
    resources,
    watching,
)
from apiserver.fronts.rest.http import Answer, ClientGone, Receive, Request, Send
from apiserver.fronts.rest.kubelets import UsageSource
from apiserver.fronts.rest.media import JSON, Media, negotiate
from apiserver.fronts.rest.node_proxy import NodeSource
from apiserver.fronts.rest.target import Target, parse
from apiserver.objects.requests import RegistryAPI
from apiserver.storage.interface import StorageError
from apiserver.storage.status import to_status
from machinery.api import errors
from machinery.api.errors import StatusError
from machinery.features.gates import Version
from machinery.process.health import HEADERS, NOT_FOUND, TEXT, Health
from machinery.runtime import logs
from machinery.runtime.clock import Clock

_log = logs.get()
_STOPPING = "the API server is shutting down"
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class FrontOptions:
    """`health` are the server's checks, `accounts` issues tokens; `usage` is for metrics.k8s.io, `nodes`
    for nodes/proxy.
    """

    version: Version
    address: str = ""
    health: Health = field(default_factory=Health)
    access: Access = OPEN
    usage: UsageSource | None = None
    nodes: NodeSource | None = None
    accounts: ServiceAccountTokens | None = None


class RestFront:
    """Serves a registry."""

    def __init__(
        self,
        registry: RegistryAPI,
        clock: Clock,
        options: FrontOptions,
        metrics: RequestMetrics,
        flow_control: FlowControl | None = None,
    ) -> None:
        self._clock = clock
        self._flow_control = flow_control or FlowControl(clock)
        self._options = options
        self._metrics = metrics
        self._resources = resources.Resources(
            registry, clock, options.access, options.usage, options.version, options.nodes
        )
        self._paths = meta_paths.MetaPaths(
            options.version, lambda: self.address, options.health, options.accounts
        )
        self.address = options.address

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"this port serves HTTP only, not {scope['type']}")
        request = Request(scope, receive)
        begun = self._clock.monotonic()
        target = parse(request.path)
        started = False

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            code = await self._answer(request, target, sending)
        except ClientGone:
            return
        except Exception as error:  # a bug of ours is the client's 500, and the server goes on
            _log.exception("a request failed", method=request.method, path=request.path)
            if started:
                # Half an answer is no answer: the connection ends without the last chunk.
                raise
            failure = errors.internal(f"{type(error).__name__}: {error}")
            code = failure.code
            await self._failed(request, failure).send(send)
        finally:
            if request.ticket is not None:
                request.ticket.leave()
        self._metrics.answered(_labels(request, target), code, self._clock.monotonic() - begun)

    async def _answer(self, request: Request, target: Target | None, send: Send) -> int:
        watch = target is not None and resources.is_watch(request, target)
        try:
            if not request.is_well_encoded:
                return await _bad_request(send)
            seconds = None if watch else deadline.seconds_of(request)
            user = door.admit(self._options.access, request)
            CURRENT.set(user)
            request.warnings.extend(deprecated.warnings(target, self._options.version))
            try:
                async with asyncio.timeout(seconds):
                    found = await self._found(request, target, user, watch=watch)
            except TimeoutError:
                raise deadline.missed(request) from None
            if target is not None and isinstance(found, Ticket):
                return await self._watch(request, target, found, send)
            answer = found if isinstance(found, Answer) else _not_found(request.path)
        except TooManyRequests as error:
            answer = flow.refused(error)
        except StatusError as error:
            answer = self._failed(request, error)
        except StorageError as error:
            answer = self._failed(request, to_status(error))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            answer = self._failed(request, errors.service_unavailable(_STOPPING))
        answer.warnings = request.warnings
        answer.headers.update(flow.headers(request.ticket))
        await answer.send(send, gzip=compression.accepted(request.header("accept-encoding")))
        return answer.code

    async def _found(
        self, request: Request, target: Target | None, user: User, *, watch: bool
    ) -> Answer | Ticket | None:
        """Once the request has its turn and may be: the answer, the ticket of a watch, or None."""
        asked = door.attributes(request, target, watch=watch)
        CURRENT_ATTRIBUTES.set(asked)
        ticket = request.ticket = flow.arrive(self._flow_control, user, request, asked, watch=watch)
        if not ticket.admitted:
            await ticket.wait()
        self._options.access.authorize(user, asked)
        if target is None:
            return await self._paths.answer(request)
        if target.kind is None and not meta_paths.is_routed(request.path):
            return None
        return ticket if watch else await self._resources.answer(request, target, user)

    def _failed(self, request: Request, error: StatusError) -> Answer:
        """The Status of a failure, in the form that was asked for."""
        request.warnings.extend(error.warnings)
        media = negotiate(request.header("accept"))
        form = Media(media.form if media is not None else JSON)
        body = answers.of_message(
            form, "v1", "Status", error.to_message(), pretty=request.pretty or error.code == 406
        )
        headers = {}
        if error.retry_after_seconds:
            headers["retry-after"] = str(error.retry_after_seconds)
        if request.unread:
            # Nobody will read the rest of the body.
            headers["connection"] = "close"
        return Answer(body, error.code, form.form, headers=headers)

    async def _watch(self, request: Request, target: Target, ticket: Ticket, send: Send) -> int:
        """Streams until the watch or the client ends."""
        watch = await self._resources.watch(request, target)
        # Once it stands, a watch holds no seat.
        ticket.leave()
        frames = watching.Frames(watch.media, request.asked("includeObject"), self._clock)
        form = watching.content_type(watch.media)
        start = Answer(
            content_type=form, pieces=_nothing(), headers=flow.headers(ticket), warnings=request.warnings
        )
        labels = _labels(request, target)._replace(verb="WATCH")

        async def write(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        if isinstance(watch.watcher, StatusError):
            await send(start.start())
            await write(frames.of_error(watch.watcher))
            await send({"type": "http.response.body", "body": b""})
            return 200
        self._metrics.watching(labels, 1)
        try:
            async with watch.watcher, anyio.create_task_group() as group:

                async def leave() -> None:
                    await request.gone()
                    group.cancel_scope.cancel()

                group.start_soon(leave)
                await send(start.start())
                # The headers go at once: the client knows that its watch stands.
                await write(b"")
                await watching.send(watch.watcher, frames, write, self._clock, target.resource)
                await send({"type": "http.response.body", "body": b""})
                group.cancel_scope.cancel()
        finally:
            self._metrics.watching(labels, -1)
        return 200


async def _nothing() -> Any:
    return
    yield b""


def _not_found(path: str) -> Answer:
    """404 of an unknown path: a Status below what is served, plain text elsewhere. Raises StatusError."""
    if meta_paths.is_routed(path):
        raise problems.not_served()
    return Answer(NOT_FOUND.text.encode(), NOT_FOUND.code, TEXT, headers=dict(HEADERS))


async def _bad_request(send: Send) -> int:
    """400 as Go's HTTP server gives it, before any handler."""
    answer = Answer(b"400 Bad Request", 400, TEXT, headers={"connection": "close"})
    await answer.send(send)
    return answer.code


_VERBS = {"POST": "POST", "PUT": "PUT", "PATCH": "PATCH", "DELETE": "DELETE"}


def _labels(request: Request, target: Target | None) -> RequestLabels:
    verb = _VERBS.get(request.method, "GET")
    if target is None or target.kind is None:
        return RequestLabels(verb, "", "", "", "")
    if verb == "GET" and target.collection:
        verb = "LIST"
    kind = target.kind
    subresource = target.subresource if target.subresource in kind.subresources else ""
    return RequestLabels(verb, kind.group, kind.version, kind.plural, subresource)


__all__ = ["ADMIN", "FrontOptions", "RestFront", "User", "problems"]
