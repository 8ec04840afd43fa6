"""Two API servers in one simulation: with different feature gates, and one of them lags."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.client.api_client import Client, connect
from nominee.scheduler.__main__ import main as scheduler
from nominee.simulation.simulation import DIRECTORY, Simulation
from tests.simulation.cluster import NO_CONTROLLERS, create_pods, start_one, wait_running


async def api_server(simulation: Simulation, name: str, gate: bool = False) -> Client:
    """Start an API server with or without the gate of pod groups; return a client of it."""
    gates = f"GenericWorkload={str(gate).lower()}"
    options = ["--dir", str(DIRECTORY), "--name", name, "--rest-address", "", "--feature-gates", gates]
    options += ["--disable-admission-plugins", NO_CONTROLLERS]
    simulation.start(name, "apiserver", options)
    await simulation.wait_ready(name)
    return await connect(DIRECTORY, name, clock=simulation.clock)


def test_each_serves_the_kinds_of_its_own_gates() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        simulation.start("etcd", "etcd")
        async with (
            await api_server(simulation, "apiserver-0", True) as serves,
            await api_server(simulation, "apiserver-1", False) as serves_not,
        ):
            assert (await serves.list(kinds.POD_GROUP)).items == []
            with pytest.raises(StatusError) as failed:
                await serves_not.list(kinds.POD_GROUP)
            assert failed.value.code == 404
            assert (await serves.list(kinds.POD_GROUP)).items == []

    simulation.run(main)


def test_a_component_uses_the_server_that_it_names() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        simulation.start("etcd", "etcd")
        async with (
            await api_server(simulation, "apiserver-0") as newer,
            await api_server(simulation, "apiserver-1"),
        ):
            start_one(simulation, "kubelet-0")
            options = ["--dir", str(DIRECTORY), "--apiserver", "apiserver-1"]
            simulation.start("scheduler", "scheduler", options)
            await simulation.wait_ready("scheduler", "kubelet-0")
            lagging = simulation.processes["apiserver-1"].faults
            lagging.put("hold", "etcd")
            simulation.use_rules()
            await create_pods(newer, 1)
            await simulation.clock.sleep(10.0)
            (pod,) = (await newer.list(kinds.POD)).items
            assert not pod.spec.nodeName
            lagging.clear()
            simulation.use_rules()
            await wait_running(newer, 1)

    simulation.run(main)


def test_a_component_that_loses_its_connections_goes_to_the_other_server() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        simulation.start("etcd", "etcd")
        async with (
            await api_server(simulation, "apiserver-0") as newer,
            await api_server(simulation, "apiserver-1"),
        ):
            start_one(simulation, "kubelet-0")
            start_one(simulation, "scheduler")
            await simulation.wait_ready("scheduler", "kubelet-0")
            await create_pods(newer, 1)
            await wait_running(newer, 1)
            lagging = simulation.processes["apiserver-1"].faults
            lagging.put("hold", "etcd")
            simulation.processes["scheduler"].faults.put("cut", "apiserver-0")
            simulation.use_rules()
            await create_pods(newer, 1, prefix="q")
            await simulation.clock.sleep(10.0)
            assert [
                pod.metadata.name for pod in (await newer.list(kinds.POD)).items if not pod.spec.nodeName
            ] == ["q0"]
            lagging.clear()
            simulation.use_rules()
            await wait_running(newer, 2)

    simulation.run(main)


@pytest.mark.parametrize("name", ["apiserver-x", "server-1", "apiserver-"])
def test_a_name_that_is_no_api_server_is_refused(name: str) -> None:
    ran = CliRunner().invoke(scheduler, ["--apiserver", name, "--check-options"])
    assert ran.exit_code == 2
    assert "write HOST:PORT, or a name such as apiserver-1" in ran.output
