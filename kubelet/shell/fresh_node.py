"""Reads a node object from the API server where the cached one may be too old for an admission."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from nominee.kubelet.allocation.stale_node import wants_fresh_node
from nominee.kubelet.shell.agent import Agent
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime import logs


async def refresh_node(
    client: Client, agent: Agent, pods: Iterable[core.Pod] = (), gone: Collection[str] = ()
) -> None:
    """Read the node if an admission of these pods, or a pending resize, fails on its labels alone.

    `gone` are uids of pods that leave with these.
    Without an answer (within `api_client.UNARY_SECONDS_MAX`) the cached node stays.
    """
    if not wants_fresh_node(agent.node, pods, gone):
        return
    try:
        node = await client.get(kinds.NODE, agent.name)
    except StatusError as error:
        logs.get().warning("Failed to synchronously fetch node info", node=agent.name, error=str(error))
        return
    agent.node_changed(node)
