"""Connections that do not begin are dropped in time, and displace each other; other clients are served."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.abc
import pytest

from nominee.localcluster.credentials.pki import Pki
from nominee.machinery.process.http import accepting
from nominee.machinery.process.http.accepting import Acceptor
from tests.support.patience import PATIENCE_SECONDS

HELLO_BEGUN = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
"""The first bytes of TLS's ClientHello."""
Address = tuple[str, int]


class Shout(asyncio.Protocol):
    """Answers in capitals."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data.upper())


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    made = Pki(Path(tmp_path_factory.mktemp("pki")))
    made.ensure({}, {}, now=datetime.now(UTC))  # noqa: TID251  # a certificate for the real clock
    return made


@pytest.fixture(params=["plain", "tls"])
def secure(request: pytest.FixtureRequest) -> bool:
    return str(request.param) == "tls"


@asynccontextmanager
async def accepted(pki: Pki, *, secure: bool) -> AsyncIterator[Address]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*pki.serving)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        acceptor = Acceptor(listener, Shout, tls=tls if secure else None)
        async with anyio.create_task_group() as group:
            await group.start(acceptor.run)
            yield listener.getsockname()
            acceptor.close()
            await acceptor.wait_closed()


async def ask(pki: Pki, address: Address, *, secure: bool) -> bytes:
    with anyio.fail_after(PATIENCE_SECONDS):
        stream: anyio.abc.ByteStream
        if secure:
            trust = ssl.create_default_context(cafile=str(pki.ca))
            stream = await anyio.connect_tcp(*address, ssl_context=trust, tls_standard_compatible=False)
        else:
            stream = await anyio.connect_tcp(*address)
        async with stream:
            await stream.send(b"hello")
            return await stream.receive()


def silent(stack: ExitStack, address: Address, first: bytes = b"") -> socket.socket:
    """Open a connection that says nothing but `first`."""
    opened = stack.enter_context(socket.create_connection(address))
    opened.sendall(first)
    opened.setblocking(False)
    return opened


async def dropped(opened: socket.socket) -> None:
    """Wait until the server has closed a connection."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            await anyio.wait_readable(opened)
            try:
                if not opened.recv(1024):
                    return
            except ConnectionResetError:
                return


async def test_a_client_that_goes_on_is_served(pki: Pki, secure: bool) -> None:
    async with accepted(pki, secure=secure) as address:
        assert await ask(pki, address, secure=secure) == b"HELLO"


async def test_a_silent_one_is_dropped_in_time(
    pki: Pki, secure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "PENDING_SECONDS_MAX", 0.2)
    with ExitStack() as stack:
        async with accepted(pki, secure=secure) as address:
            await dropped(silent(stack, address))
            if secure:
                await dropped(silent(stack, address, HELLO_BEGUN))
            monkeypatch.setattr(accepting, "PENDING_SECONDS_MAX", PATIENCE_SECONDS)
            assert await ask(pki, address, secure=secure) == b"HELLO"


async def test_many_silent_ones_displace_each_other(
    pki: Pki, secure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "PENDING_MAX", 4)
    with ExitStack() as stack:
        async with accepted(pki, secure=secure) as address:
            opened = [silent(stack, address, HELLO_BEGUN if secure else b"") for _ in range(20)]
            # In the order in which they came; the last four may wait.
            for each in opened[:-4]:
                await dropped(each)
            assert await ask(pki, address, secure=secure) == b"HELLO"
            await dropped(opened[-4])
            with pytest.raises(BlockingIOError):
                opened[-1].recv(1)


async def test_nothing_is_left_when_it_ends(pki: Pki, secure: bool) -> None:
    with ExitStack() as stack:
        async with accepted(pki, secure=secure) as address:
            waiting = [silent(stack, address), silent(stack, address, HELLO_BEGUN if secure else b"")]
            assert await ask(pki, address, secure=secure) == b"HELLO"
        await dropped(waiting[0])
        if secure:
            await dropped(waiting[1])
