"""Delete the Node objects of a state directory that no kubelet of the new cluster has.

`python -m nominee.localcluster.surplus_nodes --dir D` is run by the supervisor when the API server serves.
After ten nodes, `nominee up --nodes 3` leaves three, as a cloud's node controller deletes the nodes of
instances that no longer exist. The garbage collector then deletes their pods.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import anyio

from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.localcluster.supervisor.model.node_ranges import NodeRange
from nominee.localcluster.supervisor.model.spec import ClusterSpec
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, ignoring, is_not_found
from nominee.machinery.client import api_client as client_module
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.credentials import NoCredential

_CONNECT_SECONDS_MAX = 10.0
_DELETIONS_MAX = 16


async def remove(client: Client, surplus: Iterable[NodeRange]) -> list[str]:
    """Delete the nodes of some ranges and return their names; nodes of a cloud are left to the cloud."""
    ranges = tuple(surplus)
    listed = await client.list(kinds.NODE)
    names = [
        node.metadata.name
        for node in listed.items
        if not node.spec.providerID and any(each.has(node.metadata.name) for each in ranges)
    ]
    limiter = anyio.CapacityLimiter(_DELETIONS_MAX)

    async def delete(name: str) -> None:
        async with limiter:
            with ignoring(is_not_found):
                await client.delete(kinds.NODE, name)

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(delete, name)
    return names


async def _run(directory: Path, spec: ClusterSpec) -> list[str]:
    async with await client_module.connect(
        directory, user_agent="nominee", limit_seconds=_CONNECT_SECONDS_MAX
    ) as client:
        return await remove(client, spec.surplus_nodes)


def main() -> int:
    """Run the program; the plan in D/run/plan.json names the ranges."""
    parser = argparse.ArgumentParser(prog="python -m nominee.localcluster.surplus_nodes")
    parser.add_argument("--dir", type=Path, required=True)
    directory: Path = parser.parse_args().dir
    spec = ClusterSpec.from_json(StateDirectory(directory).plan.read_text(encoding="utf-8"))
    try:
        names = anyio.run(_run, directory, spec)
    except (TimeoutError, NoCredential, StatusError) as error:
        print(error)
        return 1
    except BaseExceptionGroup as group:
        print("; ".join(str(error) for error in group.exceptions))
        return 1
    print(f"{len(names)} nodes removed that no kubelet has any more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
