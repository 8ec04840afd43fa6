"""One HTTP request to a process's serving port on the loopback, with http.client."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from nominee.machinery.process.serving_port import serving_token

ANSWER_BYTES_MAX = 64 << 20


class HttpError(OSError):
    """The address does not answer, or answers too much."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole answer."""

    status: int
    body: bytes
    content_type: str = ""

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class ServingPort:
    """A process's serving port, and the token that it requires; "" for the open paths."""

    address: str
    token: str = field(default="", repr=False)

    @classmethod
    def of(cls, address: str, directory: Path | str) -> ServingPort:
        """Return the port at `host:port` of a process with this state directory."""
        return cls(address, serving_token.read(directory))


def request(
    port: ServingPort, path: str, *, method: str = "GET", body: str = "", timeout_seconds: float = 10.0
) -> HttpAnswer:
    """Send a request and return the whole answer.

    Raises:
        HttpError: the answer does not come, or is too long.
    """
    import http.client

    connection = http.client.HTTPConnection(port.address, timeout=timeout_seconds)
    headers = {"Authorization": f"Bearer {port.token}"} if port.token else {}
    try:
        connection.request(method, path, body=body.encode() or None, headers=headers)
        answer = connection.getresponse()
        data = answer.read(ANSWER_BYTES_MAX + 1)
    except (OSError, http.client.HTTPException) as error:
        raise HttpError(f"{port.address}{path} does not answer: {error}") from None
    finally:
        connection.close()
    if len(data) > ANSWER_BYTES_MAX:
        raise HttpError(f"{port.address}{path} answers more than {ANSWER_BYTES_MAX} bytes")
    return HttpAnswer(answer.status, data, answer.getheader("content-type", ""))
