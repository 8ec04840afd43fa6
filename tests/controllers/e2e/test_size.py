"""What the controllers cost with a hundred nodes and five hundred pods."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import coordination
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime.clock import to_micro_time
from tests.controllers.builders import node, replica_set
from tests.controllers.e2e.support import running
from tests.support.cluster import Cluster, pss_kib
from tests.support.eventually import eventually

PSS_MIB_MAX = 60
"""All controllers: 46 MiB with 10 nodes and 50 pods, 55 MiB with 100 nodes and 500 pods."""
IDLE_SECONDS = 4.0
IDLE_CPU_MAX = 0.05
AT_ONCE = 50
COMBINED_FROM = 10


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _add_node(client: Client, name: str) -> None:
    await client.create(node(name))
    lease = coordination.Lease()
    lease.metadata.name, lease.metadata.namespace = name, "kube-node-lease"
    lease.spec.holderIdentity, lease.spec.leaseDurationSeconds = name, 40
    lease.spec.renewTime.CopyFrom(to_micro_time(1_700_000_000.0))
    await client.create(lease)


async def _events(client: Client) -> int:
    """How many events there are."""
    page = await client.list(kinds.EVENTS_EVENT, limit=1)
    return len(page.items) + (page.remaining_item_count or 0)


@pytest.mark.parametrize(
    ("nodes", "pods"), [(10, 50), pytest.param(100, 500, marks=pytest.mark.slow, id="large")]
)
async def test_nodes_and_pods_fit(cluster: Cluster, nodes: int, pods: int) -> None:
    async with running(cluster, "--node-monitor-period", "5s", "--node-monitor-grace-period", "10m") as lab:
        async with anyio.create_task_group() as tasks:
            for number in range(nodes):
                tasks.start_soon(_add_node, lab.client, f"n{number}")
        await lab.create(replica_set(replicas=pods))
        made = await lab.listed(kinds.POD, lambda found: len(found) == pods)
        for start in range(0, pods, AT_ONCE):
            async with anyio.create_task_group() as tasks:
                for offset, each in enumerate(made[start : start + AT_ONCE]):
                    tasks.start_soon(lab.run_pod, each, f"n{(start + offset) % nodes}")
        await lab.object(kinds.REPLICA_SET, "web", lambda s: s.status.readyReplicas == pods)
        pid = cluster.processes["controllers"].pid
        assert pss_kib([pid]) / 1024 < PSS_MIB_MAX
        # From the tenth pod on the replica set's events are one, "(combined from similar events): ...".
        await eventually(lambda: _events(lab.client), lambda count: count >= COMBINED_FROM + nodes)
        if pods < 500:
            return  # what it costs at rest is measured with many only
        before = _cpu_seconds(pid)
        await anyio.sleep(IDLE_SECONDS)  # what is measured is a time
        used = (_cpu_seconds(pid) - before) / IDLE_SECONDS
        assert used < IDLE_CPU_MAX
