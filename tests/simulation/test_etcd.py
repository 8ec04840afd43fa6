"""The simulated etcd answers as the real one: both play the same random requests."""

from __future__ import annotations

import random
from collections.abc import Iterator

import grpc
import pytest
from aetcd import rpc
from google.protobuf.message import Message

from nominee.simulation.etcd import transactions
from nominee.simulation.etcd.store import CompactedError, FutureRevisionError, Store
from nominee.simulation.etcd.transactions import InvalidRequestError, LeaseNotFoundError
from tests.support.etcd import ThrowawayEtcd
from tests.support.patience import PATIENCE_SECONDS

KEYS = [b"/registry/a/%d" % number for number in range(6)]
STEPS = 400


class Twins:
    """A real etcd and a simulated one. Revisions of the simulated one are shifted by `shift`."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.kv, self.watch = rpc.KVStub(channel), rpc.WatchStub(channel)
        self.store = Store()
        start = self.kv.Range(rpc.RangeRequest(key=b"x", count_only=True), timeout=PATIENCE_SECONDS)
        # The session's etcd has a past; so has the simulated one then, of revisions without changes.
        past = self.past = start.header.revision
        self.store.revision = past
        self.store.log.extend(() for _ in range(past - 1))
        self.store.times.extend(0.0 for _ in range(past - 1))

    def real_changes(self) -> list[tuple[int, bytes, bytes | None, int]]:
        """Watch the real etcd from the oldest revision that it has: (revision, key, value, version)."""
        create = rpc.WatchCreateRequest(key=b"\0", range_end=b"\0", start_revision=self.first_revision)
        found = []
        last = self.store.log[-1][-1]
        requests = iter([rpc.WatchRequest(create_request=create)])
        call = self.watch.Watch(requests, timeout=PATIENCE_SECONDS)
        for answer in call:
            for event in answer.events:
                value = None if event.type == rpc.Event.DELETE else event.kv.value
                found.append((event.kv.mod_revision, event.kv.key, value, event.kv.version))
            if found and found[-1][:2] == (last.revision, last.key):
                call.cancel()
                break
        return found

    def simulated_changes(self) -> list[tuple[int, bytes, bytes | None, int]]:
        """Return the same of the simulated etcd."""
        return [
            (change.revision, change.key, *((pair.value, pair.version) if pair is not None else (None, 0)))
            for changes in self.store.since(self.first_revision)
            for change in changes
            for pair in (change.pair,)
        ]

    @property
    def first_revision(self) -> int:
        """The oldest revision from which both can watch."""
        first: int = max(self.store.compacted, self.past + 1)
        return first

    def play(self, request: Message) -> None:
        """Make one request to both, and compare the answers or errors."""
        assert self._simulated(request) == self._real(request), request

    def _real(self, request: Message) -> object:
        call = {
            rpc.RangeRequest: self.kv.Range,
            rpc.TxnRequest: self.kv.Txn,
            rpc.PutRequest: self.kv.Put,
            rpc.DeleteRangeRequest: self.kv.DeleteRange,
            rpc.CompactionRequest: self.kv.Compact,
        }[type(request)]
        try:
            answer = call(request, timeout=PATIENCE_SECONDS)
        except grpc.RpcError as error:
            return error.details()
        return comparable(answer)

    def _simulated(self, request: Message) -> object:
        try:
            match request:
                case rpc.RangeRequest():
                    answer: Message = transactions.read(self.store, request)
                case rpc.TxnRequest():
                    answer = transactions.transact(self.store, request, 0.0)
                case rpc.PutRequest():
                    answer = transactions.put(self.store, request, 0.0)
                case rpc.DeleteRangeRequest():
                    answer = transactions.delete(self.store, request, 0.0)
                case rpc.CompactionRequest(revision=revision):
                    self.store.compact(revision)
                    answer = rpc.CompactionResponse(header=rpc.ResponseHeader(revision=self.store.revision))
                case _:
                    raise AssertionError(type(request))
        except CompactedError:
            return "etcdserver: mvcc: required revision has been compacted"
        except FutureRevisionError:
            return "etcdserver: mvcc: required revision is a future revision"
        except LeaseNotFoundError:
            return "etcdserver: requested lease not found"
        except InvalidRequestError as error:
            return str(error)
        return comparable(answer)


def comparable(answer: Message) -> bytes:
    """Return an answer without the identity of the cluster."""
    header = rpc.TxnResponse.FromString(answer.SerializeToString()).header  # field 1 of every answer
    header.cluster_id = header.member_id = header.raft_term = 0
    answer.ClearField("header")
    return bytes(header.SerializeToString()) + answer.SerializeToString(deterministic=True)


@pytest.fixture
def twins(own_etcd: ThrowawayEtcd) -> Iterator[Twins]:
    with grpc.insecure_channel(own_etcd.address) as channel:
        yield Twins(channel)


def some_request(rng: random.Random, store: Store) -> Message:
    """Draw a request as the API server makes them, now and then an impossible one."""
    key, value = rng.choice(KEYS), rng.randbytes(8)
    known = store.get(key)
    at = known.mod_revision if known is not None and rng.random() < 0.8 else rng.choice([0, store.revision])
    revision = rng.choice([0, 0, store.revision - rng.randrange(30), store.revision + rng.choice([0, 1])])
    compare = rpc.Compare(result=rng.randrange(4), target=rpc.Compare.MOD, key=key, mod_revision=at)
    read = rpc.RequestOp(request_range=rpc.RangeRequest(key=key))
    put = rpc.RequestOp(request_put=rpc.PutRequest(key=key, value=value, prev_kv=rng.random() < 0.2))
    delete = rpc.RequestOp(request_delete_range=rpc.DeleteRangeRequest(key=key, prev_kv=rng.random() < 0.2))
    request: Message
    match rng.randrange(10):
        case 0 | 1 | 2 | 3:
            request = rpc.TxnRequest(compare=[compare], success=[put], failure=[read])
        case 4 | 5:
            request = rpc.TxnRequest(compare=[compare], success=[delete], failure=[read])
        case 6:
            request = rpc.PutRequest(key=key, value=value, lease=rng.choice([0, 0, 4711]))
        case 7:
            request = rpc.DeleteRangeRequest(key=KEYS[2], range_end=rng.choice([b"", KEYS[4], b"\0"]))
        case 8 if rng.random() < 0.2:
            # Without `physical`, etcd answers before it has removed the deletions of that revision: for some
            # milliseconds, more on a busy machine, a watch from there still gets them.
            request = rpc.CompactionRequest(
                revision=max(store.revision - rng.randrange(-1, 20), 1), physical=True
            )
        case _:
            request = rpc.RangeRequest(
                key=key,
                range_end=rng.choice([b"", b"/registry/b", b"\0"]),
                revision=max(revision, 0),
                limit=rng.choice([0, 0, 2]),
                count_only=rng.random() < 0.1,
                keys_only=rng.random() < 0.1,
            )
    return request


def test_both_answer_random_requests_alike(twins: Twins) -> None:
    rng = random.Random(20261122)
    for _ in range(STEPS):
        twins.play(some_request(rng, twins.store))
    twins.play(rpc.PutRequest(key=KEYS[0]))  # no compaction hides it: the end of what the watch must send
    assert twins.real_changes() == twins.simulated_changes()


def test_a_transaction_with_one_key_twice_is_refused(twins: Twins) -> None:
    put = rpc.RequestOp(request_put=rpc.PutRequest(key=b"k", value=b"v"))
    twins.play(rpc.TxnRequest(success=[put, put]))


def test_comparisons_of_a_missing_key(twins: Twins) -> None:
    for target, fields in (
        (rpc.Compare.VERSION, {"version": 0}),
        (rpc.Compare.CREATE, {"create_revision": 0}),
        (rpc.Compare.MOD, {"mod_revision": 0}),
        (rpc.Compare.VALUE, {"value": b""}),
    ):
        for result in range(4):
            compare = rpc.Compare(result=result, target=target, key=b"missing", **fields)
            twins.play(rpc.TxnRequest(compare=[compare]))
