"""The client of the API server: asyncio, one class for every kind.

Calls raise `StatusError` only (and let cancellation through). A call the server never answered is 503
ServiceUnavailable, or 504 where its deadline passed; nothing is retried here (see `retry_unavailable`)
except what flow control rejects with Retry-After. When the connection fails, the client reads
D/run/apiserver.json again: a restarted server may have another port.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import anyio
import grpc
import grpc.aio
from google.protobuf.message import Message

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import AnyKind, Kind, M
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import autoscaling_v1, core, meta, policy
from nominee.machinery.client import credentials, messages
from nominee.machinery.client.calls import watch_stream
from nominee.machinery.client.calls.unary_call import call_unary
from nominee.machinery.client.calls.watch_stream import WatchEvent as WatchEvent
from nominee.machinery.client.connection import Connection, Dialer
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.process.run_files import wait_for_run_file
from nominee.machinery.runtime.clock import Clock, SystemClock
from nominee.machinery.runtime.faults import call_faults
from nominee.machinery.runtime.queues.backoff import ExponentialBackoff
from nominee.machinery.wire import envelope
from nominee.pb.nominee_api.v1 import api_pb2 as api

if TYPE_CHECKING:
    from nominee.pb.k8s.io.api.authorization.v1 import generated_pb2 as authorization

T = TypeVar("T")

call_faults.declare(
    "apiserver",
    ("Get", "List", "Watch", "Create", "Update", "Patch", "Delete", "Bind", "Evict", "ServerInfo"),
)
UNARY_SECONDS_MAX = 30.0
LIST_SECONDS_MAX = 60.0
REFUSED_MAX = 10
"""How often a call is made that the server has no room for (429 with Retry-After)."""


@dataclass(frozen=True, slots=True)
class ListResult(Generic[M]):
    """A list at one revision; `continue_token` is "" at its end."""

    items: list[M]
    resource_version: str
    continue_token: str = ""
    remaining_item_count: int | None = None


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The API server's emulated version ("1.37"), its gates, and etcd's revision now."""

    version: str
    feature_gates: Mapping[str, bool]
    revision: int


async def connect(
    directory: Path | str,
    component: str = "apiserver",
    *,
    user_agent: str = "",
    credential: str = credentials.ADMIN,
    batches: bool = False,
    limit_seconds: float = 60.0,
    clock: Clock | None = None,
) -> Client:
    """Return a client of the API server of a state directory, once its run file is there.

    Raises:
        TimeoutError: there is no run file within the limit.
    """
    run_file = await wait_for_run_file(directory, component, limit_seconds=limit_seconds, clock=clock)
    return Client(
        run_file.grpc,
        directory=directory,
        component=component,
        user_agent=user_agent,
        credential=credential,
        batches=batches,
    )


async def retry_unavailable(
    call: Callable[[], Awaitable[T]],
    *,
    clock: Clock | None = None,
    attempts_max: int = 10,
    seconds_first: float = 0.1,
    seconds_max: float = 2.0,
) -> T:
    """Do `call`, and again while the API server cannot be reached or is overloaded (503, 504, 429, ...).

    Waits `seconds_first` after the first failure and twice as long after each, or what the server asks for.
    The call must bear being done twice: its answer may have been lost. Raises the last error.
    """
    watch = clock or SystemClock()
    backoff = ExponentialBackoff(seconds_first, seconds_max)
    for attempt in range(1, attempts_max + 1):
        try:
            return await call()
        except errors.StatusError as error:
            if attempt == attempts_max or not errors.is_retryable(error):
                raise
            await watch.sleep(max(backoff.delay(attempt), min(error.retry_after_seconds, seconds_max)))
    raise AssertionError("attempts_max must be at least 1")


class WriteObserver(Protocol):
    """Is called for each write whose success the API server has reported."""

    def wrote(self, obj: Message) -> None:
        """Take the object that the API server returned."""

    def uid_of(self, kind: AnyKind, namespace: str, name: str) -> str:
        """Return the uid that a deletion is about which is sent now, "" if it is not known."""

    def deleted(self, kind: AnyKind, namespace: str, name: str, uid: str) -> None:
        """Take a deletion, and its uid; the object may stay for its grace period or finalizers."""


class Client:
    """One connection to the API server; may be used by many tasks at once.

    With `directory` it follows the API server to another address, or goes to the next of several, when a
    connection fails, and shows the credential of that name there if the server wants one; without, `address`
    is all there is. With `batches` calls with one response share a stream, where the server serves it.
    """

    def __init__(
        self,
        address: str,
        *,
        directory: Path | str | None = None,
        component: str = "apiserver",
        user_agent: str = "",
        credential: str = credentials.ADMIN,
        batches: bool = False,
    ) -> None:
        self._dialer = Dialer(
            directory=Path(directory) if directory is not None else None,
            component=component,
            user_agent=user_agent,
            credential=credential,
            batches=batches,
        )
        self._retired: list[Connection] = []
        self._closed = False
        self.write_observer: WriteObserver | None = None
        self.lists_newest_first = False
        """Whether a reflector's first list is of the newest state, not of any that the server has cached."""
        self._connection = self._dialer.connect(address)

    @property
    def address(self) -> str:
        """Return the address of the server that the client is connected to."""
        return self._connection.address

    async def close(self) -> None:
        """End open watches and calls."""
        self._closed = True
        for connection in [*self._retired, self._connection]:
            await connection.close()
        self._retired.clear()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.close()

    async def get(self, kind: Kind[M], name: str, namespace: str = "", *, resource_version: str = "") -> M:
        """Return one object; `resource_version` "" reads the newest, "0" the server's cached one."""
        request = api.GetRequest(
            target=messages.target_of(kind, namespace, name), resource_version=resource_version
        )
        answer = await self._call("Get", request)
        return messages.decode(kind, answer.body)

    async def list(
        self,
        kind: Kind[M],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> ListResult[M]:
        """Return the objects of a namespace ("" for all) at one revision; 410 where the token has expired."""
        request = api.ListRequest(
            target=messages.target_of(kind, namespace),
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
            **{"continue": continue_token},
        )
        answer = await self._call("List", request, LIST_SECONDS_MAX)
        return ListResult(
            [messages.decode(kind, body) for body in answer.items],
            answer.resource_version,
            getattr(answer, "continue"),
            answer.remaining_item_count if answer.HasField("remaining_item_count") else None,
        )

    async def watch(
        self,
        kind: Kind[M],
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        allow_bookmarks: bool = True,
        timeout_seconds: int = 0,
    ) -> AsyncGenerator[WatchEvent[M], None]:
        """Yield the changes after a revision, in order, until the server ends the watch.

        Leave it by `aclosing`, or by closing the client.

        Raises:
            StatusError: 410 where the revision is compacted (list again), 503 where the connection broke.
        """
        batches = self.watch_batches(
            kind,
            namespace,
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
            allow_bookmarks=allow_bookmarks,
            timeout_seconds=timeout_seconds,
        )
        async with aclosing(batches):
            async for batch in batches:
                for event in batch:
                    yield event

    async def watch_batches(
        self,
        kind: Kind[M],
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        allow_bookmarks: bool = True,
        timeout_seconds: int = 0,
    ) -> AsyncGenerator[Sequence[WatchEvent[M]], None]:
        """Yield the changes as `watch` does, in batches; the first is empty: the watch is established."""
        request = api.WatchRequest(
            target=messages.target_of(kind, namespace),
            label_selector=label_selector,
            field_selector=field_selector,
            resource_version=resource_version,
            allow_bookmarks=allow_bookmarks,
            timeout_seconds=timeout_seconds,
        )
        connection = self._open_connection()
        # No wait for ready: an informer's own back-off decides when to try again.
        stream = watch_stream.batches(
            kind, connection.server, lambda: connection.stub.Watch(request, metadata=connection.metadata)
        )
        try:
            async with aclosing(stream):
                async for batch in stream:
                    yield batch
        except grpc.aio.AioRpcError as error:
            raise self._status(error, connection) from None

    async def create(self, obj: M, *, dry_run: bool = False, imported: bool = False) -> M:
        """Create an object, and return the stored one; 409 AlreadyExists.

        With `imported` its uid, creation time, generation and status stay; 403 without system:masters.
        """
        kind, key = kinds.of(obj), key_of(obj)
        request = api.CreateRequest(
            target=messages.target_of(kind, key.namespace, key.name),
            body=envelope.encode(obj),
            options=messages.write_options(dry_run, imported=imported),
        )
        return self._written(messages.decode(kind, (await self._call("Create", request)).body), dry_run)

    async def update(self, obj: M, *, subresource: str = "", dry_run: bool = False) -> M:
        """Replace; 409 Conflict where metadata.resourceVersion is set and is not the newest."""
        kind, key = kinds.of(obj), key_of(obj)
        request = api.UpdateRequest(
            target=messages.target_of(kind, key.namespace, key.name, subresource),
            body=envelope.encode(obj),
            options=messages.write_options(dry_run),
        )
        return self._written(messages.decode(kind, (await self._call("Update", request)).body), dry_run)

    async def patch(
        self,
        kind: Kind[M],
        name: str,
        namespace: str,
        patch: object,
        *,
        patch_type: PatchType = PatchType.STRATEGIC,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
    ) -> M:
        """Apply a patch (the value of its JSON, a dict or list; text; bytes); `scale` has its own method."""
        request = api.PatchRequest(
            target=messages.target_of(kind, namespace, name, subresource),
            type=messages.PATCH_TYPES[patch_type],
            patch=messages.patch_text(patch),
            options=api.WriteOptions(dry_run=dry_run, field_manager=field_manager, force=force or None),
        )
        return self._written(messages.decode(kind, (await self._call("Patch", request)).body), dry_run)

    def _written(self, obj: M, dry_run: bool) -> M:
        if self.write_observer is not None and not dry_run:
            self.write_observer.wrote(obj)
        return obj

    async def get_scale(self, kind: AnyKind, name: str, namespace: str) -> autoscaling_v1.Scale:
        """Return a workload's Scale, the newest."""
        target = messages.target_of(kind, namespace, name, "scale")
        answer = await self._call("Get", api.GetRequest(target=target))
        return autoscaling_v1.Scale.FromString(envelope.unwrap(answer.body)[2])

    async def patch_scale(
        self,
        kind: AnyKind,
        name: str,
        namespace: str,
        patch: object,
        *,
        patch_type: PatchType = PatchType.MERGE,
        dry_run: bool = False,
    ) -> autoscaling_v1.Scale:
        """Patch a workload's Scale; return the autoscaling/v1 Scale."""
        request = api.PatchRequest(
            target=messages.target_of(kind, namespace, name, "scale"),
            type=messages.PATCH_TYPES[patch_type],
            patch=messages.patch_text(patch),
            options=api.WriteOptions(dry_run=dry_run),
        )
        answer = await self._call("Patch", request)
        return autoscaling_v1.Scale.FromString(envelope.unwrap(answer.body)[2])

    async def delete(
        self,
        kind: AnyKind,
        name: str,
        namespace: str = "",
        *,
        grace_period_seconds: int | None = None,
        uid: str = "",
        resource_version: str = "",
        propagation_policy: str = "",
        dry_run: bool = False,
    ) -> bool:
        """Delete; true if it is gone at once, false if it stays for its grace period or finalizers.

        404 where it does not exist, 409 where `uid` or `resource_version` is given and another's.
        """
        options = meta.DeleteOptions()
        if grace_period_seconds is not None:
            options.gracePeriodSeconds = grace_period_seconds
        if uid:
            options.preconditions.uid = uid
        if resource_version:
            options.preconditions.resourceVersion = resource_version
        if propagation_policy:
            options.propagationPolicy = propagation_policy
        if dry_run:
            options.dryRun.append("All")
        request = api.DeleteRequest(
            target=messages.target_of(kind, namespace, name), options=options.SerializeToString()
        )
        observer = None if dry_run else self.write_observer
        uid = "" if observer is None else observer.uid_of(kind, namespace, name)
        deleted = bool((await self._call("Delete", request)).deleted)
        if observer is not None:
            observer.deleted(kind, namespace, name, uid)
        return deleted

    async def bind(self, namespace: str, name: str, node: str, *, uid: str = "") -> None:
        """Bind a pod to a node; 409 where it is bound already, is being deleted, or its uid is another."""
        binding = core.Binding()
        binding.metadata.namespace, binding.metadata.name = namespace, name
        if uid:
            binding.metadata.uid = uid
        binding.target.kind, binding.target.name = "Node", node
        target = messages.target_of(kinds.POD, namespace, name, "binding")
        await self._create(messages.BINDING, binding, target)

    async def evict(
        self, namespace: str, name: str, *, grace_period_seconds: int | None = None, uid: str = ""
    ) -> None:
        """Evict a pod; 429 where its disruption budget does not allow that now."""
        eviction = policy.Eviction()
        eviction.metadata.namespace, eviction.metadata.name = namespace, name
        if grace_period_seconds is not None:
            eviction.deleteOptions.gracePeriodSeconds = grace_period_seconds
        if uid:
            eviction.deleteOptions.preconditions.uid = uid
        target = messages.target_of(kinds.POD, namespace, name, "eviction")
        await self._create(messages.EVICTION, eviction, target)

    async def _create(self, body: AnyKind, obj: Message, target: api.Target) -> bytes:
        """Send an object that is not stored, of the kind `body`; return the response's."""
        request = api.CreateRequest(target=target, body=envelope.encode(obj, body))
        data: bytes = (await self._call("Create", request)).body
        return data

    async def may(self, spec: authorization.SubjectAccessReviewSpec) -> bool:
        """Ask the API server whether a user may do something (SubjectAccessReview)."""
        from nominee.machinery.wire import access_review

        kind, review = access_review.KIND, access_review.SubjectAccessReview(spec=spec)
        return envelope.decode(
            kind, await self._create(kind, review, messages.target_of(kind))
        ).status.allowed

    async def server_info(self) -> ServerInfo:
        """Return the server's version, its gates, and the newest revision by a linearizable read."""
        answer = await self._call("ServerInfo", api.ServerInfoRequest())
        return ServerInfo(answer.version, dict(answer.feature_gates), answer.revision)

    # Calls.

    async def _call(self, method: str, request: Any, seconds_max: float | None = None) -> Any:
        """Return a unary call's answer; retry where flow control has no seat for it."""
        seconds_max = UNARY_SECONDS_MAX if seconds_max is None else seconds_max
        for attempt in range(REFUSED_MAX):
            connection = self._open_connection()
            send = connection.sender(method)
            try:
                return await call_unary(connection.server, send, request, seconds_max, connection.metadata)
            except grpc.aio.AioRpcError as error:
                status = self._status(error, connection)
            if not _later(status) or attempt + 1 == REFUSED_MAX:
                raise status
            await anyio.sleep(status.retry_after_seconds)
        raise AssertionError("unreachable")

    def _open_connection(self) -> Connection:
        if self._closed:
            raise errors.service_unavailable("the client is closed")
        return self._connection

    def _status(self, error: grpc.aio.AioRpcError, connection: Connection) -> errors.StatusError:
        """Return the status of a failed call; where the connection failed, read its address again."""
        if not errors.from_server(error) and error.code() in _CONNECTION_FAILED:
            self._follow(connection)
        return errors.from_rpc_error(error)

    def _follow(self, connection: Connection) -> None:
        """Connect to the address in the run file, or to the next server, unless another task has done so."""
        if self._closed or connection is not self._connection:
            return
        running = [found for found in self._dialer.running() if found.grpc]
        addresses = [found.grpc for found in running]
        place = addresses.index(self.address) + 1 if self.address in addresses else 0
        found = running[place % len(running)] if running else None
        if found is None or found.grpc == self.address:
            return
        # The old channel may still carry other tasks' calls, which end by themselves. One that is dropped
        # closes itself, once its stream of calls has ended.
        connection.retire()
        self._retired.append(connection)
        del self._retired[:-_RETIRED_MAX]
        self._connection = self._dialer.connect(found.grpc)


def _later(status: errors.StatusError) -> bool:
    """Return whether the server rejected the request with Retry-After: it has done nothing yet."""
    return status.code == 429 and status.retry_after_seconds > 0


_RETIRED_MAX = 2
_CONNECTION_FAILED = frozenset(
    {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNKNOWN}
)
