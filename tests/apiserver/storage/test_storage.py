"""Storage on a real etcd: compare-and-swap, pages, revisions, leases."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import grpc.aio
import pytest
from aetcd import rpc

from nominee.apiserver.storage.etcd_storage import EtcdStorage, prefix_end
from nominee.apiserver.storage.interface import (
    Compacted,
    FutureRevision,
    KeyExists,
    RevisionMismatch,
    StoredValue,
    ValueTooLarge,
)
from nominee.apiserver.storage.status import to_status
from nominee.machinery.client.etcd_channel import connect, nearest
from nominee.machinery.client.etcd_endpoints import endpoints
from nominee.machinery.runtime.clock import SystemClock
from tests.support.etcd import ThrowawayEtcd


@pytest.fixture
async def channel(etcd: ThrowawayEtcd) -> AsyncIterator[grpc.aio.Channel]:
    channel = await connect([etcd.address])
    yield channel
    await channel.close()


@pytest.fixture
def storage(channel: grpc.aio.Channel) -> EtcdStorage:
    return EtcdStorage(channel, SystemClock())


async def test_a_created_key_is_read_back_at_its_revision(storage: EtcdStorage) -> None:
    revision = await storage.create("/registry/pods/default/a", b"one")
    assert await storage.get("/registry/pods/default/a") == StoredValue(
        "/registry/pods/default/a", b"one", revision
    )
    assert await storage.get("/registry/pods/default/b") is None


async def test_create_refuses_a_key_that_exists(storage: EtcdStorage) -> None:
    await storage.create("/registry/a", b"one")
    with pytest.raises(KeyExists):
        await storage.create("/registry/a", b"two")
    value = await storage.get("/registry/a")
    assert value is not None
    assert value.data == b"one"


async def test_update_needs_the_expected_revision_and_says_what_is_there(storage: EtcdStorage) -> None:
    first = await storage.create("/registry/a", b"one")
    second = await storage.update("/registry/a", b"two", expected_revision=first)
    assert second > first
    with pytest.raises(RevisionMismatch) as caught:
        await storage.update("/registry/a", b"three", expected_revision=first)
    assert caught.value.current == StoredValue("/registry/a", b"two", second)
    with pytest.raises(RevisionMismatch) as caught:
        await storage.update("/registry/none", b"x", expected_revision=first)
    assert caught.value.current is None


async def test_delete_needs_the_expected_revision(storage: EtcdStorage) -> None:
    first = await storage.create("/registry/a", b"one")
    with pytest.raises(RevisionMismatch):
        await storage.delete("/registry/a", expected_revision=first + 100)
    assert await storage.delete("/registry/a", expected_revision=first) > first
    assert await storage.get("/registry/a") is None


async def test_only_one_of_many_writers_at_one_revision_wins(storage: EtcdStorage) -> None:
    first = await storage.create("/registry/a", b"0")
    won: list[int] = []
    lost: list[int] = []

    async def write(number: int) -> None:
        try:
            await storage.update("/registry/a", str(number).encode(), expected_revision=first)
        except RevisionMismatch:
            lost.append(number)
        else:
            won.append(number)

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(write, number)
    assert (len(won), len(lost)) == (1, 19)


async def test_range_pages_at_one_revision(storage: EtcdStorage) -> None:
    for number in range(5):
        revision = await storage.create(f"/registry/pods/default/{number}", b"x")
    await storage.create("/registry/podsother/default/9", b"x")
    page = await storage.range("/registry/pods/", limit=2)
    assert [v.key[-1] for v in page.items] == ["0", "1"]
    assert (page.more, page.remaining, page.revision) == (True, 3, revision + 1)
    await storage.create("/registry/pods/default/9", b"later")
    rest = await storage.range(
        "/registry/pods/", revision=page.revision, limit=9, start_after=page.items[-1].key
    )
    assert [v.key[-1] for v in rest.items] == ["2", "3", "4"]
    assert (rest.more, rest.remaining, rest.revision) == (False, 0, page.revision)


async def test_a_compacted_and_a_future_revision_are_different_errors(storage: EtcdStorage) -> None:
    first = await storage.create("/registry/a", b"1")
    second = await storage.update("/registry/a", b"2", expected_revision=first)
    await storage.compact(second)
    await storage.compact(second)  # once more is no error
    with pytest.raises(Compacted):
        await storage.range("/registry/", revision=first)
    with pytest.raises(FutureRevision):
        await storage.range("/registry/", revision=second + 1000)


async def test_current_revision_has_every_write_acknowledged_before(storage: EtcdStorage) -> None:
    async def write_then_ask(number: int) -> None:
        written = await storage.create(f"/registry/{number}", b"x")
        assert await storage.current_revision() >= written

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(write_then_ask, number)


async def test_objects_with_a_ttl_share_a_lease(storage: EtcdStorage, channel: grpc.aio.Channel) -> None:
    for number in range(3):
        await storage.create(f"/registry/events/default/{number}", b"x", lease_seconds=3600)
    answer = await rpc.KVStub(channel).Range(
        rpc.RangeRequest(key=b"/registry/events/", range_end=prefix_end(b"/registry/events/"))
    )
    leases = {pair.lease for pair in answer.kvs}
    assert len(leases) == 1
    ttl = await rpc.LeaseStub(channel).LeaseTimeToLive(rpc.LeaseTimeToLiveRequest(ID=leases.pop()))
    assert ttl.grantedTTL == 3660


async def test_a_revoked_lease_is_replaced(storage: EtcdStorage, channel: grpc.aio.Channel) -> None:
    await storage.create("/registry/events/default/1", b"x", lease_seconds=3600)
    answer = await rpc.KVStub(channel).Range(rpc.RangeRequest(key=b"/registry/events/default/1"))
    await rpc.LeaseStub(channel).LeaseRevoke(rpc.LeaseRevokeRequest(ID=answer.kvs[0].lease))
    await storage.create("/registry/events/default/2", b"x", lease_seconds=3600)
    assert await storage.get("/registry/events/default/1") is None
    assert await storage.get("/registry/events/default/2") is not None


async def test_calls_wait_for_an_etcd_that_comes_back(own_etcd: ThrowawayEtcd) -> None:
    channel = await connect([own_etcd.address])
    storage = EtcdStorage(channel, SystemClock())
    first = await storage.create("/registry/a", b"1")
    own_etcd.kill()
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, own_etcd.start)
        second = await storage.update("/registry/a", b"2", expected_revision=first)
    assert await storage.get("/registry/a") == StoredValue("/registry/a", b"2", second)
    await channel.close()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("http://127.0.0.1:2379", ["127.0.0.1:2379"]),
        ("a:1, http://b:2/,", ["a:1", "b:2"]),
        ("[::1]:2379", ["[::1]:2379"]),
        ("", []),
    ],
)
def test_endpoints(text: str, want: list[str]) -> None:
    assert endpoints(text) == want


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unix:///x:1", "not unix://"),
        ("a", "write HOST:PORT"),
        ("a:", "write HOST:PORT"),
        (":1", "write HOST:PORT"),
        ("a:65536", "write HOST:PORT"),
    ],
)
def test_what_is_no_endpoint(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        endpoints(text)


@pytest.mark.parametrize(
    ("socket", "want"),
    [
        ("", "127.0.0.1:1"),
        ("/d/etcd/client.sock:0", "unix:/d/etcd/client.sock:0"),
        ("/" + "d" * 106, "unix:/" + "d" * 106),
        ("/" + "d" * 107, "127.0.0.1:1"),
        ("/" + "\u00e9" * 60, "127.0.0.1:1"),
    ],
)
def test_how_etcd_is_reached(socket: str, want: str) -> None:
    """By its socket, where the kernel takes the name: 107 bytes."""
    assert nearest("127.0.0.1:1", socket) == want


@pytest.mark.parametrize(("prefix", "want"), [(b"/a/", b"/a0"), (b"a\xff", b"b"), (b"\xff", b"\x00")])
def test_prefix_end(prefix: bytes, want: bytes) -> None:
    assert prefix_end(prefix) == want


@pytest.mark.parametrize("size", [1536 << 10, 3 << 20])
async def test_a_value_above_etcds_limit_is_413(storage: EtcdStorage, size: int) -> None:
    """Etcd refuses the first, and its gRPC server the second."""
    revision = await storage.create("/registry/a", b"one")
    with pytest.raises(ValueTooLarge) as caught:
        await storage.create("/registry/b", b"x" * size)
    with pytest.raises(ValueTooLarge):
        await storage.update("/registry/a", b"x" * size, expected_revision=revision)
    status = to_status(caught.value)
    assert (status.code, status.reason, status.retry_after_seconds) == (413, "RequestEntityTooLarge", 0)
    assert await storage.get("/registry/b") is None
