"""Requests that no client of ours sends: bytes that are not protobuf, with and without a credential."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import anyio.from_thread
import grpc
import pytest

from nominee.apiserver.access.access import Access
from nominee.apiserver.access.authentication import Authenticator
from nominee.apiserver.fronts.grpc.front import SERVICE
from nominee.apiserver.objects.user import User
from nominee.machinery.api import errors
from nominee.machinery.api.errors import StatusError
from nominee.machinery.runtime.clock import SystemClock
from nominee.pb.nominee_api.v1 import api_pb2 as api
from tests.apiserver.fronts.test_grpc_front import serving
from tests.support.etcd import ThrowawayEtcd
from tests.support.patience import PATIENCE_SECONDS

METHODS = ("Get", "List", "Create", "Update", "Patch", "Delete", "DeleteCollection", "ServerInfo", "Watch")
NOT_PROTOBUF = b"\xff\xff not protobuf"
GOOD, WRONG = ("authorization", "Bearer good"), ("authorization", "Bearer wrong")
Metadata = Sequence[tuple[str, str]]


@pytest.fixture(scope="module")
def channel(_session_etcd: ThrowawayEtcd) -> Iterator[grpc.Channel]:
    """A channel to a server that authenticates, lets anonymous callers in, and authorizes everything."""
    access = Access(Authenticator(SystemClock(), tokens={"good": User("alice")}))
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(_session_etcd, access=access)) as running,
        grpc.insecure_channel(running.server.address) as made,
    ):
        yield made


def failure(channel: grpc.Channel, method: str, body: bytes, metadata: Metadata) -> StatusError:
    """Return the Status with which the server refuses a call."""
    path = f"/{SERVICE}/{method}"
    stub: Any = channel.unary_stream(path) if method == "Watch" else channel.unary_unary(path)
    with pytest.raises(grpc.RpcError) as caught:
        # A stream of answers is iterated; the one answer of a unary call is bytes, and iterable too.
        list(stub(body, metadata=metadata, timeout=PATIENCE_SECONDS))
    error: Any = caught.value
    assert errors.from_server(error), error
    return errors.from_rpc_error(error)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metadata", [[], [GOOD]], ids=["anonymous", "token"])
def test_a_request_that_is_not_protobuf_is_400(
    channel: grpc.Channel, method: str, metadata: Metadata
) -> None:
    error = failure(channel, method, NOT_PROTOBUF, metadata)
    assert error.code == 400
    assert f"cannot be decoded as nominee.api.v1.{method}Request" in str(error)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("body", [NOT_PROTOBUF, b""], ids=["garbage", "empty"])
def test_a_wrong_token_is_401_before_anything_is_decoded(
    channel: grpc.Channel, method: str, body: bytes
) -> None:
    assert failure(channel, method, body, [WRONG]).code == 401


@pytest.mark.parametrize("method", METHODS)
def test_two_authorizations_are_400(channel: grpc.Channel, method: str) -> None:
    assert failure(channel, method, b"", [GOOD, GOOD]).code == 400


@pytest.mark.parametrize("token", ["", "Bearer", "Bearer a.b.c", "Bearer " + "x" * 4000, "Basic eA=="])
def test_odd_credentials_get_a_status(channel: grpc.Channel, token: str) -> None:
    request = api.CreateRequest().SerializeToString()
    assert failure(channel, "Create", request, [("authorization", token)]).code in (401, 404)
