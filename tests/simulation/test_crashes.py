"""Processes that are killed at random moments: what is dead has no effect, and all is repeatable."""

from __future__ import annotations

import random
from functools import partial

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.client.api_client import retry_unavailable
from nominee.machinery.runtime.clock import from_time
from nominee.simulation.network.delays import Delays
from nominee.simulation.simulation import DIRECTORY, Simulation
from tests.simulation.cluster import create_pods, start, start_one, wait_running

VICTIMS = ("apiserver", "scheduler", "kubelet-0")
KILLS = 12
PODS = 10
QUICK = Delays(mean_seconds=0.001, late_share=0.05)


async def kill_at_random(simulation: Simulation, rng: random.Random) -> None:
    """Kill one process after another at a random moment, and start it again a moment later."""
    for _ in range(KILLS):
        await simulation.clock.sleep(rng.random() * 0.3)
        victim = rng.choice(VICTIMS)
        simulation.kill(victim)
        await simulation.clock.sleep(rng.random() * 0.3)
        start_one(simulation, victim)
        await simulation.wait_ready(victim)


def run(seed: int) -> Simulation:
    simulation = Simulation(seed, delays=QUICK)
    rng = random.Random(seed)

    async def main() -> None:
        client = await start(simulation)
        async with client:
            await create_pods(client, PODS, prefix="a")
            await kill_at_random(simulation, rng)
            # The first call finds that the API server has another address.
            again = partial(create_pods, client, PODS, prefix="b")
            await retry_unavailable(again, clock=simulation.clock)
            await wait_running(client, 2 * PODS)

    simulation.run(main)
    return simulation


@pytest.mark.parametrize("seed", [1, 2])
def test_all_pods_run_after_crashes_at_random_moments(seed: int) -> None:
    simulation = run(seed)
    assert simulation.loop.problems == []


def test_crashes_are_repeatable() -> None:
    assert run(4).store.digest() == run(4).store.digest()


def test_a_killed_scheduler_writes_nothing_more() -> None:
    """A scheduler that dies before the request of a binding is sent binds nothing, now or later."""
    simulation = Simulation(1)

    async def main() -> None:
        client = await start(simulation)
        async with client:
            simulation.processes["scheduler"].points.arm("scheduler.bind.before", "crash")
            await create_pods(client, 1)
            await simulation.clock.sleep(60.0)
            assert not simulation.processes["scheduler"].running
            assert (await client.get(kinds.POD, "p0", "default")).spec.nodeName == ""
            start_one(simulation, "scheduler")
            await wait_running(client, 1)

    simulation.run(main)


def test_a_kubelet_continues_with_its_checkpoint() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        client = await start(simulation, nodes=1)
        async with client:
            await create_pods(client, 1)
            (before,) = await wait_running(client, 1)
            simulation.kill("kubelet-0")
            assert DIRECTORY / "kubelet" / "node-0.json" in simulation.files.content
            start_one(simulation, "kubelet-0", nodes=1)
            await simulation.wait_ready("kubelet-0")
            await simulation.clock.sleep(5.0)
            (after,) = await wait_running(client, 1)
            assert (
                after.status.containerStatuses[0].containerID
                == before.status.containerStatuses[0].containerID
            )
            assert after.status.containerStatuses[0].restartCount == 0

    simulation.run(main)


def test_a_frozen_api_server_is_given_up_and_found_again() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        client = await start(simulation)
        async with client:
            simulation.freeze("apiserver")
            with pytest.raises(StatusError) as failed:
                await client.list(kinds.POD)
            assert failed.value.code in (503, 504)
            simulation.resume("apiserver")
            await retry_unavailable(lambda: create_pods(client, 1), clock=simulation.clock)
            await wait_running(client, 1)

    simulation.run(main)


def test_an_etcd_that_was_killed_has_its_data_when_it_is_back() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        client = await start(simulation)
        async with client:
            await create_pods(client, 2, prefix="a")
            await wait_running(client, 2)
            written = simulation.store.revision
            simulation.kill("etcd")
            with pytest.raises(StatusError) as failed:
                await create_pods(client, 1, prefix="b")
            assert failed.value.code in (503, 504)
            await simulation.clock.sleep(5.0)
            assert simulation.store.revision == written
            simulation.start("etcd", "etcd")
            await retry_unavailable(lambda: create_pods(client, 1, prefix="c"), clock=simulation.clock)
            await wait_running(client, 3)

    simulation.run(main)
    assert simulation.loop.problems == []


def test_a_shifted_clock_is_that_of_one_process() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        client = await start(simulation)
        async with client:
            before = simulation.clock.now()
            simulation.processes["apiserver"].clock.offset = 3600.0
            await create_pods(client, 1)
            (pod,) = await wait_running(client, 1)
            assert from_time(pod.metadata.creationTimestamp) >= before + 3599.0
            assert from_time(pod.status.startTime) < before + 60.0

    simulation.run(main)
