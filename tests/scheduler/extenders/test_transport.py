"""Connections to extenders: kept open, over TLS, with certificates."""

from __future__ import annotations

import base64
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from nominee.scheduler.configuration.config import ConfigError, Extender, ExtenderTls, load
from nominee.scheduler.extenders.client import ExtenderClient
from nominee.scheduler.extenders.tls import TransportError
from nominee.scheduler.extenders.transport import CallError, Transport
from tests.support.patience import PATIENCE_SECONDS

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
NAME = "extender.test"


@dataclass
class Pair:
    """A self-signed certificate and its key, as files."""

    cert: Path
    key: Path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("pki")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    names = [x509.DNSName(NAME), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(BEGIN)
        .not_valid_after(BEGIN + timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    made = Pair(folder / "cert.pem", folder / "key.pem")
    made.cert.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return made


@dataclass
class Served:
    """A server in a thread. `closes`: it ends a connection after each answer, without saying so."""

    url: str = ""
    closes: bool = False
    connections: list[str] = field(default_factory=list)  # names of the clients' certificates, "" without
    closed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Served]:
    served = Served()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            shown = self.request.getpeercert() if isinstance(self.request, ssl.SSLSocket) else None
            served.connections.append(NAME if shown and NAME in str(shown["subject"]) else "")

        def do_POST(self) -> None:  # http.server's name
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
            self.close_connection = served.closes

        def log_message(self, format: str, *args: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        def shutdown_request(self, request: Any) -> None:
            super().shutdown_request(request)
            served.closed.release()

    with Server(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        served.url = f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


def with_tls(pair: Pair, *, asks: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(pair.cert)
    return context


async def posted(extender: Extender, served: Served, times: int = 1) -> None:
    async with transport_to(extender) as transport:
        for _ in range(times):
            assert await transport.post(f"{served.url}/filter", {}) == (200, b"{}")


@asynccontextmanager
async def transport_to(extender: Extender, **options: Any) -> AsyncIterator[Transport]:
    transport = Transport(extender, **options)
    try:
        yield transport
    finally:
        await transport.close()


async def test_one_connection_serves_call_after_call() -> None:
    with serving() as served:
        await posted(Extender(url_prefix=served.url), served, 3)
        assert len(served.connections) == 1


async def test_a_connection_that_was_closed_while_idle_is_replaced() -> None:
    with serving() as served:
        served.closes = True
        async with transport_to(Extender(url_prefix=served.url)) as transport:
            for number in (1, 2, 3):
                assert await transport.post(f"{served.url}/filter", {}) == (200, b"{}")
                assert len(served.connections) == number
                assert await to_thread.run_sync(lambda: served.closed.acquire(timeout=PATIENCE_SECONDS))


def _read_request(peer: socket.socket) -> bytes:
    """One POST, whole."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += peer.recv(65536)
    head, _, body = found.partition(b"\r\n\r\n")
    length = next(int(row[15:]) for row in head.split(b"\r\n") if row.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += peer.recv(65536)
    return body


@contextmanager
def answering(*answers: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[bytes]]]:
    """A server of one connection at a time that answers each request with the next response, then closes."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            left = list(answers)
            while left:
                peer, _ = server.accept()
                with peer:
                    peer.settimeout(PATIENCE_SECONDS)
                    while left:
                        asked.append(_read_request(peer))
                        with suppress(OSError):
                            left.pop(0)(peer)
                            continue
                        break

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", asked
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def _fine(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


def _hangs_up(peer: socket.socket) -> None:
    peer.shutdown(socket.SHUT_RDWR)
    raise OSError


async def test_a_call_that_may_have_been_received_is_not_repeated() -> None:
    with answering(_fine, _hangs_up) as (url, asked):
        async with transport_to(Extender(url_prefix=url)) as transport:
            assert await transport.post(f"{url}/bind", 1) == (200, b"{}")
            with pytest.raises(CallError):
                await transport.post(f"{url}/bind", 2)
        assert asked == [b"1", b"2"]


async def test_a_response_without_end_is_cut() -> None:
    def floods(peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            peer.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")

    with answering(floods) as (url, _):
        async with transport_to(Extender(url_prefix=url), answer_bytes_max=10_000) as transport:
            with pytest.raises(CallError, match="larger than 10000 bytes"):
                await transport.post(f"{url}/filter", {})


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"])
async def test_the_time_limit_is_for_the_whole_answer(start: bytes) -> None:
    """Each byte comes within the limit, and they do not end."""
    over = threading.Event()

    def dribbles(peer: socket.socket) -> None:
        peer.sendall(start)
        while not over.wait(0.01):
            peer.sendall(b"x")

    with answering(dribbles) as (url, _):
        try:
            async with transport_to(Extender(url_prefix=url, http_timeout_seconds=0.3)) as transport:
                with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(TimeoutError):
                    await transport.post(f"{url}/filter", {})
        finally:
            over.set()


async def test_a_server_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    async with transport_to(Extender(url_prefix=url)) as transport:
        with pytest.raises(CallError, match=r"[Cc]onnect"):
            await transport.post(f"{url}/filter", {})


@pytest.mark.parametrize("as_data", [False, True])
async def test_both_sides_show_certificates(pair: Pair, as_data: bool) -> None:
    def encoded(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    tls = ExtenderTls(ca_file=str(pair.cert), cert_file=str(pair.cert), key_file=str(pair.key))
    if as_data:
        tls = ExtenderTls(
            ca_data=encoded(pair.cert), cert_data=encoded(pair.cert), key_data=encoded(pair.key)
        )
    with serving(with_tls(pair, asks=True)) as served:
        await posted(Extender(url_prefix=served.url, enable_https=True, tls=tls), served, 2)
        assert served.connections == [NAME]


async def test_the_certificate_is_verified_for_the_name_that_is_given(pair: Pair) -> None:
    with serving(with_tls(pair)) as served:
        good = ExtenderTls(ca_file=str(pair.cert), server_name=NAME)
        await posted(Extender(url_prefix=served.url, enable_https=True, tls=good), served)
        bad = ExtenderTls(ca_file=str(pair.cert), server_name="else.test")
        with pytest.raises(CallError, match="CERTIFICATE_VERIFY_FAILED"):
            await posted(Extender(url_prefix=served.url, enable_https=True, tls=bad), served)
        # https without enableHTTPS or tlsConfig: the system's authorities, which do not know this one.
        with pytest.raises(CallError, match="CERTIFICATE_VERIFY_FAILED"):
            await posted(Extender(url_prefix=served.url), served)
        # enableHTTPS without a CA does not verify, as upstream has it.
        await posted(Extender(url_prefix=served.url, enable_https=True), served)


@pytest.mark.parametrize(
    ("tls", "field"),
    [
        (ExtenderTls(ca_file="/nowhere"), "tlsConfig.caFile"),
        (ExtenderTls(ca_data="%"), "tlsConfig.caData"),
        (ExtenderTls(insecure=True, ca_file="/nowhere"), "tlsConfig.insecure"),
        (ExtenderTls(cert_file="/nowhere"), "tlsConfig"),
        (ExtenderTls(cert_file="/nowhere", key_file="/nowhere"), "tlsConfig.certFile"),
    ],
)
def test_what_cannot_be_used_is_named_by_its_field(tls: ExtenderTls, field: str) -> None:
    good = Extender(url_prefix="http://127.0.0.1:1")
    with pytest.raises(TransportError) as caught:
        ExtenderClient((good, Extender(url_prefix="https://127.0.0.1:1", enable_https=True, tls=tls)))
    assert caught.value.field == f"extenders[1].{field}"


def test_tls_is_read_from_the_configuration_field_by_field() -> None:
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: https://127.0.0.1:1
  enableHTTPS: true
  tlsConfig: {serverName: a, caFile: b, certFile: c, keyFile: d}
"""
    [extender] = load(text).extenders
    assert extender.tls == ExtenderTls(server_name="a", ca_file="b", cert_file="c", key_file="d")
    with pytest.raises(ConfigError, match=r"extenders\[0\]\.tlsConfig\.insecure: expected a boolean"):
        load(text.replace("serverName: a", "insecure: 1"))
