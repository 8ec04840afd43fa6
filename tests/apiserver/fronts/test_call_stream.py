"""The server's end of the stream of batched calls: each call is a request of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import anyio
import grpc
import grpc.aio
import pytest

from nominee.apiserver.access.access import Access
from nominee.apiserver.access.authentication import Authenticator, Credentials
from nominee.apiserver.chain import filters
from nominee.apiserver.objects.user import ADMIN, User
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.client import api_client as client_module
from nominee.machinery.client import messages
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.calls.call_stream import Stream
from nominee.machinery.runtime import failpoints
from nominee.pb.nominee_api.v1 import api_pb2 as api
from nominee.pb.nominee_api.v1 import api_pb2_grpc as api_grpc
from tests.apiserver.cache.test_watch_cache import LIMIT_SECONDS, pod
from tests.apiserver.fronts.test_grpc_front import serving
from tests.support.etcd import ThrowawayEtcd
from tests.support.eventually import eventually

GET, CREATE = api.BatchedCall.GET, api.BatchedCall.CREATE
HELD = filters.BEFORE_WRITE.name


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.REGISTRY.disarm_all()


def waiting() -> int:
    """Return how many writes wait at the failpoint."""
    state = failpoints.REGISTRY.get(HELD)
    return 0 if state is None else state.waiting


async def code_of_create(client: Client, name: str) -> int:
    """Return the code with which a pod's creation fails, or 200."""
    try:
        await client.create(pod(name))
    except StatusError as error:
        return error.code
    return 200


async def test_a_write_past_its_deadline_is_not_done(
    etcd: ThrowawayEtcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(etcd, batches=True) as running:
        failpoints.arm(HELD, "pause")
        monkeypatch.setattr(client_module, "UNARY_SECONDS_MAX", 0.3)
        assert await code_of_create(running.client, "late") == 504
        monkeypatch.undo()
        await eventually(lambda: waiting() == 0)
        failpoints.REGISTRY.disarm_all()
        with pytest.raises(StatusError, match="not found"):
            await running.client.get(kinds.POD, "late", "default")


async def test_a_write_that_its_client_gives_up_is_not_done(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd, batches=True) as running:
        failpoints.arm(HELD, "pause")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.client.create, pod("given-up"))
            await eventually(lambda: waiting() == 1)
            tasks.cancel_scope.cancel()
        await eventually(lambda: waiting() == 0)
        failpoints.REGISTRY.disarm_all()
        with pytest.raises(StatusError, match="not found"):
            await running.client.get(kinds.POD, "given-up", "default")


async def test_a_write_that_hangs_holds_up_no_other(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd, batches=True) as running, anyio.create_task_group() as tasks:
        client = running.client
        failpoints.arm(HELD, "1*pause")
        tasks.start_soon(client.create, pod("hangs"))
        await eventually(lambda: waiting() == 1)
        for name in "abcdef":
            await client.create(pod(name))
        assert waiting() == 1
        failpoints.REGISTRY.disarm_all()


async def test_a_server_that_stops_answers_the_calls_that_it_has_read(etcd: ThrowawayEtcd) -> None:
    codes: list[int] = []
    async with serving(etcd, batches=True) as running:
        client = running.client

        async def create() -> None:
            codes.append(await code_of_create(client, "open"))

        watch = client.watch_batches(kinds.POD, resource_version="0")
        assert await anext(watch) == []
        failpoints.arm(HELD, "pause")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(create)
            await eventually(lambda: waiting() == 1)
            running.stopping.set()
            # The server ends its watches before its streams, in the same turn.
            with pytest.raises(StatusError):
                await anext(watch)
            assert await code_of_create(client, "new") == 503
            assert not codes
            failpoints.REGISTRY.disarm_all()
        assert codes == [200]


class Revocable(Authenticator):
    """Knows one token, until it is revoked."""

    def __init__(self) -> None:
        self.valid = True

    def user_of(self, credentials: Credentials) -> User:
        if not self.valid or credentials.bearer != "secret":
            raise errors.unauthorized()
        return ADMIN


def get(number: int, name: str) -> api.BatchedCall:
    """Return the call that gets a pod."""
    request = api.GetRequest(target=messages.target_of(kinds.POD, "default", name))
    return api.BatchedCall(id=number, method=GET, request=request.SerializeToString(), timeout_seconds=30)


@asynccontextmanager
async def stream_to(address: str, *metadata: tuple[str, str]) -> AsyncIterator[Stream]:
    async with grpc.aio.insecure_channel(address) as channel:
        stream = api_grpc.APIStub(channel).Calls(metadata=metadata)
        with anyio.fail_after(LIMIT_SECONDS):
            yield stream
        stream.cancel()


async def answered(stream: Stream, *calls: api.BatchedCall) -> list[tuple[int, int]]:
    """Send calls in one message; return their ids and HTTP codes in the order of their answers."""
    await stream.write(api.CallBatch(calls=calls))
    codes: list[tuple[int, int]] = []
    while len(codes) < len(calls):
        message = await stream.read()
        assert isinstance(message, api.AnswerBatch)
        codes += [(answer.id, _code(answer)) for answer in message.answers]
    return codes


def _code(answer: api.BatchedAnswer) -> int:
    if not answer.HasField("status"):
        return 200
    return errors.from_rpc_error(errors.from_rich_status(answer.status)).code


async def test_each_call_is_authenticated(etcd: ThrowawayEtcd) -> None:
    authenticator = Revocable()
    async with (
        serving(etcd, access=Access(authenticator)) as running,
        stream_to(running.server.address, ("authorization", "Bearer secret")) as stream,
    ):
        assert await answered(stream, get(1, "a")) == [(1, 404)]
        authenticator.valid = False
        assert await answered(stream, get(2, "a")) == [(2, 401)]
        authenticator.valid = True
        assert await answered(stream, get(3, "a")) == [(3, 404)]


async def test_each_call_has_its_own_outcome(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd) as running, stream_to(running.server.address) as stream:
        await running.client.create(pod("a"))
        broken = api.BatchedCall(id=3, method=CREATE, request=b"\xff", timeout_seconds=30)
        unknown = api.BatchedCall(id=4, timeout_seconds=30)
        codes = await answered(stream, get(1, "a"), get(2, "b"), broken, unknown)
        assert sorted(codes) == [(1, 200), (2, 404), (3, 400), (4, 400)]


async def test_calls_count_as_requests(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd, batches=True) as running:
        await running.client.create(pod("a"))
        before = running.requests("POST", 409)
        for _ in range(3):
            assert await code_of_create(running.client, "a") == 409
        # The server counts a request after its answer has left.
        await eventually(lambda: running.requests("POST", 409) - before, lambda counted: counted >= 3)
        assert running.requests("POST", 409) - before == 3


@pytest.mark.parametrize(
    "calls",
    [[get(1, "a"), get(1, "b")], [get(number, "a") for number in range(3000)]],
    ids=["an id twice", "too many"],
)
async def test_a_client_that_breaks_the_rules(etcd: ThrowawayEtcd, calls: list[api.BatchedCall]) -> None:
    async with serving(etcd) as running, stream_to(running.server.address) as stream:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await answered(stream, *calls)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
