"""`python -m nominee.dashboard.drain NODE --dir D`: drain a node as `kubectl drain` does.

Pods of DaemonSets stay. An eviction that a PodDisruptionBudget refuses is tried again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from nominee.commands.common import directory_option
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime.clock import SystemClock
from nominee.session import converse

SECONDS_MAX: Final = 60.0
_AGAIN_SECONDS: Final = 0.5
_TOO_MANY_REQUESTS: Final = 429


@click.command()
@click.argument("node")
@directory_option
def main(node: str, directory: Path) -> None:
    """Cordon a node and evict its pods."""

    async def work(client: Client) -> int:
        await client.patch(kinds.NODE, node, "", {"spec": {"unschedulable": True}})
        click.echo(f"node/{node} cordoned")
        clock = SystemClock()
        deadline = clock.monotonic() + SECONDS_MAX
        evicted: set[str] = set()
        while True:
            refused = await _evict(client, node, evicted)
            if not refused:
                click.echo(f"node/{node} drained")
                return 0
            if clock.monotonic() >= deadline:
                click.echo(f"not drained within {SECONDS_MAX:g} s: {refused}")
                return 1
            await clock.sleep(_AGAIN_SECONDS)

    converse(directory, work)


async def _evict(client: Client, node: str, evicted: set[str]) -> str:
    """Evict the pods of a node; return why one of them stays, or ""."""
    refused = ""
    pods = await client.list(kinds.POD, field_selector=f"spec.nodeName={node}")
    for pod in pods.items:
        metadata = pod.metadata
        if metadata.uid in evicted or any(each.kind == "DaemonSet" for each in metadata.ownerReferences):
            continue
        try:
            await client.evict(metadata.namespace, metadata.name)
            click.echo(f"pod/{metadata.name} evicted")
        except StatusError as error:
            if error.code == _TOO_MANY_REQUESTS:
                refused = f"{metadata.name}: {error.message}"
                continue
            if not is_not_found(error):
                raise
        evicted.add(metadata.uid)
    return refused


if __name__ == "__main__":
    main()
