"""The TLS configuration of an extender.

Source: kube-scheduler 1.36, makeTransport; client-go's TLS configuration. With `enableHTTPS` and no CA the
extender's certificate is not verified, as upstream has it.
"""

from __future__ import annotations

import base64
import contextlib
import os
import ssl
import tempfile

from nominee.scheduler.configuration.config import Extender, ExtenderTls


class TransportError(ValueError):
    """An extender's transport configuration cannot be used; `field` is a path (`tlsConfig.caFile`)."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


def tls_context(extender: Extender) -> ssl.SSLContext:
    """Return the context that `tlsConfig` and `enableHTTPS` ask for.

    Raises:
        TransportError: certificates or keys cannot be read, or fields contradict each other.
    """
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
    """Return a context that trusts the given authority; data take precedence over files."""
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
    """Load the client certificate, for an extender that asks for one. Python reads it from files only."""
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
