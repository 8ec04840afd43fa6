"""Refuse requests that two HTTP parsers may read differently.

h11 reads a line that ends with a bare LF and joins a folded header (RFC 9112, sections 2.2 and 5.2, leave
both to a server), and passes every Authorization header on. A proxy that reads them otherwise would forward
another request than the one that is served.
"""

from __future__ import annotations

import re

import h11

_END = b"\r\n\r\n"
_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")
_FOLDED = re.compile(rb"\r\n[ \t]")


def head_problem(received: bytes) -> str:
    """Return the problem of the bytes of a request's head that have arrived, or ""."""
    end = received.find(_END)
    stop = len(received) if end < 0 else end + len(_END)
    if _BARE_LINE_FEED.search(received, 0, stop):
        return "a line of the header ends without a carriage return"
    if _FOLDED.search(received, 0, stop):
        return "a header is folded over several lines"
    return ""


class StrictConnection(h11.Connection):
    """A server's connection; `problem` says why a request was refused, "" where h11 itself refused it."""

    def __init__(self, max_incomplete_event_size: int) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size)
        self.problem = ""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event as h11 does.

        Raises:
            RemoteProtocolError: also for what this module refuses, and from then on.
        """
        if not self.problem and self.their_state is h11.IDLE:
            self.problem = head_problem(self.trailing_data[0])
        event = h11.NEED_DATA if self.problem else super().next_event()
        if isinstance(event, h11.Request):
            given = sum(name == b"authorization" for name, _ in event.headers)
            if given > 1:
                self.problem = f"there are {given} Authorization headers"
        if self.problem:
            raise h11.RemoteProtocolError(self.problem)
        return event
