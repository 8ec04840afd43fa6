"""Requests on a store: ranges, puts, deletions and transactions of them."""

from __future__ import annotations

from aetcd import rpc

from nominee.simulation.etcd.store import Store

_TARGETS = {
    rpc.Compare.VERSION: "version",
    rpc.Compare.CREATE: "create_revision",
    rpc.Compare.MOD: "mod_revision",
    rpc.Compare.LEASE: "lease",
    rpc.Compare.VALUE: "value",
}
Writes = dict[bytes, tuple[bytes, int] | None]


class LeaseNotFoundError(Exception):
    """A put names a lease that does not exist."""


class InvalidRequestError(Exception):
    """A request that etcd refuses; the text is etcd's."""


def read(store: Store, request: rpc.RangeRequest) -> rpc.RangeResponse:
    """Answer a range. Raises: CompactedError, FutureRevisionError."""
    store.check(request.revision)
    pairs = store.pairs(request.key, request.range_end, request.revision)
    answer = rpc.RangeResponse(header=rpc.ResponseHeader(revision=store.revision), count=len(pairs))
    if request.count_only:
        return answer
    shown = pairs[: request.limit] if request.limit else pairs
    answer.more = len(shown) < len(pairs)
    for pair in shown:
        kept = answer.kvs.add()
        kept.CopyFrom(pair)
        if request.keys_only:
            kept.value = b""
    return answer


def transact(store: Store, request: rpc.TxnRequest, now: float) -> rpc.TxnResponse:
    """Do a transaction: all its writes get one revision, and none if a comparison fails its branch.

    Raises:
        LeaseNotFoundError, InvalidRequestError, CompactedError, FutureRevisionError: nothing was done.
    """
    succeeded = all(_holds(store, compare) for compare in request.compare)
    operations = request.success if succeeded else request.failure
    writes: Writes = {}
    responses = [_operation(store, each, writes) for each in operations]
    if writes:
        store.write(writes, now)
    for response in responses:
        part = getattr(response, response.WhichOneof("response"))
        part.header.revision = store.revision
    return rpc.TxnResponse(
        header=rpc.ResponseHeader(revision=store.revision), succeeded=succeeded, responses=responses
    )


def put(store: Store, request: rpc.PutRequest, now: float) -> rpc.PutResponse:
    """Put one key. Raises: LeaseNotFoundError."""
    operation = rpc.RequestOp(request_put=request)
    answer = transact(store, rpc.TxnRequest(success=[operation]), now).responses[0].response_put
    return answer


def delete(store: Store, request: rpc.DeleteRangeRequest, now: float) -> rpc.DeleteRangeResponse:
    """Delete a range."""
    operation = rpc.RequestOp(request_delete_range=request)
    return transact(store, rpc.TxnRequest(success=[operation]), now).responses[0].response_delete_range


def _holds(store: Store, compare: rpc.Compare) -> bool:
    """Return whether a comparison holds; a missing key has version and revisions 0."""
    pair = store.get(compare.key)
    field = _TARGETS[compare.target]
    if pair is None and field == "value":
        return False
    stored, given = getattr(pair or rpc.KeyValue(), field), getattr(compare, field)
    match compare.result:
        case rpc.Compare.EQUAL:
            return bool(stored == given)
        case rpc.Compare.NOT_EQUAL:
            return bool(stored != given)
        case rpc.Compare.GREATER:
            return bool(stored > given)
        case _:
            return bool(stored < given)


def _operation(store: Store, operation: rpc.RequestOp, writes: Writes) -> rpc.ResponseOp:
    """Do one operation; its writes are added to `writes`."""
    kind = operation.WhichOneof("request")
    if kind == "request_range":
        return rpc.ResponseOp(response_range=read(store, operation.request_range))
    if kind == "request_put":
        return rpc.ResponseOp(response_put=_put(store, operation.request_put, writes))
    if kind == "request_delete_range":
        request = operation.request_delete_range
        pairs = store.pairs(request.key, request.range_end)
        writes.update(dict.fromkeys(pair.key for pair in pairs))
        shown = pairs if request.prev_kv else []
        deleted = rpc.DeleteRangeResponse(deleted=len(pairs), prev_kvs=shown)
        return rpc.ResponseOp(response_delete_range=deleted)
    raise InvalidRequestError("nested transactions are not simulated")


def _put(store: Store, request: rpc.PutRequest, writes: Writes) -> rpc.PutResponse:
    if request.key in writes:
        raise InvalidRequestError("etcdserver: duplicate key given in txn request")
    if request.lease and request.lease not in store.leases:
        raise LeaseNotFoundError
    writes[request.key] = (request.value, request.lease)
    previous = store.get(request.key) if request.prev_kv else None
    return rpc.PutResponse(prev_kv=previous)
