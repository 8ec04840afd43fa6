"""The HTTP port, asked over a real socket."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from nominee.machinery.process.serving_port.debug_state import DebugState
from nominee.machinery.process.serving_port.serving import Serving
from nominee.machinery.runtime import failpoints
from nominee.machinery.wire.values.scalars import Json
from nominee.simulation import asgi
from tests.support.patience import PATIENCE_SECONDS

TOKEN = "secret"
POINT = failpoints.declare("test-serving.step", "a step of a test")


@asynccontextmanager
async def running(serving: Serving) -> AsyncIterator[Serving]:
    serving.token = TOKEN
    async with anyio.create_task_group() as group:
        await group.start(serving.run)
        try:
            yield serving
        finally:
            group.cancel_scope.cancel()


async def ask(
    serving: Serving,
    path: str,
    method: str = "GET",
    body: str = "",
    *,
    token: str = TOKEN,
    headers: str = "Host: localhost",
) -> tuple[int, str]:
    host, _, port = serving.address.rpartition(":")
    with anyio.fail_after(PATIENCE_SECONDS):
        async with await anyio.connect_tcp(host, int(port)) as stream:
            head = f"{method} {path} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n"
            if token:
                head += f"Authorization: Bearer {token}\r\n"
            await stream.send(f"{head}Content-Length: {len(body.encode())}\r\n\r\n{body}".encode())
            answer = b"".join([chunk async for chunk in stream])
    head_bytes, _, text = answer.partition(b"\r\n\r\n")
    return int(head_bytes.split()[1]), text.decode()


async def test_health_by_name() -> None:
    healthy = False

    async def etcd() -> None:
        if not healthy:
            raise RuntimeError("etcd does not answer")

    serving = Serving()
    serving.health.add("etcd", etcd, ["readyz"])
    async with running(serving):
        assert await ask(serving, "/healthz") == (200, "ok")
        assert await ask(serving, "/livez") == (200, "ok")
        want = "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"
        assert await ask(serving, "/readyz") == (500, want)
        assert await ask(serving, "/readyz?exclude=etcd") == (200, "ok")
        assert await ask(serving, "/readyz/etcd") == (500, "internal server error: etcd does not answer\n")
        healthy = True
        assert await ask(serving, "/readyz") == (200, "ok")
        assert await ask(serving, "/readyz?verbose") == (200, "[+]ping ok\n[+]etcd ok\nreadyz check passed\n")
        assert (await ask(serving, "/readyz/none"))[0] == 404
        code, text = await ask(serving, "/metrics/slis")
        assert code == 200
        assert 'kubernetes_healthchecks_total{name="etcd",status="error",type="readyz"} 1.0' in text


async def test_metrics_and_routes_added_while_it_runs() -> None:
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response

    async def queue(request: Request) -> Response:
        return PlainTextResponse("empty")

    serving = Serving()
    async with running(serving):
        status, text = await ask(serving, "/metrics")
        assert status == 200
        assert "python_info" in text
        assert (await ask(serving, "/debug/queue"))[0] == 404
        serving.add_route("/debug/queue", queue)
        assert await ask(serving, "/debug/queue") == (200, "empty")


async def test_a_path_that_is_added_after_the_first_request_without_a_port() -> None:
    """A scenario may ask a simulated process before it has added its paths."""
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response

    async def queue(request: Request) -> Response:
        return PlainTextResponse("empty")

    serving = Serving()
    application = serving.application()
    assert (await asgi.get(application, "/debug/queue")).status == 404
    serving.add_route("/debug/queue", queue)
    assert (await asgi.get(application, "/debug/queue")).body == b"empty"
    assert serving.application() is application


class Copied:
    """A copy of no object."""

    def state(self) -> dict[str, Json]:
        """Return its kind alone."""
        return {"kind": "Pod", "objects": {}}


async def test_the_state_has_copies_and_the_parts_that_were_added() -> None:
    serving = Serving()
    state, numbers = DebugState(serving, [Copied()]), [1]
    state.add("numbers", lambda: list(numbers))
    numbers.append(2)
    async with running(serving):
        status, text = await ask(serving, "/debug/state")
    assert status == 200
    assert json.loads(text) == {"copies": [{"kind": "Pod", "objects": {}}], "numbers": [1, 2]}


async def test_failpoints_are_armed_and_disarmed() -> None:
    serving = Serving()
    async with running(serving):
        assert (await ask(serving, "/failpoints/test-serving.step", "PUT", 'error("x")'))[0] == 200
        with pytest.raises(failpoints.FailpointError):
            await POINT.hit(pod="ns/p")
        listed = {point["name"]: point for point in json.loads((await ask(serving, "/failpoints"))[1])}
        state = listed["test-serving.step"]
        assert (state["action"], state["fired"], state["last"]) == ('error("x")', 1, {"pod": "ns/p"})
        for nonsense in ("explode", "sleep(\u00b2)", "error(\u2074\u2070\u2074)", "101%crash"):
            assert (await ask(serving, "/failpoints/test-serving.step", "PUT", nonsense))[0] == 400
        assert (await ask(serving, "/failpoints/test-serving.stop", "PUT", "crash"))[0] == 404
        assert (await ask(serving, "/failpoints/test-serving.step", "DELETE"))[0] == 200
        await POINT.hit()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/clock", '{"offsetSeconds": 1e999}'),
        ("/clock", f'{{"offsetSeconds": {10**400}}}'),
        ("/clock", '{"offsetSeconds": NaN}'),
        ("/clock", '{"offsetSeconds": true}'),
        ("/clock", "{}"),
        ("/clock", "[" * 4000),
        ("/faults", "[" * 4000),
        ("/faults", '{"action": "cut", "to": "nosuch"}'),
        ("/faults", '{"action": "cut", "kind": "pods", "nosuch": 1}'),
        ("/faults", '{"action": "delay(\u00b2)"}'),
        ("/faults", '{"action": 1}'),
        ("/faults", '{"action": "cut"}' + " " * 4096),
    ],
)
async def test_bad_input_is_refused_and_changes_nothing(path: str, body: str) -> None:
    serving = Serving()

    async def state() -> dict[str, object]:
        found: dict[str, object] = json.loads((await ask(serving, path))[1])
        found.pop("now", None)
        return found

    async with running(serving):
        before = await state()
        assert (await ask(serving, path, "PUT", body))[0] == 400
        assert await state() == before


@pytest.mark.parametrize("token", ["", "wrong", "secre", "secrets"])
async def test_everything_but_health_wants_the_token(token: str) -> None:
    serving = Serving()
    async with running(serving):
        for path in ("/healthz", "/livez/ping", "/readyz?verbose"):
            assert (await ask(serving, path, token=token))[0] == 200
        for path in ("/metrics", "/metrics/slis", "/failpoints", "/debug/queue", "/", "/nosuch", "//healthz"):
            code, text = await ask(serving, path, token=token)
            assert (code, "pki/serving.token" in text) == (401, True)
        code, _ = await ask(serving, "/failpoints/test-serving.step", "PUT", "crash", token=token)
        assert code == 401
        await POINT.hit()


async def test_without_a_token_of_its_own_it_serves_health_only() -> None:
    bare = Serving()
    async with anyio.create_task_group() as group:
        await group.start(bare.run)
        assert (await ask(bare, "/healthz", token=""))[0] == 200
        assert (await ask(bare, "/metrics", headers="Host: localhost\r\nAuthorization: Bearer", token=""))[
            0
        ] == 401
        group.cancel_scope.cancel()


@pytest.mark.parametrize(
    "headers",
    [
        "Host: evil.example",
        "Host: evil.example:80",
        "Host: 127.0.0.1.evil.example",
        "Host: localhost\r\nOrigin: http://evil.example",
        "Host: localhost\r\nOrigin: null",
        "Host: localhost:1\r\nOrigin: http://localhost:2",
        "Host: [::1",
        "Host: localhost\r\nOrigin: http://[::1",
    ],
)
async def test_foreign_pages_are_refused(headers: str) -> None:
    """Also with the token, and for health."""
    serving = Serving()
    async with running(serving):
        for path in ("/healthz", "/metrics", "/failpoints"):
            assert (await ask(serving, path, headers=headers))[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        "Host: 127.0.0.1:80",
        "Host: [::1]:80",
        "Host: LOCALHOST",
        "Host: localhost:1\r\nOrigin: http://localhost:1",
    ],
)
async def test_this_machine_is_answered(headers: str) -> None:
    serving = Serving()
    async with running(serving):
        assert (await ask(serving, "/metrics", headers=headers))[0] == 200


async def test_it_ends_in_time_although_a_request_hangs() -> None:
    from starlette.requests import Request
    from starlette.responses import Response

    reached = anyio.Event()

    async def hang(request: Request) -> Response:
        reached.set()
        await anyio.sleep_forever()
        raise AssertionError

    serving = Serving()
    serving.add_route("/hang", hang)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with running(serving):
            host, _, port = serving.address.rpartition(":")
            stream = await anyio.connect_tcp(host, int(port))
            await stream.send(
                b"GET /hang HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n"
            )
            await reached.wait()
        await stream.aclose()


async def test_stop_ends_it_too() -> None:
    serving = Serving()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            await group.start(serving.run)
            serving.stop()


def test_it_imports_no_http_until_it_runs() -> None:
    script = (
        "import sys, nominee.machinery.process.serving_port.serving;"
        "assert not {'starlette', 'uvicorn', 'prometheus_client', 'grpc'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE_SECONDS)
