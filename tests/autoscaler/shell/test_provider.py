"""The client of the external provider protocol, with the built-in cloud's servicer in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from nominee.autoscaler.cloud.node_groups import parse
from nominee.autoscaler.cloud.servicer import CloudServicer
from nominee.autoscaler.cloud.state import CloudState
from nominee.autoscaler.shell.ports import CloudError
from nominee.autoscaler.shell.provider import CloudConfig, ExternalProvider, status_text
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2_grpc as protocol_grpc

GROUPS = """
nodeGroups:
- {name: a, max: 3, target: 1, template: {cpu: 2, memory: 4Gi}, failures: {provisioning: 1, errorCode: "NO"}}
- {name: b, max: 3, target: 1, template: {cpu: 4, memory: 4Gi}}
"""


class Counting(CloudServicer):
    """Counts NodeGroupForNode requests; `templates` False makes template requests UNIMPLEMENTED."""

    asked = 0
    templates = True

    async def NodeGroupForNode(self, request: Any, context: Any) -> Any:
        self.asked += 1
        return await super().NodeGroupForNode(request, context)

    async def NodeGroupTemplateNodeInfo(self, request: Any, context: Any) -> Any:
        if not self.templates:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no templates")
        return await super().NodeGroupTemplateNodeInfo(request, context)


def cloud_state(clock: FakeClock) -> CloudState:
    state = CloudState(parse(GROUPS))
    state.begin(clock.now())
    state.advance(clock.now())
    return state


@asynccontextmanager
async def serving(servicer: CloudServicer) -> AsyncIterator[grpc.aio.Channel]:
    """Serve; give a channel to the port."""
    server = grpc.aio.server()
    protocol_grpc.add_CloudProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with CloudConfig(address=f"127.0.0.1:{port}").channel() as channel:
        yield channel
    await server.stop(None)


@asynccontextmanager
async def served(clock: FakeClock) -> AsyncIterator[tuple[ExternalProvider, CloudState, Counting]]:
    state = cloud_state(clock)
    servicer = Counting(state, clock, lambda: None)
    async with serving(servicer) as channel:
        yield ExternalProvider(channel, clock), state, servicer


def node(name: str, provider_id: str = "") -> core.Node:
    made = core.Node()
    made.metadata.name, made.spec.providerID = name, provider_id
    return made


async def test_a_refresh_returns_groups_instances_and_the_groups_of_nodes() -> None:
    async with served(FakeClock()) as (provider, _, servicer):
        nodes = [node("b-1", "b-1"), node("other", "else://other")]
        view = await provider.refresh(nodes)
        assert list(view.groups) == ["a", "b"]
        group = view.group("b-1")
        assert group is not None
        assert (group.id, group.max, group.target) == ("b", 3, 1)
        assert group.template is not None
        assert group.template.status.allocatable["cpu"].string == "4"
        assert view.group("other") is None
        (failed,) = view.groups["a"].instances
        assert (failed.state, failed.error_code, failed.error_class) == ("creating", "NO", 1)
        assert servicer.asked == 1


async def test_the_provider_is_asked_again_about_an_unmanaged_node_after_a_minute() -> None:
    clock = FakeClock()
    async with served(clock) as (provider, _, servicer):
        for _ in range(3):
            await provider.refresh([node("other")])
        assert servicer.asked == 1
        clock.set(clock.now() + 61)
        await provider.refresh([node("other")])
        assert servicer.asked == 2


async def test_sizes_are_changed_and_errors_are_raised() -> None:
    async with served(FakeClock()) as (provider, state, _):
        await provider.increase("b", 2)
        assert state.target("b") == 3
        with pytest.raises(CloudError, match="size increase is too large, desired: 4, max: 3"):
            await provider.increase("b", 1)
        await provider.decrease_target("b", -1)
        await provider.delete_nodes("b", ["b-1"])
        assert state.target("b") == 1
        with pytest.raises(CloudError, match="instance b-9 does not belong to node group b"):
            await provider.delete_nodes("b", ["b-9"])


async def test_a_provider_without_templates() -> None:
    async with served(FakeClock()) as (provider, _, servicer):
        servicer.templates = False
        view = await provider.refresh([])
        assert view.groups["a"].template is None


async def test_a_provider_that_cannot_be_reached() -> None:
    async with CloudConfig(address="127.0.0.1:1").channel() as channel:
        provider = ExternalProvider(channel, FakeClock(), timeout=1.0)
        with pytest.raises(CloudError):
            await provider.refresh([])


async def test_a_provider_that_was_restarted_at_another_address_is_found() -> None:
    servicer = CloudServicer(cloud_state(FakeClock()), FakeClock(), lambda: None)
    async with serving(servicer) as moved, CloudConfig(address="127.0.0.1:1").channel() as dead:
        found: list[grpc.aio.Channel | None] = [None, moved]

        async def find_moved() -> grpc.aio.Channel | None:
            return found.pop(0)

        provider = ExternalProvider(dead, FakeClock(), timeout=1.0, find_moved=find_moved)
        for _ in range(2):
            with pytest.raises(CloudError):
                await provider.refresh([])
        assert list((await provider.refresh([])).groups) == ["a", "b"]
        await provider.refresh([])
        assert found == []


def test_the_cloud_config_file(tmp_path: Path) -> None:
    file = tmp_path / "cloud.yaml"
    file.write_text("address: 127.0.0.1:8086\ngrpc_timeout: 2s\n", encoding="utf-8")
    assert CloudConfig.read(file) == CloudConfig(address="127.0.0.1:8086", timeout=2.0)
    file.write_text("adress: x\n", encoding="utf-8")
    with pytest.raises(ValueError, match="address: required"):
        CloudConfig.read(file)


async def test_errors_have_the_prefix_of_grpc() -> None:
    async with served(FakeClock()) as (provider, _state, _servicer):
        with pytest.raises(CloudError) as raised:
            await provider.increase("no-such-group", 1)
    assert str(raised.value).startswith("rpc error: code = NotFound desc = ")


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (grpc.StatusCode.CANCELLED, "Canceled"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "DeadlineExceeded"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "ResourceExhausted"),
        (grpc.StatusCode.UNAVAILABLE, "Unavailable"),
    ],
)
def test_status_codes_have_the_names_of_grpc_go(code: grpc.StatusCode, name: str) -> None:
    error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details="why")
    assert status_text(error) == f"rpc error: code = {name} desc = why"
