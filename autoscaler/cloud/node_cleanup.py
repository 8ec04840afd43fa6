"""Deletion of Node objects whose instances are deleted, as a cloud controller manager does it.

It waits until there is an API server.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from nominee.autoscaler.cloud.node_groups import GROUP_LABEL
from nominee.autoscaler.cloud.state import CloudState, InstanceState
from nominee.autoscaler.cloud.wake_signal import Signal
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import FailpointError, StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.process.component import Fatal, Process
from nominee.machinery.runtime import failpoints

NODE_DELETE_BEFORE = failpoints.declare(
    "cloud.node-delete.before", "an instance does not exist any more; its Node object is not deleted"
)
RETRY_SECONDS = 0.5


async def clean_up_nodes(
    process: Process, state: CloudState, changed: Callable[[], None], signal: Signal
) -> None:
    """Delete the Node objects of instances that are deleted or unknown, until cancelled.

    `changed` is called after each change of the state; `signal` is set when there may be something to do.
    """
    client: Client | None = None
    while client is None:
        try:
            client = await process.client()
        except Fatal:
            process.log.warning("No API server yet; Node objects are not deleted")
    nodes = Informer(client, kinds.NODE, label_selector=GROUP_LABEL, clock=process.clock, rng=process.rng)
    nodes.add_handler(on_add=lambda _: signal.set())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(nodes.run)
        await nodes.wait_synced()
        while True:
            failed = await _delete_nodes(process, client, state, nodes, changed)
            waits = [RETRY_SECONDS] if failed else []
            due = state.next_due(InstanceState.DELETING, except_for=failed)
            if due is not None:
                waits.append(max(due - process.clock.now(), 0.0))
            await signal.wait(min(waits, default=None))


async def _delete_nodes(
    process: Process,
    client: Client,
    state: CloudState,
    nodes: Informer[core.Node],
    changed: Callable[[], None],
) -> set[str]:
    """Delete the Node objects that are due now; return the names of those that could not be deleted."""
    deleted = {instance.id for instance in state.deleted(process.clock.now())}
    unknown = {node.metadata.name for node in nodes.list() if node.spec.providerID not in state.instances}
    failed = set()
    for name in sorted(deleted | unknown):
        try:
            await NODE_DELETE_BEFORE.hit(node=name)
            await client.delete(kinds.NODE, name)
            process.log.info("Node deleted: its instance does not exist", node=name)
        except (StatusError, FailpointError) as error:
            if not errors.is_not_found(error):
                process.log.warning("Node cannot be deleted, will retry", node=name, error=str(error))
                failed.add(name)
                continue
        if name in deleted:
            state.remove(name)
            changed()
    return failed
