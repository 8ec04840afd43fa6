"""The endpoints of a process's serving port by which it is made to fail.

`GET /failpoints`, `GET|PUT|DELETE /failpoints/NAME` (the body of PUT is the action); `GET|PUT|DELETE /faults`
for calls to other processes; `GET|PUT /clock`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from nominee.machinery.runtime import clock, failpoints, logs
from nominee.machinery.runtime.faults.action_chain import ActionError
from nominee.machinery.runtime.faults.call_faults import FAULTS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_BODY_BYTES_MAX = 4096
_RULE = {"to": "*", "method": "*", "kind": "*"}
_log = logs.get()


async def _failpoints(request: Request) -> Response:
    return _json([asdict(state) for state in failpoints.states()])


async def _failpoint(request: Request) -> Response:
    """PUT arms with the action in the body (404 for no such point, 400 for nonsense); DELETE disarms."""
    name = request.path_params["name"]
    state = failpoints.REGISTRY.get(name)
    try:
        if request.method != "GET":
            action = "off"
            if request.method == "PUT":
                action = await _body(request)
            failpoints.arm(name, action)
            _log.info("Failpoint set", name=name, action=action)
            state = failpoints.REGISTRY.get(name)
    except ActionError as error:
        return _refusal(str(error), 404 if state is None else 400)
    if state is None:
        return _refusal(f"no failpoint {name}", 404)
    return _json(asdict(state))


async def _faults(request: Request) -> Response:
    """PUT sets a rule, {"to", "method", "kind", "action"} (only `action` is required); DELETE removes all."""
    try:
        if request.method == "PUT":
            rule = await _fields(request, {*_RULE, "action"})
            action = _text(rule, "action")
            to, method, kind = (_text(rule, name) for name in _RULE)
            FAULTS.put(action, to, method, kind)
            _log.info("Fault set", to=to, method=method, kind=kind, action=action)
        elif request.method == "DELETE":
            FAULTS.clear()
            _log.info("Faults removed")
    except ActionError as error:
        return _refusal(str(error), 400)
    return _json(
        {
            "rules": [asdict(state) for state in FAULTS.states()],
            "servers": FAULTS.servers(),
            "calls": [asdict(count) for count in FAULTS.counts()],
        }
    )


async def _clock(request: Request) -> Response:
    """PUT shifts the wall clock of this process to {"offsetSeconds"} from the machine's."""
    if request.method == "PUT":
        try:
            offset = (await _fields(request, {"offsetSeconds"})).get("offsetSeconds")
        except ActionError as error:
            return _refusal(str(error), 400)
        if (
            isinstance(offset, bool)
            or not isinstance(offset, int | float)
            or not abs(offset) <= clock.OFFSET_SECONDS_MAX  # nor is NaN
        ):
            return _refusal(f"offsetSeconds: a number of seconds up to {clock.OFFSET_SECONDS_MAX}", 400)
        clock.set_offset(float(offset))
        _log.info("Clock shifted", offset_seconds=offset)
    return _json({"offsetSeconds": clock.offset(), "now": clock.rfc3339(clock.SystemClock().now())})


Handler = Callable[["Request"], Awaitable["Response"]]
ROUTES: tuple[tuple[str, Handler, tuple[str, ...]], ...] = (
    ("/failpoints", _failpoints, ("GET",)),
    ("/failpoints/{name}", _failpoint, ("GET", "PUT", "DELETE")),
    ("/faults", _faults, ("GET", "PUT", "DELETE")),
    ("/clock", _clock, ("GET", "PUT")),
)


async def _body(request: Request) -> str:
    body = await request.body()
    if len(body) > _BODY_BYTES_MAX:
        raise ActionError(f"the body is at most {_BODY_BYTES_MAX} bytes")
    return body.decode(errors="replace")


async def _fields(request: Request, allowed: set[str]) -> dict[str, object]:
    """Return the JSON object of a body.

    Raises:
        ActionError: it is not a JSON object of these fields.
    """
    try:
        document = json.loads(await _body(request))
    except ActionError:
        raise
    except (ValueError, RecursionError) as error:
        raise ActionError(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ActionError("the body is not a JSON object")
    if unknown := document.keys() - allowed:
        raise ActionError(
            f"unknown field {', '.join(sorted(unknown))}; known are {', '.join(sorted(allowed))}"
        )
    return document


def _text(rule: dict[str, object], name: str) -> str:
    value = rule.get(name, _RULE.get(name))
    if not isinstance(value, str) or not value:
        raise ActionError(f"{name}: a text is required")
    return value


def _refusal(text: str, code: int) -> Response:
    # Starlette takes 130 ms; a process starts without it.
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(f"{text}\n", code)


def _json(content: object) -> Response:
    from starlette.responses import Response

    return Response(json.dumps(content) + "\n", media_type="application/json")
