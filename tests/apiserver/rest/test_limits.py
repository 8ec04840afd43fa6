"""What clients may not do to the server: slow and broken requests over a real socket, and slow watchers."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from nominee.apiserver.cache.watch_cache import CacheLimits
from nominee.apiserver.fronts.rest import server as rest_server
from nominee.apiserver.fronts.rest.answers import watching
from nominee.apiserver.fronts.rest.http import messages as rest_http
from nominee.apiserver.fronts.rest.http.media import Media
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.watcher import EventType, Watcher, WatchEvent
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.process.http import accepting, http_server
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire import envelope
from tests.apiserver.cache.test_watch_cache import LIMIT_SECONDS, running
from tests.apiserver.rest.asgi import Rest, in_memory
from tests.apiserver.rest.test_api_list import started
from tests.support.etcd import ThrowawayEtcd
from tests.support.eventually import eventually

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
BODY_MAX = 3 << 20


@asynccontextmanager
async def port_of(rest: Rest) -> AsyncIterator[tuple[str, int]]:
    """The front on a port of its own."""
    server = rest_server.RestServer(rest.front, rest_server.listen("127.0.0.1:0"))
    async with anyio.create_task_group() as group:
        await group.start(server.run)
        host, _, port = server.address.rpartition(":")
        yield host, int(port)
        group.cancel_scope.cancel()


async def said(address: tuple[str, int], *parts: bytes, end: bool = False) -> bytes:
    """Return all that a server answers until it closes; with `end` the client half-closes after sending."""
    with anyio.fail_after(LIMIT_SECONDS):
        async with await anyio.connect_tcp(*address) as stream:
            for part in parts:
                await stream.send(part)
            if end:
                await stream.send_eof()
            answer = b""
            try:
                while True:
                    answer += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return answer


def post(headers: str, body: bytes = b"") -> bytes:
    lines = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}\r\n"
    return lines.encode() + body


def status_of(answer: bytes) -> tuple[int, str]:
    """(code, reason of the Status) of a whole answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["reason"]


async def test_a_header_that_never_ends_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEADER_SECONDS_MAX", 0.1)
    monkeypatch.setattr(accepting, "PENDING_SECONDS_MAX", 0.1)
    async with port_of(await in_memory()) as address:
        assert await said(address) == b""
        assert await said(address, b"GET / HTTP/1.1\r\nHost: x\r\n") == b""
        # A finished request is not hurried.
        monkeypatch.setattr(http_server, "HEADER_SECONDS_MAX", LIMIT_SECONDS)
        monkeypatch.setattr(accepting, "PENDING_SECONDS_MAX", LIMIT_SECONDS)
        whole = await said(address, b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert whole.startswith(b"HTTP/1.1 200")


async def test_a_body_that_does_not_come_is_504(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_http, "BODY_SECONDS_MAX", 0.1)
    async with port_of(await in_memory()) as address:
        answer = await said(address, post("Content-Length: 100\r\n", b'{"a"'))
        assert status_of(answer) == (504, "Timeout")


@pytest.mark.parametrize("chunked", [False, True])
async def test_too_large_a_body_is_413_before_it_has_come(chunked: bool) -> None:
    async with port_of(await in_memory()) as address:
        if chunked:
            piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
            answer = await said(address, post("Transfer-Encoding: chunked\r\n"), *[piece] * 49)
        else:
            answer = await said(address, post(f"Content-Length: {BODY_MAX + 1}\r\n"))
        assert status_of(answer) == (413, "RequestEntityTooLarge")
        assert b"limit is 3145728" in answer


@pytest.mark.parametrize(
    "length",
    ["-1", "abc", "1, 2", "9" * 400, "0x10", "1\r\nContent-Length: 2", "\r\nTransfer-Encoding: gzip"],
)
async def test_invalid_lengths(length: str) -> None:
    async with port_of(await in_memory()) as address:
        answer = await said(address, post(f"Content-Length: {length}\r\n", b"{}"), end=True)
        assert answer.split()[1] in (b"400", b"413", b"501"), answer


GET = b"GET /version HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "problem"),
    [
        (b"GET /version HTTP/1.1\nHost: x\r\n\r\n", "without a carriage return"),
        (GET + b"Accept: */*\nX-A: b\r\n\r\n", "without a carriage return"),
        (GET + b"Accept: */*\n\r\n", "without a carriage return"),
        (GET + b"Accept: */*\n\n", "without a carriage return"),
        (GET + b"X-A: b\r\n c\r\n\r\n", "folded"),
        (GET + b"X-A: b\r\n\tc\r\n\r\n", "folded"),
        (GET + b"Authorization: Bearer a\r\nauthorization: Bearer a\r\n\r\n", "2 Authorization headers"),
    ],
)
async def test_requests_that_parsers_read_differently_are_400(request_bytes: bytes, problem: str) -> None:
    async with port_of(await in_memory()) as address:
        for before in (b"", GET + b"\r\n"):
            answer = await said(address, before + request_bytes)
            refusal = answer[answer.rindex(b"HTTP/1.1") :]
            assert refusal.startswith(b"HTTP/1.1 400"), answer
            assert problem in refusal.decode()


@pytest.mark.parametrize(
    ("method", "subresource", "protocol"),
    [("GET", "exec", "websocket"), ("POST", "exec", "SPDY/3.1"), ("GET", "portforward", "websocket")],
)
async def test_an_upgrade_is_refused_and_not_logged(
    method: str, subresource: str, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"/api/v1/namespaces/default/pods/p/{subresource}"
    lines = (
        f"{method} {path} HTTP/1.1", "Host: x", "Connection: Upgrade", f"Upgrade: {protocol}",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Content-Length: 0",
    )  # fmt: skip
    rest = await in_memory()
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert (await rest.json("POST", "/api/v1/namespaces/default/pods", pod)).code == 201
    async with port_of(rest) as address:
        answer = await said(address, "\r\n".join((*lines, "", "")).encode(), end=True)
    assert status_of(answer) == (501, "NotImplemented")
    assert f"pods/{subresource} is not emulated".encode() in answer
    assert [each for each in caplog.records if each.name.startswith("uvicorn")] == []


async def test_a_body_may_have_bare_line_feeds() -> None:
    async with port_of(await in_memory()) as address:
        body = b'{"metadata":\n {"name":\r\n "lines"}}\n\n'
        answer = await said(address, post(f"Connection: close\r\nContent-Length: {len(body)}\r\n", body))
        assert answer.startswith(b"HTTP/1.1 201"), answer


async def test_a_body_that_ends_early_is_no_request() -> None:
    rest = await in_memory()
    async with port_of(rest) as address:
        whole = b'{"metadata":{"name":"a"}}'
        assert await said(address, post("Content-Length: 100\r\n", whole), end=True) in (b"", b"")
        longer = await said(address, post("Connection: close\r\nContent-Length: 10\r\n", whole))
        assert status_of(longer) == (400, "BadRequest")
    assert (await rest.json("GET", f"{CONFIG_MAPS}/a")).code == 404


async def test_long_answers_are_compressed_for_who_asks(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        rest = await started(bench)
        for name, size in (("short", 1000), ("long", 200_000)):
            body = {"metadata": {"name": name}, "data": {"a": "x" * size}}
            assert (await rest.json("POST", CONFIG_MAPS, body)).code == 201
        asks = {"accept-encoding": "deflate, gzip;q=0.5"}
        for path in (f"{CONFIG_MAPS}/long", CONFIG_MAPS):
            for accept in ("application/json", "application/vnd.kubernetes.protobuf"):
                plain = await rest.request("GET", path, headers={"accept": accept})
                packed = await rest.request("GET", path, headers={"accept": accept, **asks})
                assert plain.header("content-encoding") == ""
                assert (packed.header("content-encoding"), packed.header("vary")) == (
                    "gzip",
                    "Accept-Encoding",
                )
                assert gzip.decompress(packed.body) == plain.body
                assert len(packed.body) < len(plain.body) / 10
        short = await rest.request("GET", f"{CONFIG_MAPS}/short", headers=asks)
        assert (short.header("content-encoding"), short.document["kind"]) == ("", "ConfigMap")
        none = await rest.request("GET", CONFIG_MAPS, {"labelSelector": "a=b"}, headers=asks)
        assert (none.header("content-encoding"), none.document["items"]) == ("", [])


async def test_a_watcher_that_does_not_read_is_dropped_with_a_status(etcd: ThrowawayEtcd) -> None:
    """It costs its bounded queue and the socket's buffers, then it receives a Status that it was too slow."""
    queue = 20
    async with running(etcd, CacheLimits(queue_per_watcher=queue)) as bench:
        rest = await started(bench)
        made = await rest.json("POST", CONFIG_MAPS, {"metadata": {"name": "c"}})
        since = made.document["metadata"]["resourceVersion"]
        async with port_of(rest) as address:
            with socket.create_connection(address, timeout=LIMIT_SECONDS) as slow:
                query = f"{CONFIG_MAPS}?watch=1&resourceVersion={since}"
                slow.sendall(f"GET {query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                await eventually(lambda: bench.cache.watchers)
                written = 0
                # Each event is large: the buffers between the two ends are full after some.
                with anyio.fail_after(LIMIT_SECONDS):
                    while bench.cache.watchers:
                        written += 1
                        body = {"metadata": {"name": "c"}, "data": {"a": str(written) + "x" * 200_000}}
                        assert (await rest.json("PUT", f"{CONFIG_MAPS}/c", body)).code == 200
                answer = await anyio.to_thread.run_sync(lambda: slow.makefile("rb").read())
        lines = [line for line in answer.split(b"\r\n") if line.startswith(b'{"type":')]
        last = json.loads(lines[-1])
        assert (last["type"], last["object"]["code"], last["object"]["reason"]) == (
            "ERROR",
            429,
            "TooManyRequests",
        )
        assert len(lines) <= written
        assert written < 300


async def test_a_client_that_takes_nothing_for_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "SEND_SECONDS_MAX", 0.2)
    watcher = Watcher(capacity=10, batch_size=10)
    stored = envelope.encode(core.ConfigMap())
    watcher.offer(
        WatchEvent(EventType.ADDED, CachedObject(kinds.CONFIG_MAP, "default", "c", 5, stored=stored))
    )
    sent = []

    async def write(data: bytes) -> None:
        sent.append(data)
        await anyio.sleep_forever()

    frames = watching.Frames(Media(), "", SystemClock())
    with anyio.fail_after(LIMIT_SECONDS), pytest.raises(TimeoutError):
        async with watcher:
            await watching.send(watcher, frames, write, SystemClock(), "configmaps")
    assert len(sent) == 1
    assert watcher.closed
