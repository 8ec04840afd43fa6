"""The cloud as a process: serves the protocol, starts instances when they are due, and cleans up nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from nominee.autoscaler.cloud.access import CloudTls, Guard
from nominee.autoscaler.cloud.node_cleanup import clean_up_nodes
from nominee.autoscaler.cloud.node_groups import NodeGroup
from nominee.autoscaler.cloud.servicer import CloudServicer
from nominee.autoscaler.cloud.state import CloudState, InstanceState
from nominee.autoscaler.cloud.state_file import StateFile, StateFileError
from nominee.autoscaler.cloud.wake_signal import Signal
from nominee.machinery.client.calls import transport
from nominee.machinery.client.grpc_options import CONNECTION_OPTIONS
from nominee.machinery.process.component import Fatal, Process
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2_grpc as protocol_grpc

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

GRACE_SECONDS = 1.0


class CloudService:
    """The cloud in a process: `start` it in a task group, and `stop` it at the end."""

    def __init__(
        self, process: Process, groups: tuple[NodeGroup, ...], bind: str, tls: CloudTls | None = None
    ) -> None:
        """Restore the state from its file.

        Raises:
            Fatal: the state file cannot be read.
        """
        self._process, self._bind = process, bind
        self.state, self._file = CloudState(groups), StateFile(process.directory)
        self._provisioning, self._cleanup = Signal(), Signal()
        try:
            self._file.load(self.state)
        except StateFileError as error:
            raise Fatal(str(error)) from None
        self.state.begin(process.clock.now())
        process.serving.add_route("/debug/groups", self._debug)
        self._file.save(self.state)
        self._tls = tls
        self._server = transport.current().server(
            CONNECTION_OPTIONS, interceptors=[Guard(secure=tls is not None)]
        )

    def _changed(self) -> None:
        self._file.save(self.state)
        self._provisioning.set()
        self._cleanup.set()

    async def _debug(self, _request: Request) -> Response:
        """Answer `GET /debug/groups`."""
        from starlette.responses import JSONResponse

        return JSONResponse(self.state.summary())

    async def start(self, tasks: anyio.abc.TaskGroup) -> str:
        """Start to serve; return the address."""
        servicer = CloudServicer(self.state, self._process.clock, self._changed)
        protocol_grpc.add_CloudProviderServicer_to_server(servicer, self._server)
        if self._tls is None:
            port = self._server.add_insecure_port(self._bind)
        else:
            port = self._server.add_secure_port(self._bind, self._tls.credentials())
        await self._server.start()
        tasks.start_soon(_start_instances, self._process, self.state, self._changed, self._provisioning)
        tasks.start_soon(clean_up_nodes, self._process, self.state, self._changed, self._cleanup)
        return f"{self._bind.rpartition(':')[0]}:{port}"

    async def stop(self) -> None:
        """Stop to serve, within a limit; also in a cancelled task."""
        with anyio.move_on_after(GRACE_SECONDS + 1, shield=True):
            await self._server.stop(GRACE_SECONDS)


async def run_cloud(
    process: Process,
    groups: tuple[NodeGroup, ...],
    bind: str,
    tls: CloudTls | None = None,
    client_ca: Path | None = None,
) -> None:
    """Run the cloud until the process stops. `client_ca` is the authority that clients trust."""
    service = CloudService(process, groups, bind, tls)
    trusted = {"ca": str(client_ca)} if tls is not None else {}
    try:
        async with anyio.create_task_group() as tasks:
            await process.announce(grpc=await service.start(tasks), **trusted)
            await process.stopping.wait()
            tasks.cancel_scope.cancel()
    finally:
        await service.stop()


async def _start_instances(
    process: Process, state: CloudState, changed: Callable[[], None], signal: Signal
) -> None:
    """Start instances when their provisioning delay is over, until cancelled."""
    while True:
        now = process.clock.now()
        if state.advance(now):
            changed()
        due = state.next_due(InstanceState.CREATING)
        await signal.wait(None if due is None else max(due - now, 0.0))
