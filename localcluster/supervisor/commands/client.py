"""The client of a running supervisor."""

from __future__ import annotations

import json
import socket

from nominee.localcluster.supervisor.commands.socket_path import reachable
from nominee.localcluster.supervisor.directory import JsonObject, StateDirectory

_ANSWER_BYTES_MAX = 16 * 1024 * 1024


class NotRunningError(Exception):
    """No supervisor answers in this directory."""


class RefusedError(Exception):
    """The supervisor refused the command; the message is its reason."""


def call(directory: StateDirectory, command: str, *, timeout_seconds: float, **fields: object) -> JsonObject:
    """Send one command and return the answer.

    Raises:
        NotRunningError: no supervisor answers.
        RefusedError: the supervisor refused the command.
        TimeoutError: the answer does not come in time.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_seconds)
        try:
            with reachable(directory.run / "supervisor.sock") as short:
                connection.connect(short)
            connection.sendall(json.dumps({"command": command, **fields}).encode() + b"\n")
            answer = _read_line(connection)
        except TimeoutError:
            raise TimeoutError(
                f"the supervisor in {directory.path} did not answer within {timeout_seconds:g} s"
            ) from None
        except OSError:
            raise NotRunningError(f"no cluster runs in {directory.path}") from None
    if not answer:
        raise NotRunningError(f"the supervisor in {directory.path} ended before it answered")
    document: JsonObject = json.loads(answer)
    if not document.get("ok"):
        raise RefusedError(str(document.get("error", "the supervisor refused without a reason")))
    return document


def _read_line(connection: socket.socket) -> bytes:
    received = b""
    while b"\n" not in received and len(received) < _ANSWER_BYTES_MAX:
        chunk = connection.recv(65536)
        if not chunk:
            break
        received += chunk
    return received if b"\n" in received else b""
