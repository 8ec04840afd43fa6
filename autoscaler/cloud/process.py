"""The cloud as a process: serves the protocol, moves machines on, and deletes Nodes of those that are gone.

The last is a cloud controller manager's work in a real cluster. It waits for an API server as long as it
takes; the protocol is served meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.abc
import grpc.aio
from clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2_grpc as protocol_grpc

from autoscaler.cloud.access import CloudTls, Guard
from autoscaler.cloud.node_groups import GROUP_LABEL, NodeGroup
from autoscaler.cloud.servicer import CloudServicer
from autoscaler.cloud.state import CloudState, InstanceState
from autoscaler.cloud.state_file import StateFile, StateFileError
from machinery.api import errors, kinds
from machinery.api.errors import StatusError
from machinery.api.pb import core
from machinery.client.api_client import CONNECTION_OPTIONS, Client
from machinery.client.informer import Informer
from machinery.process.component import Fatal, Process
from machinery.runtime import failpoints
from machinery.runtime.failpoints import FailpointError

NODE_DELETE_BEFORE = failpoints.declare("cloud.node-delete.before")
GRACE_SECONDS = 1.0
RETRY_SECONDS = 0.5


class Wake:
    """Something has changed; the one who waits looks again."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float | None) -> None:
        """Until something changes, or so long."""
        with anyio.move_on_after(seconds):
            await self._event.wait()
        self._event = anyio.Event()


class CloudService:
    """The cloud in a process: `start` it in a task group, `stop` it at the end."""

    def __init__(
        self, process: Process, groups: tuple[NodeGroup, ...], bind: str, tls: CloudTls | None = None
    ) -> None:
        """Fatal for a state file that cannot be read."""
        self._process, self._bind = process, bind
        self.state, self._file = CloudState(groups), StateFile(process.directory)
        self._moving, self._cleaning = Wake(), Wake()
        try:
            self._file.load(self.state)
        except StateFileError as error:
            raise Fatal(str(error)) from None
        self.state.begin(process.clock.now())
        self._file.save(self.state)
        self._tls = tls
        self._server = grpc.aio.server(
            interceptors=[Guard(secure=tls is not None)], options=CONNECTION_OPTIONS
        )

    def _changed(self) -> None:
        self._file.save(self.state)
        self._moving.set()
        self._cleaning.set()

    async def start(self, tasks: anyio.abc.TaskGroup) -> str:
        """Serves from now on; the address."""
        servicer = CloudServicer(self.state, self._process.clock, self._changed)
        protocol_grpc.add_CloudProviderServicer_to_server(servicer, self._server)
        if self._tls is None:
            port = self._server.add_insecure_port(self._bind)
        else:
            port = self._server.add_secure_port(self._bind, self._tls.credentials())
        await self._server.start()
        tasks.start_soon(_move_on, self._process, self.state, self._changed, self._moving)
        tasks.start_soon(_keep_nodes, self._process, self.state, self._changed, self._cleaning)
        return f"{self._bind.rpartition(':')[0]}:{port}"

    async def stop(self) -> None:
        """Also when we are being cancelled, within a limit."""
        with anyio.move_on_after(GRACE_SECONDS + 1, shield=True):
            await self._server.stop(GRACE_SECONDS)


async def run_cloud(
    process: Process,
    groups: tuple[NodeGroup, ...],
    bind: str,
    tls: CloudTls | None = None,
    client_ca: Path | None = None,
) -> None:
    """The body of the process; returns when it is to stop. `client_ca` is what clients trust."""
    service = CloudService(process, groups, bind, tls)
    trusted = {"ca": str(client_ca)} if tls is not None else {}
    try:
        async with anyio.create_task_group() as tasks:
            await process.announce(grpc=await service.start(tasks), **trusted)
            await process.stopping.wait()
            tasks.cancel_scope.cancel()
    finally:
        await service.stop()


async def _move_on(process: Process, state: CloudState, changed: Callable[[], None], wake: Wake) -> None:
    """Machines come to run when their time has come."""
    while True:
        now = process.clock.now()
        if state.advance(now):
            changed()
        creating = [
            i.due for i in state.instances.values() if i.state is InstanceState.CREATING and i.due is not None
        ]
        await wake.wait(max(min(creating) - now, 0.0) if creating else None)


async def _keep_nodes(process: Process, state: CloudState, changed: Callable[[], None], wake: Wake) -> None:
    """Node objects of machines that are off, or that nobody knows, are deleted."""
    client: Client | None = None
    while client is None:
        try:
            client = await process.client()
        except Fatal:
            process.log.warning("No API server yet; nodes stay as they are")
    nodes = Informer(client, kinds.NODE, label_selector=GROUP_LABEL, clock=process.clock, rng=process.rng)
    nodes.add_handler(on_add=lambda _: wake.set())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(nodes.run)
        await nodes.wait_synced()
        while True:
            failed = await _delete_nodes(process, client, state, nodes, changed)
            now = process.clock.now()
            waits = [RETRY_SECONDS] if failed else []
            waits += [
                max(i.due - now, 0.0)
                for i in state.instances.values()
                if i.state is InstanceState.DELETING and i.due is not None and i.id not in failed
            ]
            await wake.wait(min(waits, default=None))


async def _delete_nodes(
    process: Process,
    client: Client,
    state: CloudState,
    nodes: Informer[core.Node],
    changed: Callable[[], None],
) -> set[str]:
    """Does what can be done now; the names of those that could not be deleted."""
    off = {instance.id for instance in state.expired(process.clock.now())}
    unknown = {node.metadata.name for node in nodes.list() if node.spec.providerID not in state.instances}
    failed = set()
    for name in sorted(off | unknown):
        try:
            await NODE_DELETE_BEFORE.hit(node=name)
            await client.delete(kinds.NODE, name)
            process.log.info("Node deleted: its machine is gone", node=name)
        except (StatusError, FailpointError) as error:
            if not errors.is_not_found(error):
                process.log.warning("Node cannot be deleted, will retry", node=name, error=str(error))
                failed.add(name)
                continue
        if name in off:
            state.forget(name)
            changed()
    return failed
