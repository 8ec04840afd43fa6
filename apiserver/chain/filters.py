"""The filters that every request passes, from the outermost to the innermost, as `chain` calls them.

Source: kube-apiserver 1.36, server/config.go (DefaultBuildHandlerChain) and endpoints/filters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from logging import DEBUG

from nominee.apiserver.access.access import Access
from nominee.apiserver.chain import problems
from nominee.apiserver.chain.handlers import handle
from nominee.apiserver.chain.metrics import RequestMetrics
from nominee.apiserver.chain.request import METRICS_VERBS, WRITES, ApiRequest, ClientGone
from nominee.apiserver.chain.results import Result
from nominee.apiserver.flow_control.controller import FlowControl, Ticket
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import DeleteResult, RegistryAPI, WriteResult
from nominee.apiserver.objects.usage import UsageSource
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
    usage: UsageSource | None = None
    """For metrics.k8s.io; None where it is not served."""


def count(server: Dependencies, request: ApiRequest, begun: float) -> None:
    """Count a request and its duration since `begun`; of a watch that began there is no duration."""
    watched = request.verb == "watch" and request.code == 200
    seconds = None if watched else server.clock.monotonic() - begun
    server.metrics.answered(request.labels(), request.code, seconds)


def report_error(request: ApiRequest, error: BaseException) -> StatusError:
    """Return the Status of an error. A bug is logged, and the client gets 500.

    Raises: the error, where no client waits for a response.
    """
    if isinstance(error, StatusError):
        return error
    if isinstance(error, StorageError):
        return to_status(error)
    if isinstance(error, failpoints.FailpointError):
        return errors.internal(str(error))
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is None or not task.cancelling():
            return errors.service_unavailable(STOPPING)
    if isinstance(error, ClientGone) or not isinstance(error, Exception):
        # The client left, or the server stops.
        raise error
    _log.error("A request failed", verb=request.verb, resource=request.labels().resource, exc_info=error)
    return errors.internal(f"{type(error).__name__}: {error}")


async def limit_time(
    request: ApiRequest, seconds: float, admit: Callable[[ApiRequest], Awaitable[None]]
) -> None:
    """End a request whose result is not there in time. Raises: StatusError 504.

    Source: kube-apiserver 1.36, endpoints/filters/request_deadline.go, handlers/finisher.
    """
    scope = request.deadline = asyncio.timeout(seconds)
    try:
        async with scope:
            await admit(request)
    except TimeoutError:
        if not scope.expired():
            raise
        raise _missed(request) from None


def _missed(request: ApiRequest) -> StatusError:
    """Return the 504 of a request that missed its deadline."""
    if request.verb in WRITES:
        return errors.timeout("request did not complete within requested timeout - context deadline exceeded")
    return problems.too_slow()


def authenticate(server: Dependencies, request: ApiRequest) -> None:
    """Set the user of a request; without an authenticator it is the admin. Raises: StatusError 400, 401."""
    request.user = server.access.authenticate(request.credentials())


def impersonate(server: Dependencies, request: ApiRequest) -> None:
    """Let a user act as another one. Raises: StatusError 400, 403."""
    request.user = server.access.impersonate(request.user, request.impersonation())


def resolve(request: ApiRequest) -> None:
    """Set the target of a request, which only an authenticated user may have decoded. Raises: StatusError."""
    request.attributes = request.resolve()


def take_turn(server: Dependencies, request: ApiRequest) -> Ticket:
    """Take a seat by priority and fairness, or a place in a queue."""
    control = server.flow_control
    ticket = request.ticket = control.arrive(request.user, request.attributes, request.width(control))
    return ticket


def authorize(server: Dependencies, request: ApiRequest) -> None:
    """Check that the user may make the request. Raises: StatusError 403."""
    server.access.authorize(request.user, request.attributes)


async def respond(server: Dependencies, request: ApiRequest) -> None:
    """Handle a request, and send its result.

    A watch that stands holds no seat; what takes time to be sent has limits of its own.
    """
    kind = request.kind
    if kind is not None and request.verb in WRITES:
        result = await _write(server.registry, request, kind)
    else:
        result = await handle(server.registry, request)
    if request.deadline is not None:
        request.deadline.reschedule(None)
    if not isinstance(result, Watcher):
        await request.respond(result)
        return
    if request.ticket is not None:
        request.ticket.leave()
    labels = request.labels()
    server.metrics.watching(labels, 1)
    try:
        async with result:
            await request.stream(result)
    finally:
        server.metrics.watching(labels, -1)


async def _write(registry: RegistryAPI, request: ApiRequest, kind: AnyKind) -> Result:
    """Handle a write between its failpoints."""
    verb, named = METRICS_VERBS[request.verb], f"{request.namespace}/{request.name}"
    await BEFORE_WRITE.hit(verb=verb, resource=kind.plural, object=named)
    result = await handle(registry, request)
    if isinstance(result, WriteResult | DeleteResult) and _log.is_enabled_for(DEBUG):
        _log_write(request, result.object)
    await AFTER_WRITE.hit(verb=verb, resource=kind.plural, object=named)
    return result


def _log_write(request: ApiRequest, written: CachedObject) -> None:
    """Log who made a write; `nominee history` reads the line."""
    labels = request.labels()
    _log.debug(
        "Wrote",
        verb=request.verb,
        resource=f"{labels.resource}/{labels.subresource}".rstrip("/"),
        object=f"{written.namespace}/{written.name}".lstrip("/"),
        revision=written.revision,
        user=request.user.name,
        userAgent=request.user_agent(),
    )
