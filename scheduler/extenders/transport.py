"""Connections to extenders: kept open between calls, over TLS where the configuration says so.

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

from scheduler.config import Extender, ExtenderTls

IDLE_MAX: Final = 16  # connections kept open to one extender
_STALE: Final = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)


class TransportError(ValueError):
    """The configuration of an extender's transport cannot be used; `field` is where (`tlsConfig.caFile`)."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


class Transport:
    """For several threads: each call has a connection to itself."""

    def __init__(self, extender: Extender) -> None:
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
        self._idle: deque[http.client.HTTPConnection] = deque(maxlen=IDLE_MAX)

    def post(self, url: str, body: Any) -> tuple[int, bytes]:
        """Status and body of the answer; OSError or HTTPException when there is none."""
        parts = urlsplit(url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        while True:
            connection, is_fresh = self._connection()
            try:
                connection.request("POST", target, data, headers)
                answer = connection.getresponse()
                found = answer.read()
            except _STALE:
                connection.close()
                if is_fresh:
                    raise
                continue  # it was closed while it was idle: nobody has read the request
            except BaseException:
                connection.close()
                raise
            if answer.will_close:
                connection.close()
            else:
                self._idle.append(connection)
            return answer.status, found

    def close(self) -> None:
        """Ends the idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        """An idle one, or a new one (True)."""
        with contextlib.suppress(IndexError):
            return self._idle.pop(), False
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_seconds), True
        return (
            _TlsConnection(
                self._host, self._port, self._context, self._server_name, timeout=self._timeout_seconds
            ),
            True,
        )


class _TlsConnection(http.client.HTTPSConnection):
    """Verifies the certificate for a name that need not be the host's."""

    def __init__(
        self, host: str, port: int | None, context: ssl.SSLContext, server_name: str, *, timeout: float
    ) -> None:
        super().__init__(host, port, context=context, timeout=timeout)
        self._tls = context
        self._server_name = server_name

    def connect(self) -> None:
        raw = socket.create_connection((self.host, self.port), self.timeout)
        self.sock = self._tls.wrap_socket(raw, server_hostname=self._server_name)


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
