"""The request chain: the function that a front calls with each request."""

from __future__ import annotations

from nominee.apiserver.chain import filters
from nominee.apiserver.chain.filters import Dependencies, Filter, Next

FILTERS: tuple[Filter, ...] = (
    filters.count,
    filters.report_errors,
    filters.limit_time,
    filters.authenticate,
    filters.impersonate,
    filters.resolve,
    filters.take_turns,
    filters.authorize,
)
"""From the outermost to the innermost; `filters.respond` is behind the last one."""


def chain(server: Dependencies) -> Next:
    """Compose the filters over the handlers' table. The result serves any number of requests at once.

    It sends a response for every request, and raises only where a client left or the server stops.
    """
    composed = filters.respond(server)
    for each in reversed(FILTERS):
        composed = each(server, composed)
    return composed
