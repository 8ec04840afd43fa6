"""The deadline of a request: `?timeout=`, and the server's own limits.

Source: kube-apiserver 1.36, endpoints/filters (request_deadline.go), handlers (rest.go: 34 s of a write) and
`--request-timeout`. A watch has no deadline: its `?timeout=` is ignored.
"""

from __future__ import annotations

from nominee.apiserver.fronts.rest.http.messages import Request
from nominee.machinery.api import errors
from nominee.machinery.wire.values.scalars import parse_seconds

REQUEST_SECONDS_MAX = 60.0
"""The limit of every request, kube-apiserver's `--request-timeout`."""
WRITE_SECONDS_MAX = 34.0
"""The limit of a write, also with a longer timeout; after it the outcome is unknown."""
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def seconds_of(request: Request) -> float:
    """Return the time from a request's arrival to the beginning of its response. Raises: StatusError 400."""
    most = WRITE_SECONDS_MAX if request.method in _WRITES else REQUEST_SECONDS_MAX
    if b"timeout" not in request.scope["query_string"] or not (text := request.query_value("timeout")):
        return most
    try:
        wanted = parse_seconds(text)
    except ValueError as error:
        raise errors.bad_request(f"invalid timeout specified in the request URL - {error}") from None
    # Zero or less: the client sets no limit.
    return min(wanted, most) if wanted > 0 else most
