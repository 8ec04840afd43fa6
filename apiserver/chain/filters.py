"""The filters that every request passes, from the outermost to the innermost: `FILTERS` in `chain`.

A filter is made once, at start-up: it takes the server's parts and the next handler, and returns a handler.
Source: kube-apiserver 1.36, server/config.go (DefaultBuildHandlerChain) and endpoints/filters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nominee.apiserver.access.access import Access
from nominee.apiserver.chain import problems
from nominee.apiserver.chain.handlers import handle
from nominee.apiserver.chain.metrics import RequestMetrics
from nominee.apiserver.chain.request import METRICS_VERBS, WRITES, ApiRequest, ClientGone
from nominee.apiserver.chain.results import Result
from nominee.apiserver.flow_control.controller import FlowControl
from nominee.apiserver.objects.requests import RegistryAPI
from nominee.apiserver.objects.watcher import Watcher
from nominee.apiserver.storage.interface import StorageError
from nominee.apiserver.storage.status import to_status
from nominee.machinery.api import errors
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.runtime import failpoints, logs
from nominee.machinery.runtime.clock import Clock

BEFORE_WRITE = failpoints.declare(
    "apiserver.write.before", "a write is authenticated and authorized and has its seat; its body is not read"
)
"""A write passed authorization, and its body is not read yet."""
AFTER_WRITE = failpoints.declare("apiserver.write.after", "a write is in etcd; the client has no response")
"""A write is in etcd, and the client has no response yet."""
STOPPING = "the API server is shutting down"
_log = logs.get()


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The parts of the server that filters use."""

    registry: RegistryAPI
    access: Access
    flow_control: FlowControl
    clock: Clock
    metrics: RequestMetrics


Next = Callable[[ApiRequest], Awaitable[None]]
Filter = Callable[[Dependencies, Next], Next]


def count(server: Dependencies, next_filter: Next) -> Next:
    """Count requests and their durations; of a watch that began there is no duration."""
    clock, metrics = server.clock, server.metrics

    async def counted(request: ApiRequest) -> None:
        begun = clock.monotonic()
        await next_filter(request)
        watched = request.verb == "watch" and request.code == 200
        seconds = None if watched else clock.monotonic() - begun
        metrics.answered(request.labels(), request.code, seconds)

    return counted


def report_errors(server: Dependencies, next_filter: Next) -> Next:
    """Send a Status for every error. A bug is logged, and the client gets 500."""

    async def reported(request: ApiRequest) -> None:
        try:
            await next_filter(request)
            return
        except StatusError as error:
            failure = error
        except StorageError as error:
            failure = to_status(error)
        except failpoints.FailpointError as error:
            failure = errors.internal(str(error))
        except ClientGone:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # The client left, or the server stops: no client waits for a response.
                raise
            failure = errors.service_unavailable(STOPPING)
        except Exception as error:  # noqa: BLE001  # the server goes on
            _log.exception("A request failed", verb=request.verb, resource=request.labels().resource)
            failure = errors.internal(f"{type(error).__name__}: {error}")
        await request.fail(failure)

    return reported


def limit_time(server: Dependencies, next_filter: Next) -> Next:
    """End a request whose result is not there in time. Raises: StatusError 504.

    Source: kube-apiserver 1.36, endpoints/filters/request_deadline.go, handlers/finisher.
    """

    async def limited(request: ApiRequest) -> None:
        seconds = request.seconds_max()
        if seconds is None:
            await next_filter(request)
            return
        scope = request.deadline = asyncio.timeout(seconds)
        try:
            async with scope:
                await next_filter(request)
        except TimeoutError:
            if not scope.expired():
                raise
            raise _missed(request) from None

    return limited


def _missed(request: ApiRequest) -> StatusError:
    """Return the 504 of a request that missed its deadline."""
    if request.verb in WRITES:
        return errors.timeout("request did not complete within requested timeout - context deadline exceeded")
    return problems.too_slow()


def authenticate(server: Dependencies, next_filter: Next) -> Next:
    """Set the user of a request. Without an authenticator it is the admin. Raises: StatusError 400, 401."""
    access = server.access
    if access.authenticator is None:
        return next_filter

    async def authenticated(request: ApiRequest) -> None:
        request.user = access.authenticate(request.credentials())
        await next_filter(request)

    return authenticated


def impersonate(server: Dependencies, next_filter: Next) -> Next:
    """Let a user act as another one. Raises: StatusError 400, 403."""
    access = server.access

    async def as_user(request: ApiRequest) -> None:
        request.user = access.impersonate(request.user, request.impersonation())
        await next_filter(request)

    return as_user


def resolve(server: Dependencies, next_filter: Next) -> Next:
    """Set the target of a request, which only an authenticated user may have decoded."""

    async def resolved(request: ApiRequest) -> None:
        request.attributes = request.resolve()
        await next_filter(request)

    return resolved


def take_turns(server: Dependencies, next_filter: Next) -> Next:
    """Wait for a seat by priority and fairness. Raises: StatusError 429."""
    control = server.flow_control

    async def in_turn(request: ApiRequest) -> None:
        ticket = control.arrive(request.user, request.attributes, request.width(control))
        request.ticket = ticket
        try:
            if not ticket.admitted:
                await ticket.wait(request.queue_seconds_max())
            await next_filter(request)
        finally:
            ticket.leave()

    return in_turn


def authorize(server: Dependencies, next_filter: Next) -> Next:
    """Check that the user may make the request. Raises: StatusError 403."""
    access = server.access
    if access.open:
        return next_filter

    async def authorized(request: ApiRequest) -> None:
        access.authorize(request.user, request.attributes)
        await next_filter(request)

    return authorized


def respond(server: Dependencies) -> Next:
    """Return the end of the chain: handle a request, and send its result.

    A watch that stands holds no seat; what takes time to be sent has limits of its own.
    """
    registry, metrics = server.registry, server.metrics

    async def responded(request: ApiRequest) -> None:
        kind = request.kind
        if kind is not None and request.verb in WRITES:
            result = await _write(registry, request, kind)
        else:
            result = await handle(registry, request)
        if request.deadline is not None:
            request.deadline.reschedule(None)
        if not isinstance(result, Watcher):
            await request.respond(result)
            return
        if request.ticket is not None:
            request.ticket.leave()
        labels = request.labels()
        metrics.watching(labels, 1)
        try:
            async with result:
                await request.stream(result)
        finally:
            metrics.watching(labels, -1)

    return responded


async def _write(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> Result:
    """Handle a write between its failpoints."""
    verb, named = METRICS_VERBS[request.verb], f"{request.namespace}/{request.name}"
    await BEFORE_WRITE.hit(verb=verb, resource=kind.plural, object=named)
    result = await handle(registry, request)
    await AFTER_WRITE.hit(verb=verb, resource=kind.plural, object=named)
    return result
