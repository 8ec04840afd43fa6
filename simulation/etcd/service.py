"""etcd's gRPC services over a store, with etcd's errors."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Final, NoReturn

import anyio
import anyio.lowlevel
import grpc
import grpc.aio
from aetcd import rpc
from aetcd.rpc import rpc_pb2_grpc

from nominee.machinery.client.calls import transport
from nominee.machinery.runtime.clock import Clock
from nominee.simulation.etcd import transactions
from nominee.simulation.etcd.store import Change, CompactedError, FutureRevisionError, Lease, Store
from nominee.simulation.etcd.transactions import InvalidRequestError, LeaseNotFoundError

REQUEST_BYTES_MAX: Final = 1536 << 10
_COMPACTED = "etcdserver: mvcc: required revision has been compacted"
_FUTURE = "etcdserver: mvcc: required revision is a future revision"
_NO_LEASE = "etcdserver: requested lease not found"
_Context = grpc.aio.ServicerContext[object, object]
_ERRORS: Final = (CompactedError, FutureRevisionError, LeaseNotFoundError, InvalidRequestError)


class EtcdService(
    rpc_pb2_grpc.KVServicer,  # type: ignore[misc]  # aetcd's stubs have no types
    rpc_pb2_grpc.WatchServicer,  # type: ignore[misc]  # as above
    rpc_pb2_grpc.LeaseServicer,  # type: ignore[misc]  # as above
):
    """The methods of the services KV, Watch and Lease that the API server calls."""

    def __init__(self, store: Store, clock: Clock, rng: random.Random) -> None:
        self._store, self._clock, self._rng = store, clock, rng
        self._changed = asyncio.Event()
        self._granted = anyio.Event()

    async def run(self, address: str) -> None:
        """Serve at an address, and end leases, until cancelled."""
        self._store.extend_leases(self._clock.monotonic())
        server = transport.current().server(())
        for add in (
            rpc_pb2_grpc.add_KVServicer_to_server,
            rpc_pb2_grpc.add_WatchServicer_to_server,
            rpc_pb2_grpc.add_LeaseServicer_to_server,
        ):
            add(self, server)
        server.add_insecure_port(address)
        await server.start()
        await self._end_leases()

    # KV.

    async def Range(self, request: rpc.RangeRequest, context: _Context) -> rpc.RangeResponse:
        try:
            return transactions.read(self._store, request)
        except _ERRORS as error:
            await _refuse(context, error)

    async def Txn(self, request: rpc.TxnRequest, context: _Context) -> rpc.TxnResponse:
        """Do a transaction."""
        if request.ByteSize() > REQUEST_BYTES_MAX:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "etcdserver: request is too large")
        try:
            return transactions.transact(self._store, request, self._clock.monotonic())
        except _ERRORS as error:
            await _refuse(context, error)
        finally:
            self._wake()

    async def Compact(self, request: rpc.CompactionRequest, context: _Context) -> rpc.CompactionResponse:
        try:
            self._store.compact(request.revision)
        except _ERRORS as error:
            await _refuse(context, error)
        return rpc.CompactionResponse(header=self._header())

    # Watch.

    async def Watch(self, requests: AsyncIterator[rpc.WatchRequest], context: _Context) -> None:
        """Serve one watch; several on one stream, and progress requests, are not simulated."""
        create = (await anext(requests)).create_request
        start = create.start_revision or self._store.revision + 1
        await context.write(rpc.WatchResponse(header=self._header(), created=True))
        if start < self._store.compacted:
            await context.write(
                rpc.WatchResponse(
                    header=self._header(), canceled=True, compact_revision=self._store.compacted
                )
            )
            return
        while True:
            changed = self._changed
            events = [
                _event(change, previous=create.prev_kv)
                for changes in self._store.since(start)
                for change in changes
                if _within(change.key, create.key, create.range_end)
            ]
            start = max(start, self._store.revision + 1)
            if events:
                await context.write(rpc.WatchResponse(header=self._header(), events=events))
            if changed.is_set():  # while the events were written
                await anyio.lowlevel.checkpoint()
            else:
                await changed.wait()

    # Lease.

    async def LeaseGrant(self, request: rpc.LeaseGrantRequest, context: _Context) -> rpc.LeaseGrantResponse:
        """Create a lease."""
        number = request.ID or self._rng.getrandbits(62) | 1
        now = self._clock.monotonic()
        self._store.grant(Lease(number, request.TTL, now + request.TTL))
        self._granted.set()
        self._granted = anyio.Event()
        return rpc.LeaseGrantResponse(header=self._header(), ID=number, TTL=request.TTL)

    async def _end_leases(self) -> None:
        while True:
            now = self._clock.monotonic()
            for lease in [each for each in self._store.leases.values() if each.expires <= now]:
                self._store.revoke(lease, now)
                self._wake()
            granted = self._granted
            due = min((lease.expires for lease in self._store.leases.values()), default=None)
            with anyio.move_on_after(None if due is None else due - now):
                await granted.wait()

    def _wake(self) -> None:
        """Wake the watches."""
        # asyncio's: anyio's is made for whichever library runs, which takes longer than a transaction's data.
        self._changed.set()
        self._changed = asyncio.Event()

    def _header(self) -> rpc.ResponseHeader:
        return rpc.ResponseHeader(cluster_id=1, member_id=1, raft_term=1, revision=self._store.revision)


def _event(change: Change, *, previous: bool) -> rpc.Event:
    if change.pair is None:
        pair = rpc.KeyValue(key=change.key, mod_revision=change.revision)
        event = rpc.Event(type=rpc.Event.DELETE, kv=pair)
    else:
        event = rpc.Event(type=rpc.Event.PUT, kv=change.pair)
    if previous and change.previous is not None:
        event.prev_kv.CopyFrom(change.previous)
    return event


def _within(key: bytes, first: bytes, range_end: bytes) -> bool:
    if not range_end:
        return key == first
    return key >= first and (range_end == b"\0" or key < range_end)


async def _refuse(context: _Context, error: Exception) -> NoReturn:
    code, text = {
        CompactedError: (grpc.StatusCode.OUT_OF_RANGE, _COMPACTED),
        FutureRevisionError: (grpc.StatusCode.OUT_OF_RANGE, _FUTURE),
        LeaseNotFoundError: (grpc.StatusCode.NOT_FOUND, _NO_LEASE),
    }.get(type(error), (grpc.StatusCode.INVALID_ARGUMENT, str(error)))
    await context.abort(code, text)
    raise AssertionError("abort returned")
