"""The dashboard's HTTP interface: the page's files, the document and its changes, details, and actions."""

from __future__ import annotations

import gzip
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import click
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from nominee import lab
from nominee.completion.candidates import FAULT_ACTIONS
from nominee.dashboard import actions, details
from nominee.dashboard.actions import ActionError
from nominee.dashboard.board import Board
from nominee.dashboard.details import NotFoundError, Setting
from nominee.dashboard.events import CLIENTS_MAX, Follower, stream
from nominee.lab.history.object_history import Target
from nominee.lab.history.revision import Revision
from nominee.localcluster.declared_failpoints import all_sentences
from nominee.localcluster.supervisor.directory import JsonObject
from nominee.machinery.api.kinds import POD
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire.values.scalars import Json

BUNDLE: Final = Path(lab.__path__[0], "timeline", "bundle")
ACTION_HEADER: Final = "x-nominee-token"
BODY_MAX: Final = 1 << 20
REFRESH_SECONDS_MAX: Final = 1.0
"""A process that is paused does not answer; the document comes without its present state."""
_AT_ONCE: Final = 2
"""Details that are made at the same time; others wait."""
_ACTIONS_AT_ONCE: Final = 4
_INDEX: Final = "index.html"

Refresh = Callable[[], Awaitable[None]]


class RequestError(Exception):
    """A request that is refused: status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Dashboard:
    """Answers requests from a board. `refresh` asks the processes of a running cluster."""

    board: Board
    action_token: str
    refresh: Refresh | None = None
    _threads: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_AT_ONCE))
    _running: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_ACTIONS_AT_ONCE))

    def application(self) -> Starlette:
        """Return the ASGI application, without its guard."""
        routes = [
            Route("/", self._index),
            Route("/api/timeline", self._timeline),
            Route("/api/events", self._events),
            Route("/api/object", self._object),
            Route("/api/history", self._history),
            Route("/api/why", self._why),
            Route("/api/actions", self._actions),
            Route("/api/actions/{name}", self._act, methods=["POST"]),
            Mount("/static", StaticFiles(directory=BUNDLE, check_dir=False)),
        ]
        return Starlette(
            routes=routes,
            exception_handlers={Exception: _failed, RequestError: _refused, NotFoundError: _not_found},
        )

    async def _index(self, _: Request) -> Response:
        try:
            text = (BUNDLE / _INDEX).read_text(encoding="utf-8")
        except OSError as error:
            raise RequestError(500, f"the page is not installed: {error}") from None
        return Response(text, media_type="text/html")

    async def _timeline(self, request: Request) -> Response:
        if self.refresh is not None:
            with anyio.move_on_after(REFRESH_SECONDS_MAX):
                await self.refresh()
        text = self.board.document()
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(text, media_type="application/json")
        body = await anyio.to_thread.run_sync(lambda: gzip.compress(text.encode(), 1))
        return Response(body, media_type="application/json", headers={"content-encoding": "gzip"})

    async def _events(self, request: Request) -> Response:
        if self.board.clients >= CLIENTS_MAX:
            raise RequestError(503, f"{CLIENTS_MAX} pages follow already; close one")
        # A browser that connects again says how far it has come.
        after = request.headers.get("last-event-id") or request.query_params.get("after", "0")
        follower = Follower.after(self.board, _number(after))
        return StreamingResponse(stream(follower), media_type="text/event-stream")

    async def _object(self, request: Request) -> Response:
        target, number = _target(request), self._revision(request)
        revisions, logs = self._revisions(), self.board.directory
        return JSONResponse(await self._made(lambda: details.detail(revisions, target, number, logs)))

    async def _history(self, request: Request) -> Response:
        target, revisions, logs = _target(request), self._revisions(), self.board.directory
        lines = await self._made(lambda: details.history(revisions, target, logs))
        return JSONResponse({"lines": lines})

    async def _why(self, request: Request) -> Response:
        target, number, board = _target(request), self._revision(request), self.board
        revisions, setting, clock = self._revisions(), self._setting(), SystemClock()
        is_now = board.is_live and number >= board.timeline.end

        def make() -> Json:
            times = (each.time for each in revisions if each.revision <= number)
            until = clock.now() if is_now else max(times, default=0.0)
            found = details.decisions(target, until, board.directory)
            if target.kind is not POD:
                return {"decisions": found, "explain": []}
            explained = (
                details.explain_now(target, board.directory)
                if is_now
                else details.explain(revisions, target, number, setting)
            )
            return {"decisions": found, "explain": explained}

        return JSONResponse(await self._made(make))

    async def _actions(self, _: Request) -> Response:
        return JSONResponse(
            {"actions": [each.as_json() for each in self._table()], "token": self.action_token}
        )

    async def _act(self, request: Request) -> Response:
        shown = request.headers.get(ACTION_HEADER, "")
        if not hmac.compare_digest(shown.encode(), self.action_token.encode()):
            raise RequestError(403, f"the header {ACTION_HEADER} has not the token of the page")
        action = next((each for each in self._table() if each.name == request.path_params["name"]), None)
        if action is None:
            raise RequestError(404, "there is no such action")
        body = await _body(request)
        fields = body.get("fields", {})
        if not isinstance(fields, Mapping) or not all(isinstance(each, str) for each in fields.values()):
            raise RequestError(400, "`fields` are texts by name")
        try:
            command = action.command(self._action_target(str(body.get("target", ""))), fields)
        except ActionError as error:
            if body.get("dry"):  # no failure yet: the person fills in the fields
                return JSONResponse({"command": "", "output": str(error)})
            raise RequestError(400, str(error)) from None
        answer = {"command": command.text(self.board.directory)}
        if body.get("dry"):
            return JSONResponse(answer)
        async with self._running:
            ok, output = await actions.run(command, self.board.directory)
        return JSONResponse({**answer, "ok": ok, "output": output})

    def _table(self) -> list[actions.Action]:
        if self.board.read_only or not self.board.is_live:
            raise RequestError(403, "this dashboard only shows: it has no actions")
        return actions.actions(sorted(all_sentences()), FAULT_ACTIONS)

    def _action_target(self, text: str) -> actions.Target:
        """Return the target `Pod/default/a`, `Node/n1`, a process, or ""."""
        if "/" not in text:
            return actions.Target(name=_word(text))
        target = details.target_of(text)
        pods = (
            each.after(POD)
            for each in reversed(self._revisions())
            if target.matches(each.kind, each.namespace, each.name)
        )
        pod = next(pods, None) if target.kind is POD else None
        return actions.Target(target.kind.kind, _word(target.namespace), _word(target.name), pod)

    def _revisions(self) -> list[Revision]:
        """Return the revisions now, for a thread: the event loop goes on to change the time line."""
        return [item.revision for item in self.board.timeline.items()]

    def _revision(self, request: Request) -> int:
        """Return the revision of a request; without one the newest."""
        return _number(request.query_params.get("revision", "")) or self.board.timeline.end

    def _setting(self) -> Setting:
        """Return the scheduler's version and gates, as far as they are known."""
        components = json.loads(self.board.parts["components"]) or ()
        found = next((each for each in components if each["component"] == "scheduler"), None)
        if found is None:
            return Setting()
        gates = ",".join(f"{gate}={str(on).lower()}" for gate, on in found["gates"].items())
        return Setting(found["version"], gates)

    async def _made(self, make: Callable[[], Json]) -> Json:
        return await anyio.to_thread.run_sync(make, limiter=self._threads)


def _target(request: Request) -> Target:
    return details.target_of(request.query_params.get("object", ""))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _word(text: str) -> str:
    """Return a name that cannot be read as an option. Raises: RequestError."""
    if text.startswith("-") or any(character.isspace() for character in text):
        raise RequestError(400, f"{text!r} is no name")
    return text


async def _body(request: Request) -> JsonObject:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_MAX:
            raise RequestError(413, f"the request is larger than {BODY_MAX} bytes")
    try:
        body = json.loads(data)
    except ValueError as error:
        raise RequestError(400, f"the request is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise RequestError(400, "the request is no JSON object")
    return body


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return JSONResponse({"message": str(error)}, status_code=error.status)


async def _not_found(_: Request, error: Exception) -> Response:
    return JSONResponse({"message": str(error)}, status_code=404)


async def _failed(_: Request, error: Exception) -> Response:
    message = error.message if isinstance(error, click.ClickException) else f"{type(error).__name__}: {error}"
    return JSONResponse({"message": message}, status_code=500)
