"""A small simulated cluster for tests."""

from __future__ import annotations

import anyio

from machinery.api import kinds
from machinery.api.pb import core
from machinery.client.api_client import Client
from simulation.simulation import Simulation

NODES = 3
NO_CONTROLLERS = "ServiceAccount,TaintNodesByCondition"
"""Admission plugins that need controllers."""
POLL_SECONDS = 0.05


async def start(simulation: Simulation, *, nodes: int = NODES) -> Client:
    """Start etcd, the API server, the scheduler and a kubelet; return a client when all are ready."""
    simulation.start("etcd", "etcd")
    simulation.start(
        "apiserver", "apiserver", ["--rest-address", "", "--disable-admission-plugins", NO_CONTROLLERS]
    )
    simulation.start("scheduler", "scheduler")
    simulation.start("kubelet-0", "kubelet", ["--nodes", str(nodes)])
    await simulation.wait_ready("apiserver", "scheduler", "kubelet-0")
    return await simulation.client()


async def create_pods(client: Client, count: int, *, prefix: str = "p", cpu: str = "100m") -> None:
    """Create pods of one container in the namespace default."""
    for index in range(count):
        pod = core.Pod()
        pod.metadata.namespace, pod.metadata.name = "default", f"{prefix}{index}"
        pod.spec.containers.add(name="c", image="pause").resources.requests["cpu"].string = cpu
        await client.create(pod)


async def wait_running(client: Client, count: int, *, limit_seconds: float = 60.0) -> list[core.Pod]:
    """Wait until so many pods exist and all of them run; times are simulated."""
    pods: list[core.Pod] = []
    with anyio.move_on_after(limit_seconds):
        while True:
            pods = (await client.list(kinds.POD)).items
            if len(pods) == count and all(pod.status.phase == "Running" for pod in pods):
                return pods
            await anyio.sleep(POLL_SECONDS)
    raise AssertionError([(pod.metadata.name, pod.spec.nodeName, pod.status.phase) for pod in pods])
