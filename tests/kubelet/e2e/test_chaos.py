"""Kill -9 at any moment under a storm of resizes: nothing is over-committed, no container restarts."""

from __future__ import annotations

import random

import anyio
import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from tests.kubelet.e2e.support import KUBELET, condition, in_force, is_ready, lab, pod, runs
from tests.support.cluster import WAIT_SECONDS_MAX, Cluster

NODES, PODS, KILLS, RESIZES = 3, 12, 6, 10
CPU_MAX = 4000


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [1, 2])
async def test_kill_9_under_a_storm_of_resizes(cluster: Cluster, seed: int) -> None:
    dice = random.Random(seed)
    wanted: dict[str, int] = {}
    async with lab(cluster, "--actuation-delay", "50ms", nodes=NODES) as here:
        for number in range(PODS):
            await here.create(pod(f"p{number}", {"cpu": "500m"}), f"node-{number % NODES}")
        before = {f"p{number}": await here.pod(f"p{number}", is_ready) for number in range(PODS)}
        for _ in range(KILLS):
            for _ in range(RESIZES):
                name = dice.choice(sorted(before))
                wanted[name] = dice.choice([250, 500, 750, 1000, 1500])
                await here.resize(name, cpu=f"{wanted[name]}m")
            await anyio.sleep(dice.random() * 0.3)
            cluster.kill(KUBELET)
            for node in range(NODES):
                assert await _committed(here.client, f"node-{node}") <= CPU_MAX
            await cluster.start(KUBELET)
        # What is to be at the end fits everywhere.
        for name in before:
            await here.resize(name, cpu="300m")
        for name, old in before.items():
            seen = await here.pod(name, _is_settled)
            assert runs(seen) == runs(old)


def _is_settled(seen: core.Pod) -> bool:
    return in_force(seen) == {"cpu": "300m"} and condition(seen, "PodResizeInProgress") is None


async def _committed(client: Client, node: str) -> int:
    """What the containers of a node have in force, by their status, in millicores."""
    total = 0
    with anyio.fail_after(WAIT_SECONDS_MAX):
        pods = await client.list(kinds.POD, "default", field_selector=f"spec.nodeName={node}")
    for one in pods.items:
        text = in_force(one)["cpu"]
        total += int(text[:-1]) if text.endswith("m") else int(text) * 1000
    return total
