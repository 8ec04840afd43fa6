"""Connections to extenders: kept open between calls, over TLS where the configuration says so.

A call is made once: an extender that binds, or counts licences, must not hear it twice. It is repeated only
if no byte of it was sent, since the connection had been closed while it was idle (Go's net/http does so, too:
a POST is not idempotent).

Source: kube-scheduler 1.36, makeTransport; client-go's TLS configuration. With `enableHTTPS` and no CA the
extender's certificate is not verified, as upstream has it.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import socket
import ssl
import tempfile
from collections import deque
from typing import Any, Final
from urllib.parse import urlsplit

from machinery.runtime.clock import Clock, SystemClock
from scheduler.config import Extender, ExtenderTls
from scheduler.extenders.exchange import TimedSocket

IDLE_MAX: Final = 16  # connections kept open to one extender
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024  # the nodes of a very large cluster, whole


class TransportError(ValueError):
    """The configuration of an extender's transport cannot be used; `field` is where (`tlsConfig.caFile`)."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


class Transport:
    """For several threads: each call has a connection to itself."""

    def __init__(
        self,
        extender: Extender,
        *,
        clock: Clock | None = None,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> None:
        """TransportError when certificates cannot be read, or the address is none."""
        parts = urlsplit(extender.url_prefix)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise TransportError("urlPrefix", "must be an http or https URL")
        try:
            port = parts.port
        except ValueError as error:
            raise TransportError("urlPrefix", str(error)) from None
        self._host, self._port = parts.hostname, port
        self._context = tls_context(extender) if parts.scheme == "https" else None
        self._server_name = extender.tls.server_name or parts.hostname
        self._timeout_seconds = extender.http_timeout_seconds
        self._clock = clock or SystemClock()
        self._answer_bytes_max = answer_bytes_max
        self._idle: deque[_Connection] = deque()

    def post(self, url: str, body: Any) -> tuple[int, bytes]:
        """Status and body of the answer; OSError or HTTPException when there is none (in time).

        The extender's time-out is for all of it: connecting, sending, and the last byte of the answer.
        """
        deadline = self._clock.monotonic() + self._timeout_seconds
        parts = urlsplit(url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        while True:
            connection, is_fresh = self._connection()
            try:
                connection.begin(deadline)
                connection.request("POST", target, data, headers)
                answer = connection.getresponse()
                found = answer.read(self._answer_bytes_max + 1)
            except BaseException as error:
                connection.close()
                if isinstance(error, OSError) and not is_fresh and not connection.sent:
                    continue  # it was closed a moment ago
                raise
            if len(found) > self._answer_bytes_max:
                connection.close()
                raise http.client.HTTPException(f"the answer is larger than {self._answer_bytes_max} bytes")
            if answer.will_close or not answer.isclosed() or len(self._idle) >= IDLE_MAX:
                connection.close()
            else:
                self._idle.append(connection)
            return answer.status, found

    def close(self) -> None:
        """Ends the idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _connection(self) -> tuple[_Connection, bool]:
        """An idle one that is still open, or a new one (True)."""
        with contextlib.suppress(IndexError):
            while True:
                found = self._idle.pop()
                if not found.is_stale():
                    return found, False
                found.close()
        return _Connection(self._host, self._port, self._context, self._server_name, self._clock), True


class _Connection(http.client.HTTPConnection):
    """With TLS if there is a context: the certificate's name need not be the host's."""

    def __init__(
        self, host: str, port: int | None, context: ssl.SSLContext | None, server_name: str, clock: Clock
    ) -> None:
        default = http.client.HTTP_PORT if context is None else http.client.HTTPS_PORT
        super().__init__(host, default if port is None else port)
        self._tls, self._server_name, self._clock = context, server_name, clock
        self._timed: TimedSocket | None = None
        self._deadline = 0.0

    @property
    def sent(self) -> int:
        """Bytes of the present call."""
        return 0 if self._timed is None else self._timed.sent

    def begin(self, deadline: float) -> None:
        """A call that must be answered by then."""
        self._deadline = deadline
        if self._timed is not None:
            self._timed.begin(deadline)

    def is_stale(self) -> bool:
        return self._timed is None or self._timed.is_stale()

    def connect(self) -> None:
        raw = socket.create_connection((self.host, self.port), self._left())
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            try:
                raw.settimeout(self._left())
                raw = self._tls.wrap_socket(raw, server_hostname=self._server_name)
            except BaseException:
                raw.close()
                raise
        self._timed = TimedSocket(raw, self._clock)
        self._timed.begin(self._deadline)
        self.sock = self._timed

    def _left(self) -> float:
        left = self._deadline - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        return left


def tls_context(extender: Extender) -> ssl.SSLContext:
    """What `tlsConfig` and `enableHTTPS` say; TransportError."""
    tls = extender.tls
    has_ca = bool(tls.ca_file or tls.ca_data)
    insecure = tls.insecure or (extender.enable_https and not has_ca)
    if has_ca and insecure:
        text = "specifying a root certificates file with the insecure flag is not allowed"
        raise TransportError("tlsConfig.insecure", text)
    # With an authority of its own the system's do not count.
    context = _trusting(tls) if has_ca else ssl.create_default_context()
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_file or tls.cert_data or tls.key_file or tls.key_data:
        _load_certificate(context, tls)
    return context


def _trusting(tls: ExtenderTls) -> ssl.SSLContext:
    """The given authority; data take precedence over files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    field = "tlsConfig.caData" if tls.ca_data else "tlsConfig.caFile"
    try:
        if tls.ca_data:
            context.load_verify_locations(cadata=_decoded(tls.ca_data, field).decode())
        else:
            context.load_verify_locations(cafile=tls.ca_file)
    except (OSError, ValueError) as error:
        raise TransportError(field, str(error)) from None
    return context


def _load_certificate(context: ssl.SSLContext, tls: ExtenderTls) -> None:
    """Our own, for an extender that asks for one. Python reads it from files only."""
    if not (tls.cert_file or tls.cert_data) or not (tls.key_file or tls.key_data):
        raise TransportError("tlsConfig", "both certificate and key must be given")
    with contextlib.ExitStack() as stack:
        cert = _as_file(stack, tls.cert_data, tls.cert_file, "tlsConfig.certData")
        key = _as_file(stack, tls.key_data, tls.key_file, "tlsConfig.keyData")
        try:
            context.load_cert_chain(cert, key)
        except OSError as error:
            raise TransportError("tlsConfig.certFile", str(error)) from None


def _as_file(stack: contextlib.ExitStack, data: str, path: str, field: str) -> str:
    if not data:
        return path
    file = stack.enter_context(tempfile.NamedTemporaryFile(mode="wb"))  # noqa: SIM115  # it does
    os.fchmod(file.fileno(), 0o600)
    file.write(_decoded(data, field))
    file.flush()
    return file.name


def _decoded(data: str, field: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise TransportError(field, str(error)) from None
