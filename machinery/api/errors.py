"""The Kubernetes Status as an exception, and how gRPC carries it.

The constructors are named as upstream's and word their messages as those do (apimachinery 1.36,
pkg/api/errors). Over gRPC a Status travels in the rich error details: a `google.rpc.Status` whose details
hold one `meta.Status`; the gRPC code comes from the HTTP code, so that a generic client understands it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeGuard

from nominee.machinery.api import names
from nominee.machinery.api.kinds import AnyKind, Kind
from nominee.machinery.api.pb import meta

if TYPE_CHECKING:
    import grpc
    import grpc.aio

DETAILS_KEY = "grpc-status-details-bin"
TYPE_URL = "type.googleapis.com/k8s.io.apimachinery.pkg.apis.meta.v1.Status"
_TOO_LARGE = "message larger than max"
MESSAGE_BYTES_MAX = 1024
"""Of the plain text in the header, which is percent-encoded; the whole text is in the details."""

OPTIMISTIC_LOCK = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class FailpointError(Exception):
    """The error that an armed failpoint with `error("text")` raises; here, so that cores can catch it."""


class GroupResource(NamedTuple):
    """A resource that has no `Kind` row, for error messages."""

    group: str
    resource: str

    @property
    def group_resource(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class GroupKind(NamedTuple):
    """A kind that has no `Kind` row (Binding, Eviction), for error messages."""

    group: str
    kind: str

    @property
    def group_kind(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause in a Status: `reason` ("FieldValueInvalid"), text, field path ("spec.containers[0].name")."""

    reason: str
    message: str
    field: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class StatusError(Exception):
    """A failed request: HTTP's `code` (404), Kubernetes' `reason` ("NotFound"; may be "") and the text.

    `warnings` are for the client besides the Status, as those of a write that is done.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: meta.StatusDetails | None = None,
        retry_after_seconds: int = 0,
        causes: Iterable[Cause] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        if details is None and (retry_after_seconds or causes):
            details = meta.StatusDetails()
        if details is not None:
            if retry_after_seconds:
                details.retryAfterSeconds = retry_after_seconds
            for cause in causes:
                details.causes.add(reason=cause.reason, message=cause.message, field=cause.field)
        self.details = details
        self.warnings: Sequence[str] = ()

    def __repr__(self) -> str:
        return f"StatusError({self.code}, {self.reason!r}, {self.message!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_bytes, (self.to_message().SerializeToString(),)

    @property
    def retry_after_seconds(self) -> int:
        """Whole seconds the server asks to wait, 0 for none."""
        return self.details.retryAfterSeconds if self.details is not None else 0

    @property
    def causes(self) -> Sequence[Cause]:
        if self.details is None:
            return ()
        return tuple(Cause(cause.reason, cause.message, cause.field) for cause in self.details.causes)

    def to_message(self) -> meta.Status:
        """Return the Status object of this error, with `details` only where it has any."""
        status = meta.Status(status="Failure", message=self.message, reason=self.reason, code=self.code)
        status.metadata.SetInParent()
        if self.details is not None:
            status.details.CopyFrom(self.details)
        return status

    @classmethod
    def from_message(cls, status: meta.Status) -> StatusError:
        details = None
        if status.HasField("details"):
            details = meta.StatusDetails()
            details.CopyFrom(status.details)
        return cls(status.code, status.reason, status.message, details=details)


def _from_bytes(data: bytes) -> StatusError:
    return StatusError.from_message(meta.Status.FromString(data))


# Constructors.


def not_found(resource: AnyKind | GroupResource, name: str) -> StatusError:
    return StatusError(
        404, "NotFound", f'{resource.group_resource} "{name}" not found', details=_about(resource, name)
    )


def already_exists(resource: AnyKind | GroupResource, name: str) -> StatusError:
    """Return the error for a name that is taken (409)."""
    return StatusError(
        409,
        "AlreadyExists",
        f'{resource.group_resource} "{name}" already exists',
        details=_about(resource, name),
    )


def generate_name_conflict(
    resource: AnyKind | GroupResource, name: str, retry_after_seconds: int = 1
) -> StatusError:
    """Return the error for a generated name that was taken in each attempt."""
    text = (
        f'{resource.group_resource} "{name}" already exists, the server was not able to generate a unique'
        " name for the object"
    )
    return StatusError(
        409, "AlreadyExists", text, details=_about(resource, name), retry_after_seconds=retry_after_seconds
    )


def conflict(resource: AnyKind | GroupResource, name: str, message: str = OPTIMISTIC_LOCK) -> StatusError:
    """409; `message` says why, by default that the resourceVersion is not the newest."""
    text = f'Operation cannot be fulfilled on {resource.group_resource} "{name}": {message}'
    return StatusError(409, "Conflict", text, details=_about(resource, name))


def invalid(kind: AnyKind | GroupKind, name: str, causes: Iterable[Cause]) -> StatusError:
    """422 with all field errors; the same text is not repeated in the message."""
    listed = tuple(causes)
    details = meta.StatusDetails(name=name, group=kind.group, kind=kind.kind)
    text = f'{kind.group_kind} "{name}" is invalid'
    if listed:
        text += f": {names.aggregate(map(str, listed))}"
    return StatusError(422, "Invalid", text, details=details, causes=listed)


def forbidden(resource: AnyKind | GroupResource | None, name: str, message: str) -> StatusError:
    if resource is None:
        return StatusError(403, "Forbidden", f"forbidden: {message}")
    subject = f'{resource.group_resource} "{name}"' if name else resource.group_resource
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {message}", details=_about(resource, name))


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def unauthorized(message: str = "not authorized to perform this operation") -> StatusError:
    return StatusError(401, "Unauthorized", message)


def method_not_allowed(resource: AnyKind | GroupResource, action: str) -> StatusError:
    text = f'{action} is not supported on resources of kind "{resource.group_resource}"'
    return StatusError(405, "MethodNotAllowed", text, details=_about(resource, ""))


def unknown_resource() -> StatusError:
    """404 of a path that no kind serves."""
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def gone(message: str) -> StatusError:
    return StatusError(410, "Gone", message)


def expired(message: str) -> StatusError:
    """410 of a revision or continue token that is compacted: list again."""
    return StatusError(410, "Expired", message)


def request_too_large(message: str) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def too_many_requests(
    message: str, retry_after_seconds: int = 0, *, causes: Iterable[Cause] = ()
) -> StatusError:
    """Return the error of an overloaded server (429)."""
    return StatusError(
        429,
        "TooManyRequests",
        message,
        details=meta.StatusDetails(),
        retry_after_seconds=retry_after_seconds,
        causes=tuple(causes),
    )


def internal(message: str) -> StatusError:
    return StatusError(
        500, "InternalError", f"Internal error occurred: {message}", causes=(Cause("", message),)
    )


def service_unavailable(message: str) -> StatusError:
    return StatusError(503, "ServiceUnavailable", message)


def timeout(message: str, retry_after_seconds: int = 0, *, causes: Iterable[Cause] = ()) -> StatusError:
    """Return the error for a request that took too long (504)."""
    return StatusError(
        504,
        "Timeout",
        f"Timeout: {message}",
        details=meta.StatusDetails(),
        retry_after_seconds=retry_after_seconds,
        causes=tuple(causes),
    )


_RESOURCE_VERSION_TOO_LARGE = "ResourceVersionTooLarge"


def too_large_resource_version(asked: int, current: int, retry_after_seconds: int = 1) -> StatusError:
    """504: the cache has not yet seen the revision a reader asks for."""
    return timeout(
        f"Too large resource version: {asked}, current: {current}",
        retry_after_seconds,
        causes=(Cause(_RESOURCE_VERSION_TOO_LARGE, "Too large resource version"),),
    )


def _about(resource: AnyKind | GroupResource, name: str) -> meta.StatusDetails:
    plural = resource.plural if isinstance(resource, Kind) else resource.resource
    return meta.StatusDetails(name=name, group=resource.group, kind=plural)


# Tests.


def _is(error: BaseException | None, code: int, *reasons: str) -> bool:
    return isinstance(error, StatusError) and (
        error.reason in reasons if error.reason else error.code == code
    )


def is_not_found(error: BaseException | None) -> TypeGuard[StatusError]:
    return _is(error, 404, "NotFound")


def is_already_exists(error: BaseException | None) -> TypeGuard[StatusError]:
    return isinstance(error, StatusError) and error.reason == "AlreadyExists"


def is_conflict(error: BaseException | None) -> TypeGuard[StatusError]:
    return _is(error, 409, "Conflict")


def is_gone(error: BaseException | None) -> TypeGuard[StatusError]:
    """Return whether the error is Gone or Expired: a compacted revision, list again."""
    return _is(error, 410, "Gone", "Expired")


def is_too_large_resource_version(error: StatusError) -> bool:
    """Return whether the server's state is older than the requested revision: it lags, or etcd was reset."""
    return any(cause.reason == _RESOURCE_VERSION_TOO_LARGE for cause in error.causes)


def is_timeout(error: BaseException | None) -> TypeGuard[StatusError]:
    return _is(error, 504, "Timeout")


def is_retryable(error: BaseException | None) -> TypeGuard[StatusError]:
    """Return whether the request may succeed later: no answer, overload, a server that starts or stops."""
    return isinstance(error, StatusError) and (
        error.code in {429, 503, 504} or error.reason in {"ServerTimeout", "InternalError"}
    )


@contextmanager
def ignoring(*tests: Callable[[StatusError], bool]) -> Iterator[None]:
    """Ignore a StatusError of the block that one of these functions recognizes, such as `is_not_found`."""
    try:
        yield
    except StatusError as error:
        if not any(test(error) for test in tests):
            raise


# gRPC. The import is inside, so that pure code can raise a StatusError without 60 ms of grpc.

_GRPC_BY_REASON = {"AlreadyExists": "ALREADY_EXISTS"}
_GRPC_BY_CODE = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    409: "ABORTED",
    410: "OUT_OF_RANGE",
    413: "FAILED_PRECONDITION",
    422: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_HTTP_BY_GRPC = {
    "INVALID_ARGUMENT": (400, "BadRequest"),
    "UNAUTHENTICATED": (401, "Unauthorized"),
    "PERMISSION_DENIED": (403, "Forbidden"),
    "NOT_FOUND": (404, "NotFound"),
    "UNIMPLEMENTED": (405, "MethodNotAllowed"),
    "ALREADY_EXISTS": (409, "AlreadyExists"),
    "ABORTED": (409, "Conflict"),
    "OUT_OF_RANGE": (410, "Expired"),
    "FAILED_PRECONDITION": (412, ""),
    "RESOURCE_EXHAUSTED": (429, "TooManyRequests"),
    "UNAVAILABLE": (503, "ServiceUnavailable"),
    "DEADLINE_EXCEEDED": (504, "Timeout"),
    # The server gave the call up without an answer, as when it stops.
    "CANCELLED": (503, "ServiceUnavailable"),
}


def grpc_code(error: StatusError) -> grpc.StatusCode:
    """Return the gRPC code nearest to an HTTP code, INTERNAL for all others."""
    import grpc

    name = _GRPC_BY_REASON.get(error.reason) or _GRPC_BY_CODE.get(error.code)
    if name is None:
        name = "INVALID_ARGUMENT" if 400 <= error.code < 500 else "INTERNAL"
    return grpc.StatusCode[name]


def to_rich_status(error: StatusError) -> bytes:
    """Return the serialized google.rpc.Status for the `grpc-status-details-bin` trailer."""
    from google.rpc import status_pb2  # type: ignore[import-untyped]

    rich = status_pb2.Status(code=int(grpc_code(error).value[0]), message=_short(error.message))
    detail = rich.details.add()
    detail.type_url = TYPE_URL
    detail.value = error.to_message().SerializeToString()
    return bytes(rich.SerializeToString())


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: StatusError) -> NoReturn:
    """End a servicer's call with this status."""
    await context.abort(
        grpc_code(error),
        _short(error.message),
        trailing_metadata=((DETAILS_KEY, to_rich_status(error)),),
    )
    raise AssertionError("abort returned")


def from_rpc_error(error: grpc.aio.AioRpcError) -> StatusError:
    """Return the Status that a failed call carries, or one made from its gRPC code.

    `from_server(error)` returns which of the two it was.
    """
    status = _detail(error)
    if status is not None:
        return StatusError.from_message(status)
    if error.code().name == "RESOURCE_EXHAUSTED" and _TOO_LARGE in (error.details() or ""):
        # Gone before the API server has seen it; to try again would be in vain.
        return request_too_large(error.details() or "")
    code, reason = _HTTP_BY_GRPC.get(error.code().name, (500, "InternalError"))
    return StatusError(code, reason, error.details() or error.code().name)


def from_rich_status(rich: bytes) -> grpc.aio.AioRpcError:
    """Return the exception of a call that failed with this google.rpc.Status."""
    import grpc.aio
    from google.rpc import status_pb2

    status = status_pb2.Status.FromString(rich)
    code = _codes_by_number().get(status.code, grpc.StatusCode.UNKNOWN)
    trailing = grpc.aio.Metadata((DETAILS_KEY, rich))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, details=status.message)


@cache
def _codes_by_number() -> Mapping[int, grpc.StatusCode]:
    import grpc

    return {int(code.value[0]): code for code in grpc.StatusCode}


def from_server(error: grpc.aio.AioRpcError) -> bool:
    """Return whether the API server itself answered, rather than the connection failing on the way."""
    return _detail(error) is not None


def _detail(error: grpc.aio.AioRpcError) -> meta.Status | None:
    from google.rpc import status_pb2

    for key, value in error.trailing_metadata() or ():
        if key != DETAILS_KEY or not isinstance(value, bytes):
            continue
        for detail in status_pb2.Status.FromString(value).details:
            if detail.type_url == TYPE_URL:
                return meta.Status.FromString(detail.value)
    return None


def _short(text: str) -> str:
    return text if len(text) <= MESSAGE_BYTES_MAX else text[: MESSAGE_BYTES_MAX - 3] + "..."
