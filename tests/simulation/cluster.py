"""A small simulated cluster for tests."""

from __future__ import annotations

import anyio

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.simulation.simulation import DIRECTORY, Simulation

NODES = 3
NO_CONTROLLERS = "ServiceAccount,TaintNodesByCondition"
"""Admission plugins that need controllers."""
POLL_SECONDS = 0.05


def start_one(simulation: Simulation, name: str, *, nodes: int = NODES) -> None:
    """Start one component, or start it again."""
    own = {
        "apiserver": ["--rest-address", "", "--disable-admission-plugins", NO_CONTROLLERS],
        "kubelet-0": ["--nodes", str(nodes)],
    }
    options = ["--dir", str(DIRECTORY), "--name", name, *own.get(name, ())]
    simulation.start(name, name.partition("-")[0], options)


async def start(simulation: Simulation, *, nodes: int = NODES) -> Client:
    """Start etcd, the API server, the scheduler and a kubelet; return a client when all are ready."""
    simulation.start("etcd", "etcd")
    for name in ("apiserver", "scheduler", "kubelet-0"):
        start_one(simulation, name, nodes=nodes)
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
