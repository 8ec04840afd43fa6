"""Two API servers with different feature gates in one simulation."""

from __future__ import annotations

import pytest

from machinery.api import kinds
from machinery.api.errors import StatusError
from machinery.client.api_client import Client, connect
from simulation.simulation import DIRECTORY, Simulation


async def api_server(simulation: Simulation, name: str, gate: bool) -> Client:
    """Start an API server with or without the gate of pod groups; return a client of it."""
    gates = f"GenericWorkload={str(gate).lower()}"
    options = ["--dir", str(DIRECTORY), "--name", name, "--rest-address", "", "--feature-gates", gates]
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
