"""One HTTP request to a component's serving port on the loopback, without an HTTP library's weight."""

from __future__ import annotations

from dataclasses import dataclass


class HttpError(Exception):
    """Nobody answers at the address."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", errors="replace")


def request(
    address: str, path: str, *, method: str = "GET", body: str = "", timeout_seconds: float = 10.0
) -> HttpAnswer:
    """Sends a request to `host:port` and reads the whole answer; HttpError when there is none."""
    import http.client

    connection = http.client.HTTPConnection(address, timeout=timeout_seconds)
    try:
        connection.request(method, path, body=body.encode() or None)
        answer = connection.getresponse()
        return HttpAnswer(answer.status, answer.read())
    except (OSError, http.client.HTTPException) as error:
        raise HttpError(f"{address}{path} does not answer: {error}") from None
    finally:
        connection.close()
