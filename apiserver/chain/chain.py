"""The request chain: the function that a front calls with each request, and the order of its filters.

The filters are functions in `filters`, and all but the first three are plain calls: a request waits only for
a seat that is taken, and for its handler. So a request costs two coroutines and not one for each filter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nominee.apiserver.chain import filters
from nominee.apiserver.chain.filters import Dependencies
from nominee.apiserver.chain.request import ApiRequest

Chain = Callable[[ApiRequest], Awaitable[None]]


def chain(server: Dependencies) -> Chain:
    """Return the chain over the handlers' table. It serves any number of requests at once.

    It sends a response for every request, and raises only where a client left or the server stops.
    """
    # Decided once: a plain port authenticates and authorizes no request.
    authenticated, authorized = server.access.authenticator is not None, not server.access.open

    async def serve(request: ApiRequest) -> None:
        begun = server.clock.monotonic()
        try:
            seconds = request.seconds_max()
            if seconds is None:
                await admit(request)
            else:
                await filters.limit_time(request, seconds, admit)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # the server goes on
            await request.fail(filters.report_error(request, error))
        filters.count(server, request, begun)

    async def admit(request: ApiRequest) -> None:
        if authenticated:
            filters.authenticate(server, request)
        filters.impersonate(server, request)
        filters.resolve(request)
        ticket = filters.take_turn(server, request)
        try:
            if not ticket.admitted:
                await ticket.wait(request.queue_seconds_max())
            if authorized:
                filters.authorize(server, request)
            await filters.respond(server, request)
        finally:
            ticket.leave()

    return serve
