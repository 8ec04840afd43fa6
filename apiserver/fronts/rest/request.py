"""A REST request: decoded from HTTP, and its response encoded."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeVar

import anyio
from google.protobuf.message import Message

from nominee.apiserver.access.authentication import Credentials
from nominee.apiserver.access.impersonation import Headers
from nominee.apiserver.chain import problems
from nominee.apiserver.chain.request import ApiRequest, OwnHandler
from nominee.apiserver.chain.results import Result
from nominee.apiserver.flow_control.controller import FlowControl, TooManyRequests
from nominee.apiserver.fronts.rest.answers import documents as answers
from nominee.apiserver.fronts.rest.answers import tables, watching
from nominee.apiserver.fronts.rest.answers.responses import Encoder
from nominee.apiserver.fronts.rest.discovery import deprecated
from nominee.apiserver.fronts.rest.http import (
    bodies,
    compression,
    deadline,
    flow,
    media,
    options,
    request_info,
)
from nominee.apiserver.fronts.rest.http.media import (
    JSON,
    OBJECTS,
    PARTIAL,
    PARTIAL_LIST,
    STREAMS,
    TABLE,
    YAML,
    Media,
)
from nominee.apiserver.fronts.rest.http.messages import Answer, Send
from nominee.apiserver.fronts.rest.http.messages import Message as AsgiMessage
from nominee.apiserver.fronts.rest.http.messages import Request as HttpRequest
from nominee.apiserver.fronts.rest.http.target import Target
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.requests import (
    DeleteResult,
    ListOptions,
    ListPage,
    PatchKind,
    WatchOptions,
    WriteOptions,
    WriteResult,
)
from nominee.apiserver.objects.watcher import Watcher
from nominee.apiserver.schema import large_bodies
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import meta
from nominee.machinery.features.gates import Version
from nominee.machinery.runtime.clock import Clock

M = TypeVar("M", bound=Message)
_PATCHES = {
    "application/json-patch+json": PatchKind.JSON,
    "application/merge-patch+json": PatchKind.MERGE,
    "application/strategic-merge-patch+json": PatchKind.STRATEGIC,
    "application/apply-patch+yaml": PatchKind.APPLY,
}
_FORMS: dict[str, tuple[frozenset[str], str]] = {
    "list": (frozenset({TABLE, PARTIAL_LIST}), STREAMS),
    "watch": (frozenset({TABLE, PARTIAL, PARTIAL_LIST}), STREAMS),
    "deletecollection": (frozenset({TABLE, PARTIAL_LIST}), OBJECTS),
    "delete": (frozenset(), OBJECTS),
}
"""By verb: what objects may be shown as, and the forms that an error names."""
_OF_OBJECTS = frozenset({TABLE, PARTIAL}), OBJECTS
_DONE = frozenset({"binding", "eviction"})
"""Subresources whose response is a Status."""
_ITSELF = frozenset({*_DONE, "token"})
"""Subresources whose response has one form only."""

ChooseHandler = Callable[["RestRequest", Target | None], OwnHandler | None]


class RestRequest(ApiRequest):
    """One HTTP request. `own_handler` selects a handler that only REST has; None for the chain's."""

    _media = media.DEFAULT
    _delete_options: meta.DeleteOptions | None = None
    _started = False

    def __init__(
        self,
        http: HttpRequest,
        target: Target | None,
        send: Send,
        own_handler: ChooseHandler,
        *,
        version: Version,
        clock: Clock,
    ) -> None:
        super().__init__(request_info.verb_of(http, target))
        self.http = http
        self._target = target
        self._own_handler, self._version, self._clock = own_handler, version, clock
        self._warnings: list[str] = []
        self._send = send
        if target is not None:
            self.kind = target.kind
            self.namespace, self.name = target.namespace, target.name
            self.subresource = target.subresource

    # For the filters.

    def seconds_max(self) -> float | None:
        return None if self.verb == "watch" else deadline.seconds_of(self.http)

    def credentials(self) -> Credentials:
        return request_info.credentials(self.http)

    def impersonation(self) -> Headers:
        return request_info.impersonation(self.http)

    def user_agent(self) -> str:
        return self.http.header("user-agent")

    def resolve(self) -> Attributes:
        target = self._target
        self._warnings.extend(deprecated.warnings(target, self._version))
        self.handler = self._own_handler(self, target)
        return request_info.attributes(self.http, target, self.verb)

    def width(self, control: FlowControl) -> Callable[[int], int] | None:
        return flow.width(control, self.http, self.attributes)

    def queue_seconds_max(self) -> float:
        """Return infinity: the server's limit holds."""
        return math.inf

    def prepare(self) -> None:
        if self.verb == "patch":
            # As upstream, before the Accept header.
            self.patch_kind()
        if self.subresource in _ITSELF or self.kind is None:
            shown, available = frozenset[str](), OBJECTS
        else:
            shown, available = _FORMS.get(self.verb, _OF_OBJECTS)
        found = media.negotiate(self.http.header("accept"), shown=shown)
        if found is None:
            raise problems.not_acceptable(available)
        if found.shown_as == TABLE:
            tables.check(self.http.query_value("includeObject"))
        self._media = found

    # For the handlers.

    def resource_version(self) -> str:
        return self.http.query_value("resourceVersion")

    def list_options(self) -> ListOptions:
        return options.list_options(self.http)

    def watch_options(self) -> WatchOptions:
        return options.watch_options(self.http, self.name)

    def write_options(self, kind: str) -> WriteOptions:
        return options.write_options(self.http, kind, self.origin())

    async def delete_options(self) -> meta.DeleteOptions:
        data = await self.http.body()
        found = bodies.delete_options(data, self.http.header("content-type"), self.http.query_value)
        self._delete_options = found
        return found

    async def body(self, expected: Kind[M]) -> M:
        """Decode the body as field validation asks for; its warnings are the response's."""
        data = await self.http.body()
        validation, content = self.http.query_value("fieldValidation"), self.http.header("content-type")
        decode = partial(
            bodies.decode, data, content, bodies.expected_body(expected), validation, self._version
        )
        is_yaml = media.content_type(content) == YAML
        body = await large_bodies.decode_body(len(data), decode, yaml=is_yaml)
        self._warnings.extend(body.warnings)
        message: M = body.message
        return message

    def patch_kind(self) -> PatchKind:
        sent = self.http.header("content-type").partition(";")[0].strip().lower()
        found = _PATCHES.get(sent)
        if found is None:
            raise problems.unsupported_patch_type()
        return found

    async def patch(self) -> bytes:
        return await self.http.body()

    # The response.

    async def respond(self, result: Result) -> None:
        if isinstance(result, Answer):
            await self._answer(result)
            return
        if isinstance(result, WriteResult | DeleteResult | ListPage):
            self._warnings.extend(result.warnings)
        if self.subresource in _DONE:
            await self._answer(self.done())
            return
        given = self._delete_options
        foreground = given is not None and given.HasField("orphanDependents") and not given.orphanDependents
        await self._answer(self._encoder().encode(result, self.kind, foreground=foreground))

    def done(self) -> Answer:
        """Return the answer of a binding or eviction: it says only that it is done."""
        return self._encoder().success(201)

    def _encoder(self) -> Encoder:
        return Encoder(self.http, self._media, self._clock.now())

    async def _answer(self, answer: Answer) -> None:
        """Send an answer, with the request's warnings and the headers of flow control."""
        self.code = answer.code
        answer.warnings = self._warnings
        answer.headers.update(flow.headers(self.ticket))
        gzip = compression.accepted(self.http.header("accept-encoding"))
        await answer.send(self._sending, gzip=gzip)

    async def _sending(self, message: AsgiMessage) -> None:
        self._started = True
        await self._send(message)

    async def stream(self, watcher: Watcher) -> None:
        """Send the events until the watch ends or the client leaves."""
        frames = self._frames()
        async with anyio.create_task_group() as group:

            async def leave() -> None:
                await self.http.gone()
                group.cancel_scope.cancel()

            group.start_soon(leave)
            await self._start_stream()
            # The headers are sent at once: the client knows that its watch stands.
            await self._write(b"")
            resource = self.attributes.resource
            await watching.send(watcher, frames, self._write, self._clock, resource)
            await self._sending({"type": "http.response.body", "body": b""})
            group.cancel_scope.cancel()

    def _frames(self) -> watching.Frames:
        return watching.Frames(self._media, self.http.query_value("includeObject"), self._clock)

    async def _start_stream(self) -> None:
        self.code = 200
        start = Answer(
            content_type=watching.content_type(self._media),
            pieces=_nothing(),
            headers=flow.headers(self.ticket),
            warnings=self._warnings,
        )
        await self._sending(start.start())

    async def _write(self, data: bytes) -> None:
        await self._sending({"type": "http.response.body", "body": data, "more_body": True})

    async def fail(self, error: StatusError) -> None:
        """Send a Status in the form that the client accepts; in the stream if a watch's revision is wrong."""
        if self._started:
            # A part of a response is no response: the connection ends without the last chunk.
            raise error
        if isinstance(error, TooManyRequests):
            await self._answer(flow.too_many_requests(error))
        elif self.verb == "watch" and error.code in (410, 504):
            await self._start_stream()
            await self._write(self._frames().of_error(error))
            await self._sending({"type": "http.response.body", "body": b""})
        else:
            self._warnings.extend(error.warnings)
            await self._answer(self._status(error))

    def _status(self, error: StatusError) -> Answer:
        found = media.negotiate(self.http.header("accept"))
        form = Media(found.form if found is not None else JSON)
        pretty = self.http.pretty or error.code == 406
        body = answers.of_message(form, "v1", "Status", error.to_message(), pretty=pretty)
        headers = {}
        if error.retry_after_seconds:
            headers["retry-after"] = str(error.retry_after_seconds)
        if self.http.unread:
            # The rest of the body is not read.
            headers["connection"] = "close"
        return Answer(body, error.code, form.form, headers=headers)


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""
