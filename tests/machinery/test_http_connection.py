"""What a strict connection refuses, however its bytes arrive."""

from __future__ import annotations

import h11
import pytest

from nominee.machinery.process.http.http_connection import StrictConnection, head_problem

GOOD = b"POST /a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nContent-Length: 3\r\n\r\n\n \n"


def refusal(received: bytes, size: int) -> str:
    """Return why a connection refuses bytes that arrive `size` at a time, "" where it does not."""
    connection = StrictConnection(1 << 14)
    try:
        for at in range(0, len(received), size):
            connection.receive_data(received[at : at + size])
            while connection.next_event() not in (h11.NEED_DATA, h11.PAUSED):
                pass
    except h11.RemoteProtocolError:
        with pytest.raises(h11.RemoteProtocolError):
            connection.next_event()
        return connection.problem or "h11"
    return ""


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_refused_in_pieces_of_any_size(size: int) -> None:
    assert refusal(GOOD, size) == ""
    assert "carriage return" in refusal(GOOD.replace(b"x\r\n", b"x\n"), size)
    assert "carriage return" in refusal(GOOD.replace(b"\r\n\r\n", b"\n\n"), size)
    assert "folded" in refusal(GOOD.replace(b" x", b" x\r\n y"), size)
    assert "2 Authorization" in refusal(GOOD.replace(b"Host", b"AUTHORIZATION: b\r\nHost"), size)
    assert refusal(GOOD.replace(b"Host: x", b"Host: x\rA: b"), size) == "h11"


def test_only_the_head_counts() -> None:
    assert head_problem(b"GET / HTTP/1.1\r\nA: b\r\n\r\n\n\r\n c\n") == ""
    assert head_problem(b"GET / HTTP/1.1\r") == ""
    assert head_problem(b"GET / HTTP/1.1\r\nA: b\n\r\n") != ""
