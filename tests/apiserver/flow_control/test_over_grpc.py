"""Flow control as a client of the gRPC front meets it."""

from __future__ import annotations

import anyio
import pytest

from nominee.apiserver.chain.request import ApiRequest
from nominee.apiserver.flow_control.controller import FlowControl, Limits
from nominee.apiserver.fronts.grpc.front import ServerIdentity
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import User
from nominee.apiserver.process import server as server_module
from nominee.apiserver.process.server import ApiServer, ServerOptions, Serving
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.client import api_client as client_module
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime.clock import SystemClock
from tests.apiserver.cache.test_watch_cache import pod
from tests.apiserver.fronts.test_grpc_front import _plain
from tests.support.etcd import ThrowawayEtcd
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS

ALICE = User("alice", ("system:authenticated",))


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("wait_seconds", [0.0, PATIENCE_SECONDS])
async def test_a_call_waits_for_its_seat_or_comes_again(
    etcd: ThrowawayEtcd, monkeypatch: pytest.MonkeyPatch, wait_seconds: float, batches: bool
) -> None:
    """A rejected client retries after Retry-After; a queued request is served when a seat is free."""
    monkeypatch.setattr(ApiRequest, "user", ALICE)
    control = FlowControl(SystemClock(), Limits(6, 6, wait_seconds=wait_seconds))
    options = ServerOptions(etcd_servers=[etcd.address])
    server = ApiServer(options, _plain, ServerIdentity("1.36", {}), SystemClock())
    # Not given to the server, which would configure it from what is stored.
    monkeypatch.setattr(server_module, "FlowControl", lambda clock: control)
    stopping, ready = anyio.Event(), anyio.Event()

    async def on_ready(_: Serving) -> None:
        ready.set()

    got = []
    async with anyio.create_task_group() as group:
        group.start_soon(server.run, stopping, on_ready)
        with anyio.fail_after(PATIENCE_SECONDS):
            await ready.wait()
        async with Client(server.address, batches=batches) as client:
            await client.create(pod("a"))
            seat = control.arrive(ALICE, Attributes("list", "pods"))
            watch = client.watch_batches(kinds.POD, resource_version="0")
            async with anyio.create_task_group() as asking:

                async def get() -> None:
                    got.append(await client.get(kinds.POD, "a", "default"))

                asking.start_soon(get)
                await eventually(lambda: control.dropped[True] or control.in_queue[True])
                assert not got
                seat.leave()
            assert got[0].metadata.name == "a"
            # A watch holds no seat once it stands: two of them, where there is one seat.
            assert await anext(watch) == []
            assert (await client.get(kinds.POD, "a", "default")) == got[0]
            await watch.aclose()
            monkeypatch.setattr(client_module, "REFUSED_MAX", 1)
            if not wait_seconds:
                seat = control.arrive(ALICE, Attributes("list", "pods"))
                with pytest.raises(StatusError) as caught:
                    await client.get(kinds.POD, "a", "default")
                assert (caught.value.code, caught.value.retry_after_seconds) == (429, 1)
                seat.leave()
        stopping.set()
    assert control.in_flight == {True: 0, False: 0}
