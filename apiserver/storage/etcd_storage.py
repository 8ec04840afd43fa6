"""Storage on etcd: every write is one transaction that compares the key's revision."""

from __future__ import annotations

import grpc.aio
from aetcd import rpc

from nominee.apiserver.storage.channel import Caller
from nominee.apiserver.storage.interface import (
    Compacted,
    FutureRevision,
    KeyExists,
    LeaseNotFound,
    RangeResult,
    RevisionMismatch,
    StorageUnavailable,
    StoredValue,
)
from nominee.apiserver.storage.leases import LeaseManager
from nominee.apiserver.storage.revision import RevisionReader
from nominee.machinery.api.errors import FailpointError
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import Clock

BEFORE_WRITE = failpoints.declare(
    "apiserver.storage.write.before", "a write is decided; its transaction is not sent to etcd"
)
"""A write is decided; its transaction is not sent to etcd."""
AFTER_WRITE = failpoints.declare(
    "apiserver.storage.write.after",
    "etcd has answered the transaction; the API server does not know the result",
)
"""etcd has answered the transaction; the registry does not know the result."""

# No client writes this key: reading it costs etcd only the quorum read of its revision.
_NOTHING = b"\x00"


def prefix_end(prefix: bytes) -> bytes:
    """Return the first key after all keys with `prefix`."""
    end = bytearray(prefix)
    while end:
        if end[-1] < 0xFF:
            end[-1] += 1
            return bytes(end)
        end.pop()
    return b"\x00"


def _at_revision(key: bytes, revision: int) -> rpc.Compare:
    return rpc.Compare(result=rpc.Compare.EQUAL, target=rpc.Compare.MOD, key=key, mod_revision=revision)


def _value(pair: rpc.KeyValue) -> StoredValue:
    return StoredValue(pair.key.decode(), pair.value, pair.mod_revision)


def _read_op(key: bytes) -> rpc.RequestOp:
    return rpc.RequestOp(request_range=rpc.RangeRequest(key=key))


def _found(answer: rpc.TxnResponse) -> StoredValue | None:
    """Return the value that the failure branch of a transaction read."""
    pairs = answer.responses[0].response_range.kvs
    return _value(pairs[0]) if pairs else None


def _created_at(answer: rpc.TxnResponse) -> int:
    """Return the revision of the creation of the key that the failure branch of a transaction read."""
    revision: int = answer.responses[0].response_range.kvs[0].create_revision
    return revision


class EtcdStorage:
    """`nominee.apiserver.storage.interface.Storage` on an etcd channel; see there for the contract.

    A write whose answer was lost (etcd was killed) is tried again; the stored value then shows whether the
    first attempt had been applied: it has the same bytes, of a revision that was not there before. (Two
    updates may have the same bytes: a controller whose cache lags writes the same status again.) If another
    write has replaced the value meanwhile, the outcome is unknown: an error, as without a second try.
    """

    def __init__(self, channel: grpc.aio.Channel, clock: Clock, *, several_members: bool = False) -> None:
        self._call = Caller(channel, clock.monotonic, clock.sleep, several_members=several_members)
        self._leases = LeaseManager(self._grant, clock.monotonic)
        self._revisions = RevisionReader(self._read_revision)

    async def get(self, key: str) -> StoredValue | None:
        answer, _ = await self._call(self._call.kv.Range, rpc.RangeRequest(key=key.encode()))
        return _value(answer.kvs[0]) if answer.kvs else None

    async def create(self, key: str, data: bytes, *, lease_seconds: int = 0) -> int:
        revision, _ = await self._put(key, data, 0, lease_seconds)
        if revision:
            return revision
        raise KeyExists(key)

    async def update(self, key: str, data: bytes, *, expected_revision: int, lease_seconds: int = 0) -> int:
        revision, current = await self._put(key, data, expected_revision, lease_seconds)
        if revision:
            return revision
        raise RevisionMismatch(key, expected_revision, current)

    async def delete(self, key: str, *, expected_revision: int) -> int:
        """Delete a key in a transaction; see the interface."""
        name = key.encode()
        request = rpc.TxnRequest(
            compare=[_at_revision(name, expected_revision)],
            success=[rpc.RequestOp(request_delete_range=rpc.DeleteRangeRequest(key=name))],
            failure=[_read_op(name)],
        )
        former = max(self._call.revision, expected_revision)
        answer, uncertain = await self._transact(key, request)
        if answer.succeeded:
            revision: int = answer.header.revision
            return revision
        current = _found(answer)
        if uncertain and (current is None or _created_at(answer) > former):
            # This call may have deleted it. A key that was created since is another object's: it stays.
            raise StorageUnavailable(
                f"etcd went away while it deleted {key}, whose value is gone", maybe_applied=True
            )
        raise RevisionMismatch(key, expected_revision, current)

    async def range(
        self, prefix: str, *, revision: int = 0, limit: int = 0, start_after: str = ""
    ) -> RangeResult:
        """Read a page of keys in one request; see the interface."""
        request = rpc.RangeRequest(
            key=start_after.encode() + b"\x00" if start_after else prefix.encode(),
            range_end=prefix_end(prefix.encode()),
            revision=revision,
            limit=limit,
        )
        answer, _ = await self._call(self._call.kv.Range, request, revision=revision, is_large=True)
        return RangeResult(
            items=[_value(pair) for pair in answer.kvs],
            revision=revision or answer.header.revision,
            more=answer.more,
            remaining=answer.count - len(answer.kvs),
        )

    async def current_revision(self) -> int:
        return await self._revisions.current()

    async def compact(self, revision: int) -> None:
        """Drop the history before `revision`; a revision that is compacted already is no error."""
        try:
            await self._call(self._call.kv.Compact, rpc.CompactionRequest(revision=revision), is_large=True)
        except (Compacted, FutureRevision):
            return

    async def _put(
        self, key: str, data: bytes, expected_revision: int, lease_seconds: int
    ) -> tuple[int, StoredValue | None]:
        """Return (the new revision, or 0 when the key is not at the expected one; the value then stored)."""
        name = key.encode()
        lease = await self._leases.lease(lease_seconds) if lease_seconds else 0
        former = self._call.revision
        request = rpc.TxnRequest(
            compare=[_at_revision(name, expected_revision)],
            success=[rpc.RequestOp(request_put=rpc.PutRequest(key=name, value=data, lease=lease))],
            failure=[_read_op(name)],
        )
        try:
            answer, uncertain = await self._transact(key, request)
        except LeaseNotFound:
            # Etcd came back with other data, or its clock jumped: grant the lease again, once.
            self._leases.forget(lease)
            request.success[0].request_put.lease = await self._leases.lease(lease_seconds)
            answer, uncertain = await self._transact(key, request)
        if answer.succeeded:
            return answer.header.revision, None
        current = _found(answer)
        if current is not None and current.mod_revision <= former:
            return 0, current  # it was there before the first attempt, which was not applied
        if uncertain and current is not None and current.data == data:
            return current.mod_revision, current
        if uncertain:
            # This write may have been applied, and another one after it: no conflict is certain.
            raise StorageUnavailable(
                f"etcd went away while it wrote {key}, which has changed since", maybe_applied=True
            )
        return 0, current

    async def _transact(self, key: str, request: rpc.TxnRequest) -> tuple[rpc.TxnResponse, bool]:
        """Return (etcd's answer, whether an earlier attempt may have been applied)."""
        try:
            await BEFORE_WRITE.hit(key=key)
        except FailpointError as error:
            raise StorageUnavailable(f"etcd: {error}") from None
        answer = await self._call(self._call.kv.Txn, request)
        try:
            await AFTER_WRITE.hit(key=key)
        except FailpointError as error:
            raise StorageUnavailable(f"etcd: {error}", maybe_applied=True) from None
        return answer

    async def _grant(self, seconds: int) -> int:
        answer, _ = await self._call(self._call.lease.LeaseGrant, rpc.LeaseGrantRequest(TTL=seconds))
        lease_id: int = answer.ID
        return lease_id

    async def _read_revision(self) -> int:
        answer, _ = await self._call(self._call.kv.Range, rpc.RangeRequest(key=_NOTHING, count_only=True))
        revision: int = answer.header.revision
        return revision
